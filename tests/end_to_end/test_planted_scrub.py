"""A planted identity in every place of a file, through `scrub`: here file meta, preamble and what follows the data set
arrive as they are. Nothing of it is in the target, nor in anything that the run wrote or said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from planting import PLACES, WORDS, found_in

from gateway.settings import Home

# Every place is one that the Basic Profile cleans, so cleaning must succeed: a held study is a needless loss.
EXCEPTIONS: dict[str, tuple[str, str]] = {}


def scrubbed(home: Home, source: Path, target: Path, *more: str) -> tuple[int, bytes]:
    """Exit code, and stdout and stderr together."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DEID_")}
    words = ["scrub", str(source), str(target), "--policy", "research-basic", "--home", str(home.root), *more]
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words], env=clean, capture_output=True, timeout=250, check=False
    )
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_no_planted_identity_leaves_or_is_written_down(tmp_path: Path, home: Home) -> None:
    source, target = tmp_path / "src", tmp_path / "dst"
    source.mkdir()
    files = {}
    for number, (name, place) in enumerate(PLACES.items()):
        files[str(source / f"{number:02d}.dcm")] = name
        (source / f"{number:02d}.dcm").write_bytes(place.file())
    assert all(found_in(path.read_bytes()) for path in source.iterdir())  # the search can find

    code, said = scrubbed(home, source, target, "--json")
    studies = json.loads(said)["studies"]
    ends = {files[study["file"]]: (study["state"], study["reason"]) for study in studies}
    assert ends == {name: EXCEPTIONS.get(name, ("sent", "")) for name in PLACES}
    assert code == (1 if any(state == "held" for state, _ in EXCEPTIONS.values()) else 0)
    sent = sum(state == "sent" for state, _ in ends.values())
    written = [path for path in target.rglob("*") if path.is_file()]
    assert len(written) == sent
    for path in written:
        assert found_in(path.read_bytes()) == [], path
    _, table = scrubbed(home, source, target)  # as a person sees it
    assert found_in(said + table) == []
    for folder in (target, home.root):
        for path in folder.rglob("*"):
            assert found_in(str(path.relative_to(folder)).encode()) == [], path
            if path.is_file():
                assert found_in(path.read_bytes()) == [], path


def test_what_is_held_is_told_by_place_and_only_its_candidate_holds_it(tmp_path: Path, home: Home) -> None:
    """A policy that keeps free texts (with a reason) keeps the plant in them: the gate sees it, and does not say it."""
    import yaml

    from gateway.settings import SHIPPED_POLICIES

    policy = yaml.safe_load((SHIPPED_POLICIES / "research-basic.yaml").read_text())
    policy["header"]["keep"] = {"StudyDescription": "a test", "SeriesDescription": "a test", "ImageComments": "a test"}
    (tmp_path / "keeps.yaml").write_text(yaml.safe_dump({**policy, "name": "keeps"}))
    source, target = tmp_path / "src", tmp_path / "dst"
    source.mkdir()
    keeping = ("study description", "descriptions", "comments")
    for number, name in enumerate(keeping):
        (source / f"{number}.dcm").write_bytes(PLACES[name].file())
    code, said = scrubbed(home, source, target, "--policy", str(tmp_path / "keeps.yaml"), "--json")
    assert code == 1
    studies = json.loads(said)["studies"]
    assert [(study["state"], study["reason"]) for study in studies] == [("held", "residual_identifier")] * 3
    assert not [path for path in target.rglob("*") if path.is_file()]
    assert found_in(said) == []
    candidates = list(home.held.rglob("*.dcm"))
    assert len(candidates) == 3
    assert all(found_in(path.read_bytes()) for path in candidates)
    for path in home.root.rglob("*"):
        if path.is_file() and path not in candidates:
            assert found_in(path.read_bytes()) == [], path
    _, shown = scrubbed(home, source, target, "--policy", str(tmp_path / "keeps.yaml"))
    for key in [study["key"] for study in studies]:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "held", "show", key, "--home", str(home.root)],
            capture_output=True,
            check=True,
        )
        shown += done.stdout
    assert found_in(shown) == []
    assert b"0008,1030" in shown
    assert all(word.encode() not in shown for word in WORDS)
