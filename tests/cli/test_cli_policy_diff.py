"""`policy diff`: what changes from one policy to another, and in what both make of the same files (synthetic)."""

from __future__ import annotations

from pathlib import Path

import pydicom
import pytest
from commands import Command
from previewing import WorkersHere
from pydicom.data import get_testdata_file

import gateway.app.workers
from gateway.settings import SHIPPED_POLICIES, Home

BASIC = SHIPPED_POLICIES / "research-basic.yaml"


@pytest.fixture(autouse=True)
def workers_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway.app.workers, "Workers", WorkersHere)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The shipped policy with ages kept, no prefix and a shorter retention."""
    text = BASIC.read_text()
    text = text.replace("keep: {}", 'keep: {PatientAge: "stratification, DPO-1"}')
    text = text.replace(", prefix: DEMO-", "").replace("originals_days: 30", "originals_days: 7")
    (tmp_path / "other.yaml").write_text(text)
    return tmp_path / "other.yaml"


@pytest.fixture
def ct(tmp_path: Path) -> Path:
    ds = pydicom.dcmread(str(get_testdata_file("CT_small.dcm")))
    ds.PatientName, ds.PatientID, ds.PatientAge = "ZZSYNTH^LEAKTEST", "ZZ-4711", "045Y"
    ds.save_as(tmp_path / "ct.dcm")
    return tmp_path / "ct.dcm"


def test_a_policy_does_not_differ_from_itself(command: Command, ct: Path, home: Home) -> None:
    ran = command("policy", "diff", BASIC, "research-basic", ct, "--home", home.root)
    assert (ran.code, ran.err) == (0, "")
    assert "the two policies say the same" in ran.out
    assert "0 of 1 files come out otherwise" in ran.out
    assert len(ran.out.splitlines()) == 3


def test_what_differs_is_said_by_section_key_and_attribute(command: Command, other: Path) -> None:
    ran = command("policy", "diff", BASIC, other)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert '- Patient ID: replaced by "DEMO-" and a pseudonym made' in ran.out
    assert "+ Patient ID: replaced by a pseudonym made" in ran.out
    assert "+ Kept: PatientAge (0010,1010), because: stratification, DPO-1" in lines
    assert "    retain.originals_days: 30 -> 7" in lines
    assert "attributes treated otherwise: 1" in lines
    at = lines.index("attributes treated otherwise: 1")
    assert lines[at + 1 : at + 4] == [
        "- removed",
        "+ kept, 090Y for everybody older",
        "    1: (0010,1010) PatientAge",
    ]
    assert [line for line in lines if line in ("header", "pixels", "gate", "afterwards")] == ["header", "afterwards"]


def test_with_files_what_leaves_is_compared_under_the_same_pseudonyms(command: Command, other: Path, ct: Path) -> None:
    ran = command("policy", "diff", BASIC, other, ct)
    assert ran.code == 0
    lines = ran.out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  (0010,1010) PatientAge: 045Y"))
    assert lines[at + 1] == "    - removed (X Table E.1-1)"
    assert lines[at + 2] == "    + kept: 045Y (K kept by the policy: stratification, DPO-1)"
    changed = [line.split(" ")[2] for line in lines if line.startswith("  (")]
    assert changed == ["(0010,0010)", "(0010,0020)", "(0010,1010)"]
    ids = [line.split()[2] for line in lines if line.startswith(("    - replaced: DEMO-", "    + replaced: "))]
    assert ids[0] == f"DEMO-{ids[1]}"
    assert "1 of 1 files come out otherwise" in ran.out


def test_a_file_that_one_policy_holds_is_said_to_be_held(command: Command, tmp_path: Path, ct: Path) -> None:
    policy = tmp_path / "strict.yaml"
    policy.write_text(BASIC.read_text().partition("  not_assessed:")[0])
    ran = command("policy", "diff", BASIC, policy, ct)
    assert ran.code == 1
    assert "- would leave" in ran.out.splitlines()
    assert "+ held: not_assessed" in ran.out.splitlines()
    assert "no check of this policy can judge" in ran.out


def test_long_lists_of_attributes_are_cut_and_can_be_had_whole(command: Command, tmp_path: Path) -> None:
    policy = tmp_path / "full.yaml"
    text = BASIC.read_text().replace("modified-dates", "full-dates")
    policy.write_text("".join(line for line in text.splitlines(True) if not line.startswith("  dates:")))
    short, whole = (command("policy", "diff", BASIC, policy, *more) for more in ((), ("--tags",)))
    assert "more (--tags)" in short.out
    assert "more (--tags)" not in whole.out
    assert "StudyDate" in whole.out
    document = command("policy", "diff", BASIC, policy, "--json").json
    assert sum(whole.out.count(f"{entry['keyword']}") > 0 for entry in document["attributes"]) > 150
    assert {entry["second"].partition(",")[0] for entry in document["attributes"]} >= {"kept"}


def test_the_document_for_scripts_holds_the_same(command: Command, other: Path, ct: Path) -> None:
    document = command("policy", "diff", BASIC, other, ct, "--json").json
    assert {"key": "retain.originals_days", "first": "30", "second": "7"} in document["sections"][1]["keys"]
    assert document["attributes"] == [
        {
            "tag": "00101010",
            "keyword": "PatientAge",
            "first": "removed",
            "second": "kept, 090Y for everybody older",
        }
    ]
    age = next(element for element in document["files"][0]["elements"] if element["path"] == "00101010")
    assert age == {"path": "00101010", "before": "045Y", "first": None, "second": "045Y"}
