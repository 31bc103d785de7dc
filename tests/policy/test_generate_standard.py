"""The generator of policies/standard: both source forms, the same output, none for a source it does not know."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gateway.policy.standard import FOLDER, load_table, read_dated

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).with_name("part15_fixture.xml")
SOURCE = ROOT.parent / "shared" / "standard"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_standard", ROOT / "tools" / "generate_standard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run(generator: ModuleType, source: Path, into: Path) -> int:
    head, _ = read_dated(FOLDER / "ps3_15_e1_1_2026d.csv")
    return generator.main(["--edition", "2026d", "--taken", head["taken"], "--into", str(into), str(source)])


def test_docbook_rows_equal_those_of_the_shipped_table(generator: ModuleType, tmp_path: Path) -> None:
    assert run(generator, FIXTURE, tmp_path) == 0
    head, rows = read_dated(tmp_path / "ps3_15_e1_1_2026d.csv")
    assert head["edition"] == "2026d"
    assert [row["tag"] for row in rows] == ["0008002A", "00081140", "00100010", "50xxxxxx", "60xx3000", "ggggeeee"]
    _, shipped = read_dated(FOLDER / "ps3_15_e1_1_2026d.csv")
    by_tag = {row["tag"]: row for row in shipped}
    assert rows == [by_tag[row["tag"]] for row in rows]


@pytest.mark.shared
@pytest.mark.skipif(not SOURCE.is_dir(), reason="../shared/standard is not here")
def test_the_shipped_files_are_what_the_generator_writes(generator: ModuleType, tmp_path: Path) -> None:
    assert run(generator, SOURCE, tmp_path) == 0
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == [
        "beyond_e1_1_2026c.csv",
        "missing_in_pydicom_3_0_2.csv",
        "ps3_15_e1_1_2026d.csv",
        "ps3_15_e3_10_1_2026d.csv",
        "ps3_15_e3_4_1_2026d.csv",
        "tcia_private_2024.csv",
        "type_conflicts_2026c.csv",
    ]
    for name in written:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


def test_a_csv_file_alone_gives_the_table_alone(generator: ModuleType, tmp_path: Path) -> None:
    header = ["tag", "keyword", "retired", "in_std_comp_iod", "basic", *generator.CSV_COLUMNS]
    source = tmp_path / "table.csv"
    with open(source, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerow(["00100010", "PatientName", "N", "Y", "Z", *[""] * 10])
    into = tmp_path / "out"
    into.mkdir()
    assert run(generator, source, into) == 0
    assert [path.name for path in into.iterdir()] == ["ps3_15_e1_1_2026d.csv"]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("<para>Z</para>", "<para>Q</para>", "not in Table E.1-1a"),
        ("(0010,0010)", "(0010,00zz)", "tag in a form"),
        ("(0010,0010)", "(0008,002A)", "more than one row"),
        ("Basic Prof.", "Basic Profile Level 1", "headings changed"),
        ('xml:id="table_E.1-1"', 'xml:id="table_E.1-2"', "no table"),
        ("<td><para>C</para></td><td/><td/>", "<td><para>C</para></td><td/>", "cells instead of"),
        ("<td><para>K</para></td>", "<td><para>Y</para></td>", "cell that is not known"),
        ("</book>", "", "line"),
    ],
)
def test_a_source_that_changed_writes_nothing(
    generator: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, says: str
) -> None:
    text = FIXTURE.read_text("utf-8")
    assert before in text
    source = tmp_path / "part15.xml"
    source.write_text(text.replace(before, after, 1), "utf-8")
    into = tmp_path / "out"
    into.mkdir()
    assert run(generator, source, into) == 2
    assert says in capsys.readouterr().err
    assert list(into.iterdir()) == []


def test_the_fixture_has_every_form_of_tag_that_the_table_has() -> None:
    forms = {tag for tag in load_table() if "x" in tag or tag == "ggggeeee"}
    assert forms == {"50xxxxxx", "60xx3000", "60xx4000", "ggggeeee"}
