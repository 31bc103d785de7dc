"""`policy preview`: before and after of real files, on the terminal and as a page, and nothing left behind.

Objects here are synthetic, or those that pydicom installs.
"""

from __future__ import annotations

import io
import os
import stat
import tempfile
from pathlib import Path

import pydicom
import pytest
from commands import Command, as_process
from previewing import WorkersHere
from pydicom.data import get_testdata_file
from rich.console import Console

import gateway.app.workers
from gateway.cli import output, policy_preview, run
from gateway.cli.output import console
from gateway.settings import SHIPPED_POLICIES, Home

SECRET = "ZZSYNTH"


@pytest.fixture(autouse=True)
def workers_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool costs seconds to start; the tests that run a process, and those of `Workers`, have a real one."""
    monkeypatch.setattr(gateway.app.workers, "Workers", WorkersHere)


@pytest.fixture
def ct(tmp_path: Path) -> Path:
    ds = pydicom.dcmread(str(get_testdata_file("CT_small.dcm")))
    ds.PatientName, ds.PatientID, ds.InstitutionName = f"{SECRET}^LEAKTEST", "ZZ-4711", "ZZ Hospital"
    ds.save_as(tmp_path / "ct.dcm")
    return tmp_path / "ct.dcm"


def beside(path: Path, name: str, **values: object) -> Path:
    """A copy in the same study, with other values."""
    ds = pydicom.dcmread(path)
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"{ds.SOPInstanceUID}.1"
    for keyword, value in values.items():
        setattr(ds, keyword, value)
    ds.save_as(path.with_name(name))
    return path.with_name(name)


def test_a_file_is_shown_element_by_element_with_the_rule_and_the_verdict(command: Command, ct: Path) -> None:
    ran = command("policy", "preview", "research-basic", ct)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    at = next(i for i, line in enumerate(lines) if "(0010,0010)" in line)
    assert lines[at].startswith("~ ")
    assert f"- {SECRET}^LEAKTEST" in lines[at]
    assert "Table E.1-1; the keyed pseudonym" in lines[at]
    assert "+ DEMO-" in lines[at + 1]
    assert any("(0008,0080)" in line and line.startswith("- ") and "ZZ Hospital" in line for line in lines)
    assert any("(0028,0010)" in line and line.startswith("= ") and "128" in line for line in lines)
    assert "cleared by the gate" in ran.out
    assert "1 file: 1 would leave, 0 would be held" in ran.out
    assert "a key of this run only" in ran.out


def test_without_a_terminal_there_is_no_colour(ct: Path) -> None:
    ran = as_process("policy", "preview", "research-basic", ct)
    assert ran.code == 0
    assert "- ZZ Hospital" in ran.out
    assert "\x1b" not in ran.out


def test_on_a_terminal_what_goes_is_red_and_what_comes_is_green(ct: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=140)
    for module in (output, policy_preview):
        monkeypatch.setattr(module, "console", terminal)
    assert run(["policy", "preview", "research-basic", str(ct)]) == 0
    said = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[31mZZ Hospital" in said
    assert "\x1b[32mDEMO-" in said


def test_a_narrow_terminal_gets_the_same_in_lines(command: Command, ct: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 72)
    ran = command("policy", "preview", "research-basic", ct, "--changes")
    assert ran.code == 0
    assert all(len(line) <= 72 for line in ran.out.splitlines() if line.startswith(("~ ", "- ", "+ ", "  ")))
    assert "~ (0010,0010) PN PatientName" in ran.out
    assert "(0028,0010)" not in ran.out  # it stays, and --changes leaves that out


def test_nothing_is_stored_or_logged(
    command: Command, ct: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = ct.read_bytes()
    ran = command("policy", "preview", "research-basic", ct)
    assert ran.code == 0
    assert SECRET not in ran.err
    assert list(scratch.iterdir()) == []
    assert ct.read_bytes() == before


def test_with_a_home_the_pseudonyms_are_those_that_scrub_makes(
    command: Command, ct: Path, home: Home, tmp_path: Path
) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}

    before = contents()
    ran = command("policy", "preview", "research-basic", ct, "--home", home.root, "--project", "study-a")
    assert ran.code == 0
    assert contents() == before  # not even a line in the ledger
    done = command(
        "scrub", ct, tmp_path / "out", "--policy", "research-basic", "--home", home.root, "--project", "study-a"
    )
    assert done.code == 0
    (written,) = (tmp_path / "out").rglob("*.dcm")
    sent = pydicom.dcmread(written)
    assert f"+ {sent.PatientID}" in ran.out
    assert f"+ {sent.StudyDate}" in ran.out
    assert str(sent.SOPInstanceUID) in ran.out.replace("\n", "").replace(" ", "")


def test_the_page_holds_the_values_and_is_its_owners_alone(command: Command, ct: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    ran = command("policy", "preview", "research-basic", ct, "--html", page)
    assert ran.code == 0
    assert SECRET not in ran.out  # on the page only
    assert "delete it when you have read it" in ran.out
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert SECRET in page.read_text("utf-8")
    refused = command("policy", "preview", "research-basic", ct, "--html", ct)
    assert refused.code == 2
    assert "one of the files to look at" in refused.err


def test_what_is_held_says_why_and_ends_with_1(command: Command, tmp_path: Path) -> None:
    report = get_testdata_file("reportsi.dcm")
    (tmp_path / "no.dcm").write_bytes(b"not DICOM at all")
    ran = command("policy", "preview", "research-basic", report, tmp_path / "no.dcm")
    assert ran.code == 1
    assert "held: structured_content" in ran.out
    assert "held: unreadable_object" in ran.out
    assert "2 files: 0 would leave, 2 would be held" in ran.out
    assert "use a policy that has it" in ran.out


def test_one_object_that_cannot_be_cleaned_holds_its_study_and_is_named(command: Command, ct: Path) -> None:
    bad = beside(ct, "bad.dcm", SOPClassUID="1.2.3.4.5.6.7")  # a private SOP class
    ran = command("policy", "preview", "research-basic", ct, bad)
    assert ran.code == 1
    assert "held: private_sop_class" in ran.out
    assert f"held with its study, because of {bad}" in ran.out
    assert "ZZ Hospital" in ran.out  # what would become of the other one is shown all the same


def test_two_patients_in_one_study_are_held(command: Command, ct: Path) -> None:
    other = beside(ct, "other.dcm", PatientID="ZZ-4712")
    ran = command("policy", "preview", "research-basic", ct, other)
    assert ran.code == 1
    assert ran.out.count("held: mixed_patients") == 2


def test_the_gates_verdict_is_part_of_the_preview(command: Command, ct: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    text = (SHIPPED_POLICIES / "research-basic.yaml").read_text()
    policy.write_text(text.partition("  not_assessed:")[0])
    ran = command("policy", "preview", policy, ct)
    assert ran.code == 1
    assert "held by the gate: not_assessed" in ran.out


def test_folders_are_read_to_the_bottom_and_links_are_not_followed(command: Command, ct: Path, tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    os.rename(ct, deep / "ct.dcm")
    (tmp_path / "a" / "link.dcm").symlink_to(deep / "ct.dcm")
    ran = command("policy", "preview", "research-basic", tmp_path / "a")
    assert "1 file: 1 would leave" in ran.out
    (tmp_path / "empty").mkdir()
    for missing in (tmp_path / "none", tmp_path / "empty"):
        assert command("policy", "preview", "research-basic", missing).code == 2


@pytest.mark.parametrize("name", ["preview", "diff", "conformance", "drift"])
def test_every_command_has_a_help_that_says_what_it_does(command: Command, name: str) -> None:
    ran = command("policy", name, "--help")
    assert ran.code == 0
    assert f"Usage: deid-gateway policy {name}" in ran.out
    assert len(ran.out.split()) > 60
    assert command("policy", name).code == 2


def test_a_policy_with_faults_is_refused_with_line_and_hint(command: Command, ct: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "name: p\nextends: [ps3.15-basic@2026d]\ncolour: green\ngate: {study: {residual_identifiers: {}}}\n"
    )
    for words in (("preview", policy, ct), ("diff", policy, policy), ("conformance", policy)):
        ran = command("policy", *words)
        assert ran.code == 2
        assert f"{policy}:3: unknown key colour" in ran.err


def test_what_a_pixel_stage_changed_is_told_with_its_name_and_pictures(
    command: Command, ct: Path, tmp_path: Path
) -> None:
    policy, page = tmp_path / "p.yaml", tmp_path / "p.html"
    text = (SHIPPED_POLICIES / "research-basic.yaml").read_text()
    policy.write_text(text + "\npixels:\n  - transcode: {to: rle}\n")
    ran = command("policy", "preview", policy, ct, "--changes")
    assert ran.code == 0
    lines = ran.out.splitlines()
    pixels = next(line for line in lines if "(7FE0,0010)" in line)
    assert pixels.startswith("~ ")
    assert "pixel stages of the policy" in pixels
    assert "encapsulated" in lines[lines.index(pixels) + 1]
    assert "  pixel stage transcode: 1 frames" in lines
    assert next(line for line in lines if "(0010,0010)" in line).rstrip().endswith("the keyed pseudonym")
    assert command("policy", "preview", policy, ct, "--html", page).code == 0
    assert page.read_text("utf-8").count('<img src="data:image/png;base64,') == 1


def test_lookup_tables_are_followed_and_who_is_not_in_them_is_held(command: Command, ct: Path, tmp_path: Path) -> None:
    policy, table = tmp_path / "p.yaml", tmp_path / "people.csv"
    text = (SHIPPED_POLICIES / "research-basic.yaml").read_text()
    policy.write_text(text.replace("pseudonym: keyed, prefix: DEMO-", "pseudonym: lookup, table: people.csv"))
    table.write_text("patient_id,pseudonym\nZZ-4711,SUBJECT-7\n")
    table.chmod(0o600)
    ran = command("policy", "preview", policy, ct)
    assert ran.code == 0
    assert "+ SUBJECT-7" in ran.out
    table.write_text("patient_id,pseudonym\nsomebody,SUBJECT-8\n")
    ran = command("policy", "preview", policy, ct)
    assert ran.code == 1
    assert "held: patient_unlisted" in ran.out


def test_an_instance_that_is_there_twice_counts_once_and_two_versions_of_it_hold_the_study(
    command: Command, ct: Path
) -> None:
    copy = ct.with_name("copy.dcm")
    copy.write_bytes(ct.read_bytes())
    ran = command("policy", "preview", "research-basic", ct, copy)
    assert ran.code == 0
    assert ran.out.count("cleared by the gate") == 2
    ds = pydicom.dcmread(ct)
    ds.KVP = "80"
    ds.save_as(copy)
    ran = command("policy", "preview", "research-basic", ct, copy)
    assert ran.code == 1
    assert ran.out.count("held: conflicting_instance") == 2
    assert ran.out.count("ZZ Hospital") == 2  # shown all the same
