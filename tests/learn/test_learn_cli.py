"""`learn synthesize`: a small cohort from the command line, and what is said when it cannot be made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.learn import app
from gateway.errors import UsageError
from gateway.learn import read_dicom

SMALL = ["synthesize", "brains", "--people", "2", "--sessions", "2", "--spacing", "9", "--seed", "4"]


def test_brains_are_written_and_can_be_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = CliRunner().invoke(app, [*SMALL, "--sequence", "T1", "--sequence", "FLAIR", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "2 synthetic people, 8 series" in ran.output
    cohort = read_dicom(out)
    assert cohort.subjects == ("P00000", "P00001")
    assert sorted({scan.attributes["sequence"] for scan in cohort}) == ["FLAIR", "T1"]
    assert {scan.spacing_mm for scan in cohort} == {(9.0, 9.0, 9.0)}
    assert {scan.load().shape for scan in cohort} == {(20, 25, 21)}


def test_masks_may_be_left_out(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [*SMALL, "--no-masks", "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    assert not any(scan.masks for scan in read_dicom(tmp_path / "out"))
    assert len(list((tmp_path / "out").rglob("*.dcm"))) == 4 * 20


@pytest.mark.parametrize(
    "wrong",
    [["--difficulty", "mild"], ["--difficulty", "nan"], ["--difficulty", "2"], ["--sequence", "PD"]],
    ids=" ".join,
)
def test_what_cannot_be_made_is_a_usage_error(wrong: list[str], tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [*SMALL, "--out", str(tmp_path / "out"), *wrong])
    assert isinstance(ran.exception, UsageError)
    assert not (tmp_path / "out").exists()


def test_help_does_not_load_torch() -> None:
    program = "import sys, gateway.cli.learn; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(("kind", "modality"), [("chest", "CR"), ("fundus", "OP")])
def test_flat_cohorts_are_written_and_read(tmp_path: Path, kind: str, modality: str) -> None:
    arguments = ["synthesize", kind, "--people", "3", "--sessions", "2", "--size", "64", "--out", str(tmp_path / "c")]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    cohort = read_dicom(tmp_path / "c")
    assert (len(cohort), len(cohort.subjects)) == (6, 3)
    assert {scan.attributes["modality"] for scan in cohort} == {modality}
    assert next(iter(cohort)).load().shape == (64, 64)
