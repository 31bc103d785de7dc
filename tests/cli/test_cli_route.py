"""`route test` says what `serve` would do and why, without a value of the files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pydicom
import pytest
from commands import Command
from pydicom.data import get_testdata_file
from pydicom.uid import generate_uid
from running import PACS, policies_for, running, send, the_job, wait_idle

from gateway.policy import cohort_hash
from gateway.pseudonyms import Keys
from gateway.settings import SHIPPED_POLICIES, Home

CT = Path(str(get_testdata_file("CT_small.dcm")))


def written(path: Path, **changes: object) -> Path:
    """CT_small with changes; None takes an attribute away."""
    ds = pydicom.dcmread(CT)
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    for keyword, value in changes.items():
        if value is None:
            delattr(ds, keyword)
        else:
            setattr(ds, keyword, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    ds.save_as(path)
    return path


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    shutil.copytree(SHIPPED_POLICIES, tmp_path / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "policies"


def with_rules(folder: Path, *rules: dict[str, Any]) -> Path:
    """routes.yaml of these `when`s, r1, r2 …, all to research-basic."""
    target = {"project": "demo", "policy": "research-basic", "destination": "research-archive"}
    body = [{"name": f"r{n}", "when": when, "targets": [target]} for n, when in enumerate(rules, 1)]
    (folder / "routes.yaml").write_text(json.dumps({"routes": body}))
    return folder


def test_the_rule_the_policy_the_project_and_the_destination(command: Command) -> None:
    ran = command("route", "test", CT)
    assert ran.code == 0
    assert "rule cross-sectional: fires" in ran.out
    assert (
        "project demo, policy research-basic, destination research-archive (dicom://ARCHIVE@127.0.0.1:11113)" in ran.out
    )
    (study,) = command("route", "test", CT, "--json").json["studies"]
    assert (study["rule"], study["held"], study["reason"]) == ("cross-sectional", False, "")
    assert {entry["aspect"] for entry in study["jobs"][0]["accepted"]} == {
        "burned_in_text",
        "image_identity",
        "recognizable_features",
    }


def test_each_rule_before_it_says_which_predicate_failed_and_no_value(command: Command, policies: Path) -> None:
    with_rules(
        policies,
        {"modality": "CT", "description": "*brain*"},
        {"modality": "CT", "body_part": "HEAD"},
        {"manufacturer": "GE MEDICAL SYSTEMS"},
    )
    path = written(policies.parent / "a.dcm", StudyDescription="ZZSECRET", SeriesDescription="")
    ran = command("route", "test", path, "--policies", policies, "--json")
    assert ran.code == 0
    rules = ran.json["studies"][0]["rules"]
    assert [[(p["name"], p["outcome"]) for p in rule["predicates"]] for rule in rules] == [
        [("modality", "matches"), ("description", "differs")],
        [("modality", "matches"), ("body_part", "absent")],
        [("manufacturer", "matches")],
    ]
    assert rules[0]["predicates"][1]["tags"] == ["(0008,1030)", "(0008,103E)"]
    plain = command("route", "test", path, "--policies", policies)
    assert "ZZSECRET" not in plain.out + plain.err + ran.out
    assert "description (0008,1030), (0008,103E), asks for *brain*: no instance has a value" in plain.out
    shown = command("route", "test", path, "--policies", policies, "--show-values")
    assert "found: ZZSECRET" in shown.out


def test_files_of_one_study_are_judged_together_and_studies_apart(command: Command, tmp_path: Path) -> None:
    one, other = generate_uid(), generate_uid()
    written(tmp_path / "in/1.dcm", StudyInstanceUID=one, Modality="SR")
    written(tmp_path / "in/2.dcm", StudyInstanceUID=one, Modality="MR")
    written(tmp_path / "in/3.dcm", StudyInstanceUID=other, Modality="SR")
    (tmp_path / "in/notes.txt").write_text("not DICOM")
    ran = command("route", "test", tmp_path / "in", "--json")
    found = {tuple(Path(f).name for f in study["files"]): study["rule"] for study in ran.json["studies"]}
    assert found == {("1.dcm", "2.dcm"): "cross-sectional", ("3.dcm",): "documents-and-annotations"}
    assert [entry["reason"] for entry in ran.json["left_out"]] == ["not_dicom"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Modality": "ZZ"}, "no_route"),
        ({"PatientID": ""}, "missing_patient_id"),
        ({"StudyInstanceUID": None}, "unreadable_object"),
    ],
)
def test_what_would_be_held_before_a_policy_says_so(
    command: Command, tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    ran = command("route", "test", written(tmp_path / "a.dcm", **changes))
    assert ran.code == 1
    assert f"{reason}: " in ran.out
    (study,) = command("route", "test", tmp_path / "a.dcm", "--json").json["studies"]
    assert (study["rule"], study["reason"], study["held"], study["jobs"]) == (None, reason, True, [])


def test_two_patients_in_a_study_and_a_conflict_are_foreseen(command: Command, tmp_path: Path) -> None:
    written(tmp_path / "two/1.dcm", PatientID="A")
    written(tmp_path / "two/2.dcm", PatientID="B")
    assert command("route", "test", tmp_path / "two", "--json").json["studies"][0]["reason"] == "mixed_patients"
    uid = generate_uid()
    for number in (1, 2):
        path = written(tmp_path / f"same/{number}.dcm", InstanceNumber=number)
        ds = pydicom.dcmread(path)
        ds.SOPInstanceUID = uid
        ds.save_as(path)
    (study,) = command("route", "test", tmp_path / "same", "--json").json["studies"]
    assert (study["reason"], Path(study["at"]).name) == ("conflicting_instance", "2.dcm")


def test_what_no_check_judges_is_foreseen(command: Command, tmp_path: Path) -> None:
    """XC is routed to research-basic, which accepts nothing unjudged for photographs."""
    ran = command("route", "test", written(tmp_path / "a.dcm", Modality="XC"))
    assert ran.code == 1
    assert "would be held: not_assessed; no check judges recognizable_features of XC in 1 instance(s)" in ran.out


def test_what_the_header_does_not_clean_is_foreseen_and_what_it_takes_out_is_not(
    command: Command, tmp_path: Path
) -> None:
    """Without structured content a report is held by its class. A private block or an overlay is gone before the gate
    looks: a registration that has one is not called held for it."""
    sr = written(tmp_path / "sr.dcm", Modality="SR", SOPClassUID="1.2.840.10008.5.1.4.1.1.88.11")
    ran = command("route", "test", sr)
    assert (ran.code, "would be held: structured_content" in ran.out) == (1, True)
    told = ("modality=SR", "--with", "sop_class=BasicTextSRStorage")
    assert command("route", "test", "--with", *told, "--json").json["studies"][0]["jobs"][0]["reason"] == (
        "structured_content"
    )
    ds = pydicom.dcmread(written(tmp_path / "reg.dcm", Modality="REG", SOPClassUID="1.2.840.10008.5.1.4.1.1.66.1"))
    del ds.PixelData
    ds.private_block(0x0029, "ACME", create=True).add_new(0x10, "OB", bytes(4096))
    ds.add_new(0x60003000, "OW", bytes(64))
    ds.save_as(tmp_path / "reg.dcm")
    ran = command("route", "test", tmp_path / "reg.dcm", "--json")
    assert (ran.code, ran.json["studies"][0]["jobs"][0]["not_assessed"]) == (0, [])


def test_ae_titles_are_the_senders_not_those_of_the_file(command: Command, policies: Path, tmp_path: Path) -> None:
    with_rules(policies, {"calling_ae": "PACS"}, {"called_ae": "DEID", "modality": "CT"})
    path = tmp_path / "a.dcm"
    ds = pydicom.dcmread(CT)
    ds.file_meta.SourceApplicationEntityTitle, ds.file_meta.ReceivingApplicationEntityTitle = "OLD", "X"
    ds.save_as(path)

    def rule(*words: object) -> Any:
        return command("route", "test", path, "--policies", policies, "--json", *words).json["studies"][0]["rule"]

    assert rule("--ae", "PACS") == rule("--ae", " PACS ") == "r1"
    assert command("route", "test", path, "--ae", "SEVENTEEN-LETTERS").code == 2
    assert rule("--ae", "CT1") == "r2"  # DEID_AE_TITLE is what it calls us by
    assert rule("--ae", "CT1", "--called", "Y") is None
    assert rule() is None  # what the file's own meta says
    said = command("route", "test", written(tmp_path / "b.dcm"), "--policies", policies)
    assert "name the sender with --ae" in said.out
    unknown = command("route", "test", tmp_path / "b.dcm", "--policies", policies, "--json").json["studies"][0]
    assert unknown["rule"] is None
    assert not unknown["held"]


def test_an_ae_title_alone_says_what_may_fire(
    command: Command, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_ALLOWED_PEERS", "PACS@10.0.0.7")
    with_rules(policies, {"calling_ae": "CT1"}, {"calling_ae": "PACS", "modality": "CT"}, {"calling_ae": "PACS"})
    ran = command("route", "test", "--ae", "PACS", "--policies", policies, "--json")
    study = ran.json["studies"][0]
    assert (ran.code, study["rule"], study["possible"], ran.json["rejected"]) == (0, None, ["r2"], "")
    assert [rule["outcome"] for rule in study["rules"]] == ["differs", "unknown", "matches"]
    known = command("route", "test", "--ae", "PACS", "--with", "modality=CT", "--policies", policies, "--json").json
    assert known["studies"][0]["rule"] == "r2"
    stranger = command("route", "test", "--ae", "CT9", "--policies", policies)
    assert stranger.code == 1
    assert "add CT9@host to DEID_ALLOWED_PEERS" in stranger.err


def test_a_class_may_be_named_by_its_keyword_and_nonsense_is_refused(command: Command, policies: Path) -> None:
    with_rules(policies, {"sop_class": "CTImageStorage"})
    told = "sop_class=1.2.840.10008.5.1.4.1.1.2"
    for words in (told, "sop_class=CTImageStorage"):
        assert (
            command("route", "test", "--with", words, "--policies", policies, "--json").json["studies"][0]["rule"]
            == "r1"
        )
    for words in (("--with", "modalty=CT"), ("--with", "modality"), (), (CT, "--with", "modality=CT")):
        ran = command("route", "test", *words)
        assert ran.code == 2, words
    assert "did you mean modality?" in command("route", "test", "--with", "modalty=CT").err


def test_a_cohort_is_known_where_the_home_is_named(command: Command, policies: Path, home: Home, keys: Keys) -> None:
    (policies / "cohort.csv").write_text(f"{cohort_hash(keys.cohort, '1CT1')},,\n")
    with_rules(policies, {"in_cohort": "cohort.csv"}, {"modality": "CT"})
    words = ("route", "test", CT, "--policies", policies, "--json")
    assert command(*words, "--home", home.root).json["studies"][0]["rule"] == "r1"
    without = command(*words).json["studies"][0]
    assert (without["rule"], without["possible"]) == (None, ["r1"])


def test_it_says_what_serve_does(command: Command, home: Home, tmp_path: Path) -> None:
    policies = with_rules(
        policies_for(tmp_path / "policies", f"folder:{tmp_path / 'out'}"),
        {"calling_ae": "OTHER"},
        {"called_ae": "DEID", "description": "e+1"},
        {"modality": "CT"},
    )
    with running(home, policies) as gateway:
        dataset = pydicom.dcmread(CT)
        assert send(dataset, gateway.receiver.port) == 0
        wait_idle(gateway)
        routed = the_job(gateway, dataset).route
    study = command("route", "test", CT, "--ae", PACS, "--policies", policies, "--json").json["studies"][0]
    assert study["rule"] == routed == "r2"
