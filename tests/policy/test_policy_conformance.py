"""The conformance statement says everything that PS3.15 E.1.1 asks for, and what it says is what the code does."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.app.policy.conformance import PIXEL_OPTIONS, conformance_statement, statement_page
from gateway.app.policy.registry import REGISTRY
from gateway.cli import run
from gateway.header import describe
from gateway.pixels import STAGES
from gateway.policy import Policy, load_policy, load_table
from gateway.policy.conformance import Grid, Listing, Section, Statement, markdown
from gateway.settings import SHIPPED_POLICIES

GATE = "gate: {study: {residual_identifiers: {max: 0}}}\n"
ALL = (
    "header:\n"
    "  options: [retain-longitudinal-modified-dates, retain-safe-private, clean-descriptors, "
    "clean-structured-content, clean-graphics, retain-patient-characteristics, retain-uids]\n"
    '  keep: {InstitutionName: "trial | DPO-1 <b>"}\n'
    "  private: {dispositions: tcia, csa_headers: clean, "
    "keep: [{creator: ACME 1, group: '0029', element: '10', vr: DS, reason: gradients}]}\n"
    "  encapsulated: replace\n"
)
TEXT = "pixels: [{burned_in_text: {}}]\n"
Make = Callable[[str], Policy]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def load(header: str = "") -> Policy:
        path = tmp_path / "p.yaml"
        path.write_text(f"name: p\nextends: [ps3.15-basic@2026d]\n{header}{GATE}")
        return load_policy(path, REGISTRY)

    return load


def section(statement: Statement, title: str) -> Section:
    return next(one for one in statement.sections if title in one.title)


def cells(statement: Statement, title: str) -> list[tuple[str, ...]]:
    return [row for block in section(statement, title).blocks if isinstance(block, Grid) for row in block.rows]


def words(statement: Statement, title: str) -> str:
    parts = []
    for block in section(statement, title).blocks:
        parts += [block] if isinstance(block, str) else list(block.items) if isinstance(block, Listing) else []
    return " ".join(parts)


def test_everything_that_the_standard_asks_for_has_its_section(make: Make) -> None:
    statement = conformance_statement(make(""))
    for asked in (  # PS3.15 E.1.1, what a conformance statement describes
        "Profile and options",
        "Attributes",
        "Replacement values",
        "referential integrity",
        "Dates",
        "Patient characteristics",
        "free text",
        "documents",
        "Private attributes",
        "Pixel data",
        "inserted",
        "Encrypted attributes",
        "Transfer syntaxes",
        "restrictions",
    ):
        assert section(statement, asked).blocks
    assert [one.number for one in statement.sections][:3] == ["1", "2", "3"]
    encrypted = words(statement, "Encrypted")
    assert "no attribute is in an encrypted data set" in encrypted
    assert "no key to select" in encrypted


def test_the_options_that_are_claimed_are_those_of_the_policy(make: Make) -> None:
    claimed = {row[1]: row[2] for row in cells(conformance_statement(make(ALL)), "Profile and options")}
    assert list(claimed) == [str(code) for code in range(113100, 113113)]  # CID 7050, all of it
    assert {code for code, says in claimed.items() if says == "yes"} == {
        "113100",
        "113105",
        "113107",
        "113108",
        "113110",
    }
    assert {code for code, says in claimed.items() if says == "no"} == {
        "113101",
        "113102",
        "113106",
        "113109",
        "113112",
    }
    basic = {row[1]: row[2] for row in cells(conformance_statement(make("")), "Profile and options")}
    assert {code for code, says in basic.items() if says != "no"} == {"113100"}


def test_every_row_of_the_table_is_told_with_what_the_header_does(make: Make) -> None:
    policy = make(ALL)
    rows = {re.sub(r"[(),]", "", row[0]): row for row in cells(conformance_statement(policy), "Table E.1-1")}
    assert rows.keys() == load_table().keys()
    for line in describe(policy.header):
        if line.tag in rows:
            assert rows[line.tag][2:] == (load_table()[line.tag].basic, line.action, line.because)


def test_what_the_table_does_not_list_is_told_too(make: Make) -> None:
    told = {row[1]: row[2] for row in cells(conformance_statement(make("")), "does not list") if len(row) == 4}
    assert told["PatientBirthDateInAlternativeCalendar"].startswith("removed")
    assert told["SOPInstanceUIDOfConcatenationSource"] == "replaced by a keyed UID"
    assert told["Manufacturer"] == "kept"


def test_classes_are_accepted_or_held_as_admission_does(make: Make) -> None:
    def classes(policy: Policy) -> tuple[set[str], dict[str, str]]:
        rows = cells(conformance_statement(policy), "SOP classes")
        return {row[1] for row in rows if len(row) == 2}, {row[1]: row[2] for row in rows if len(row) == 3}

    report, document, speech = ("1.2.840.10008.5.1.4.1.1." + end for end in ("88.33", "104.1", "9.4.1"))
    accepted, held = classes(make(""))
    assert "1.2.840.10008.5.1.4.1.1.2" in accepted
    assert "structured report" in held[report]
    assert "document" in held[document]
    accepted, held = classes(make(ALL))
    assert {report, document} <= accepted
    assert held.keys() >= {speech}


def test_dates_private_attributes_and_reasons_are_those_of_the_policy(make: Make) -> None:
    statement, basic = conformance_statement(make(ALL)), conformance_statement(make(""))
    assert "between -365 and 365, never 0" in words(statement, "Dates")
    assert "is MODIFIED" in words(statement, "Dates")
    assert "is REMOVED" in words(basic, "Dates")
    assert ("ACME 1", "(0029,xx10)", "DS", "gradients") in cells(statement, "Private")
    assert ("ELSCINT1", "(00E1,xx21)", "DS", "DLP") in cells(statement, "Private")
    assert "TCIA" in words(statement, "Private")
    assert words(basic, "Private") == "Every private attribute is removed, with its Private Creator."
    assert ("InstitutionName", "trial | DPO-1 <b>") in cells(statement, "characteristics")
    assert "stay as they are" in words(statement, "integrity")
    assert "keyed HMAC-SHA256" in words(basic, "integrity")


def test_the_dummies_that_are_told_are_the_ones_that_are_written(make: Make) -> None:
    told = {row[0]: row[1] for row in cells(conformance_statement(make("")), "Replacement")}
    assert told["DA"] == "20000101"
    assert told["DT"] == "20000101120000"
    assert told["LO"] == "ANON-…"
    assert told["UR"] == "urn:x-deid:…"
    assert told["US"] == "2 zero bytes"


def test_markdown_keeps_its_tables_whole_and_shows_text_as_text() -> None:
    hostile = "a|b\n<script> *x* [y](z) `code` \\ # ~"
    grid = Grid(("H", "I"), ((hostile, "2"),))
    text = markdown(Statement("T", (Section("1", hostile, (hostile, Listing((hostile,)), grid)),)))
    lines = text.splitlines()
    (row,) = [line for line in lines if line.startswith("| a")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert not re.search(r"(?<!\\)[<*`]", text)
    assert len([line for line in lines if line]) == 7


def test_the_shipped_policys_statement_is_written_as_markdown_and_as_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    basic = SHIPPED_POLICIES / "research-basic.yaml"
    assert run(["policy", "conformance", str(basic)]) == 0
    said = capsys.readouterr().out
    policy = load_policy(basic, REGISTRY)
    assert policy.digest in said
    assert said == markdown(conformance_statement(policy))
    assert run(["policy", "conformance", str(basic), "--html", str(tmp_path / "c.html")]) == 0
    page = (tmp_path / "c.html").read_text("utf-8")
    assert page == statement_page(conformance_statement(policy))
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert run(["policy", "conformance", str(basic), "--html", str(basic)]) == 2


def test_pixel_options_are_claimed_for_the_stages_that_record_them(make: Make) -> None:
    for code, (_, stages) in PIXEL_OPTIONS.items():
        for name, stage in STAGES.items():
            assert (code in inspect.getsource(sys.modules[stage.__module__])) is (name in stages), (code, name)
    claimed = {row[1]: row[2] for row in cells(conformance_statement(make(TEXT)), "Profile and options")}
    assert claimed["113101"].startswith("yes, in the objects")
    assert claimed["113102"] == "no"
    assert "looks for it on every frame" in words(conformance_statement(make(TEXT)), "Pixel data")
