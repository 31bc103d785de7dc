"""A stage that cannot do its work under the rest of the policy is a fault at load, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError
from gateway.policy import Policy, load_policy

HEAD = "name: p\nextends: [ps3.15-basic@2026d]\ngate: {study: {residual_identifiers: {}}}\n"


def load(folder: Path, text: str) -> Policy:
    path = folder / "p.yaml"
    path.write_text(HEAD + text)
    return load_policy(path, REGISTRY)


def test_documents_that_the_header_holds_never_reach_their_stage(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as told:
        load(tmp_path, "pixels:\n  - documents: {}\n")
    (fault,) = told.value.faults
    assert (fault.line, fault.hint) == (5, "write header: {encapsulated: replace}")
    assert load(tmp_path, "header: {encapsulated: replace}\npixels:\n  - documents: {}\n").pixels[0][0] == "documents"


def test_transcode_is_the_last_stage(tmp_path: Path) -> None:
    stages = ["  - transcode: {to: rle}\n", "  - hidden_pixels: {}\n"]
    with pytest.raises(PolicyError, match=r"p\.yaml:5: transcode is not the last stage .put it behind hidden_pixels"):
        load(tmp_path, "pixels:\n" + "".join(stages))
    assert [name for name, _ in load(tmp_path, "pixels:\n" + "".join(stages[::-1])).pixels][-1] == "transcode"
