"""What the image is made of is written down, and known flaws in it are told, loudly also when nobody could be asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from tools.audit_dependencies import verdict
from tools.sbom import EXTRAS, bill

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def components() -> dict[str, dict[str, Any]]:
    return {canonicalize_name(one["name"]): one for one in bill()["components"]}


def test_the_bill_of_materials_has_what_runs_and_nothing_of_the_tests(components: dict[str, dict[str, Any]]) -> None:
    assert {"pydicom", "psycopg", "torch", "opencv-python-headless", "cffi"} <= components.keys()
    assert not {"pytest", "mypy", "moto", "cyclonedx-bom", "hypothesis"} & components.keys()
    installs = re.search(r"'\.\[([a-z,]+)\]'", (ROOT / "Dockerfile").read_text())
    assert installs is not None
    assert installs[1].split(",") == list(EXTRAS)


def test_its_versions_are_those_pinned_and_licences_are_told(components: dict[str, dict[str, Any]]) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, one in components.items():
        assert one["version"].partition("+")[0] == pins[name]
    unnamed = {name for name, one in components.items() if not one.get("licenses")}
    # Apache-2.0; BSD-3-Clause; Apache-2.0 and BSD-3-Clause: said in other words than those of SPDX.
    assert unnamed <= {"monai", "protobuf", "pypdfium2"}


def report(*entries: dict[str, Any]) -> str:
    return json.dumps({"dependencies": list(entries), "fixes": []})


SOUND = {"name": "a", "version": "1", "vulns": []}
FLAWED = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "PYSEC-2018-28", "fix_versions": ["3"], "aliases": [], "description": ""}],
}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (1)"}


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (report(SOUND), 0, "0 known vulnerabilities in 1 packages"),
        (report(SOUND, FLAWED), 1, "b 2: PYSEC-2018-28, mended in 3"),
        (report(SOUND, UNKNOWN), 0, "NOT AUDITED: 1 of 2 packages"),
        (report(FLAWED, UNKNOWN), 1, "NOT AUDITED: 1 of 2 packages"),
        ("", 0, "NOT AUDITED: the advisories cannot be reached"),
        ("[]", 0, "NOT AUDITED: the advisories cannot be reached"),
    ],
)
def test_an_audit_fails_on_findings_alone_and_says_what_it_did_not_ask(text: str, code: int, said: str) -> None:
    found, lines = verdict(text)
    assert found == code
    assert any(said in line for line in lines)
