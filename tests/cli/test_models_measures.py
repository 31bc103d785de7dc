"""`models measures`: FreeSurfer's tables become embeddings that `audit` reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command
from freesurfer_tables import write_subject

from gateway.audit import read_inputs


def test_measures_of_a_subjects_folder_are_what_audit_reads(command: Command, tmp_path: Path) -> None:
    for name, scale in (("S1", 1.0), ("S2", 1.2)):
        write_subject(tmp_path / "subjects" / name, scale=scale)
    (tmp_path / "subjects" / "fsaverage").mkdir()
    out = tmp_path / "fs.npz"
    ran = command("models", "measures", tmp_path / "subjects", "--out", out)
    assert (ran.code, ran.err) == (0, "")
    (tmp_path / "people.csv").write_text("scan,subject\nS1,a\nS2,b\n")
    data = read_inputs(out, tmp_path / "people.csv")
    assert {name: array.shape for name, array in data.embeddings.items()} == {
        "freesurfer-15": (2, 15),
        "anatcl-descriptors": (2, 204),
        "anatcl-thickness": (2, 68),
        "anatcl-volume": (2, 68),
        "anatcl-area": (2, 68),
    }
    assert data.embeddings["freesurfer-15"][1, 0] == pytest.approx(1.2 * 1500000)
    ran = command("models", "measures", tmp_path, "--out", out)
    assert ran.code == 2
    assert "SUBJECTS_DIR" in ran.err
    write_subject(tmp_path / "subjects" / "S3", skip="insula")
    ran = command("models", "measures", tmp_path / "subjects", "--out", out)
    assert ran.code == 2
    assert "34 regions" in ran.err
