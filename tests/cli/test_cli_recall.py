"""`recall`, `release recall`, `subject` and `retention` on a home where no gateway runs: carried out by the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pydicom
import pytest
from commands import Command, as_process
from houses import edit, house, study, to_folder
from persons import sent

from gateway.database import Database
from gateway.settings import Home

WORDS = ("--by", "dpo", "--reason", "consent was withdrawn")
ID = b"LEAK0001\n"


@pytest.fixture
def place(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home from which two studies of two people left to a folder, in one release; the folder."""
    target = tmp_path / "archive"
    policies = to_folder(tmp_path / "policies", target)
    edit(policies, "research-basic", lambda body: body.update(release={"min_subjects": 2}))
    monkeypatch.setenv("DEID_HOME", str(home.root))
    monkeypatch.setenv("DEID_POLICIES", str(policies))
    monkeypatch.setenv("DEID_WORKERS", "1")
    with house(home, policies) as made:
        for number in (1, 2):
            made.deliver(*study(patient=f"LEAK000{number}"))
        made.decide("close", "research-basic-1")
    return target


def environment(place: Path) -> dict[str, str]:
    return {
        "DEID_HOME": str(place.parent / "home"),
        "DEID_POLICIES": str(place.parent / "policies"),
        "DEID_WORKERS": "1",
    }


def test_a_release_is_recalled_shown_and_written_out(command: Command, place: Path, home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = command("release", "recall", "research-basic-1", *WORDS, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    assert "research-archive" in ran.out
    told = json.loads((out / "recall-1.json").read_text())
    uids = {str(ds.SOPInstanceUID) for ds in sent(place)}
    assert {one["sop_instance_uid"] for one in told["receivers"][0]["instances"]} == uids
    assert len((out / "recall-1.csv").read_text().splitlines()) == 3
    row = command("release", "show", "research-basic-1", "--json").json
    assert (row["state"], row["recalled"], row["studies"]) == ("recalled", 2, 2)
    assert {job["state"] for job in command("status", "--json").json["jobs"]} == {"recalled"}
    (listed,) = command("recall", "list", "--json").json
    assert (listed["recall"], listed["about"], listed["studies"]) == (1, "release research-basic-1", 2)
    assert "recalled before" in command("recall", "release", "research-basic-1", *WORDS).err


def test_one_study_by_the_uid_it_left_under_and_everything_by_pseudonym(command: Command, place: Path) -> None:
    one, two = sent(place)
    assert command("recall", "study", one.StudyInstanceUID, *WORDS, "--json").json["receivers"][0]["studies"] == 1
    told = command("recall", "pseudonym", two.PatientID, *WORDS, "--json").json
    assert [entry["patient_id"] for entry in told["receivers"][0]["instances"]] == [two.PatientID]
    assert command("recall", "show", 2, "--json").json == told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("release", "x-1"), "no release is called"),
        (("study", "1.2.3"), "nothing has left under that UID"),
        (("pseudonym", "BT-1"), "nothing has left under that pseudonym"),
        (("send", "7"), "no note of it"),
        (("reissue", "7"), "nothing of it was recalled"),
    ],
)
def test_what_is_not_there_is_a_usage_error(command: Command, place: Path, words: tuple[str, ...], says: str) -> None:
    ran = command("recall", *words, *WORDS)
    assert ran.code == 2
    assert says in ran.err


def test_a_subject_is_named_on_stdin_and_nowhere_else(place: Path, home: Home) -> None:
    ran = as_process("subject", "opt-out", *WORDS, "--json", stdin=ID, env=environment(place))
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {
        "decision": "opt-out",
        "outcome": "done",
        "receivers": [{"receiver": "research-archive", "studies": 1, "instances": 1, "recalled": 0}],
        "recall": 0,
        "recall_outcome": "",
    }
    ran = as_process("subject", "erase", *WORDS, "--recall", stdin=ID, env=environment(place))
    assert (ran.code, ran.err) == (0, "")
    assert "recall show 1" in ran.out
    assert len(list(home.spool.rglob("*.dcm"))) == 1
    for path in (home.ledger, home.database):
        assert b"LEAK0001" not in path.read_bytes()
    assert "LEAK" not in ran.out


def test_opting_in_listing_and_restoring(command: Command, place: Path, tmp_path: Path) -> None:
    pseudonym = str(next(sent(place)).PatientID)
    assert "nobody has opted out" in command("subject", "list").out
    assert command("subject", "opt-in", "--pseudonym", pseudonym, *WORDS).code == 2
    assert command("subject", "opt-out", "--pseudonym", pseudonym, *WORDS).code == 0
    listed = command("subject", "list", "--json")
    assert [one["ended_at"] for one in listed.json["opted_out"]] == [None]
    (tmp_path / "list.json").write_text(listed.out)
    assert "opted out" in command("subject", "list").out
    assert command("subject", "restore", tmp_path / "list.json", "--json").json == {"entered": 0}
    assert command("subject", "opt-in", "--pseudonym", pseudonym, *WORDS).code == 0
    assert command("subject", "restore", tmp_path / "list.json", "--json").json == {"entered": 0}  # the list is older
    (tmp_path / "list.json").write_text("[]")
    assert command("subject", "restore", tmp_path / "list.json").code == 2


@pytest.mark.parametrize(
    ("stdin", "reason", "says"),
    [
        (b"", "a letter", "no Patient ID"),
        (b"LEAK0001\nA\nLEAK0002\n", "a letter", "one person at a time"),
        (b"LEAK0001\n", "leak0001 wrote", "the reason names the person"),
        (b"\xff\xfe", "a letter", "not UTF-8"),
    ],
)
def test_what_is_typed_wrong_changes_nothing(place: Path, home: Home, stdin: bytes, reason: str, says: str) -> None:
    ran = as_process("subject", "erase", "--by", "dpo", "--reason", reason, stdin=stdin, env=environment(place))
    assert ran.code == 2
    assert says in ran.err
    assert Database.in_home(home.database).erasures() == []


def test_retention_tells_what_is_due_and_removes_it_when_asked(command: Command, place: Path, home: Home) -> None:
    found = command("retention", "show", "--json").json
    (originals,) = [row for row in found["counts"] if row["kind"] == "originals"]
    assert (originals["due"], originals["later"], found["due"]) == (0, 2, [])
    assert "originals" in command("retention", "show").out
    ran = command("retention", "run", *WORDS)
    assert (ran.code, "nothing was due" in ran.out) == (0, True)
    assert len(list(home.spool.rglob("*.dcm"))) == 2


def test_issued_anew_by_the_command_and_sent_by_the_next_gateway(command: Command, place: Path, home: Home) -> None:
    (one, _) = sent(place)
    command("recall", "study", one.StudyInstanceUID, *WORDS)
    assert "done: 1 studies" in command("recall", "reissue", 1, *WORDS).out
    with house(home, place.parent / "policies") as made:
        made.settle()
        states = sorted((job.issue, str(job.state)) for job in made.parts.database.jobs_in())
        assert states == [(1, "recalled"), (1, "sent"), (2, "awaiting_release")]
    assert pydicom.dcmread(next(iter(place.rglob("*.dcm")))).PatientID
