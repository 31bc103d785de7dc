"""Cleaned reports, states and documents, read by other implementations: no error that the original had not."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pydicom
import pytest
from header_objects import KOS, PSEUDONYMS, encoded, one, policy
from pydicom.dataset import Dataset
from reports import content, measured, report
from test_structured_documents import CDA, PDF, STL, document
from test_structured_references import objects

from gateway.errors import StudyError
from gateway.header import scrub_file
from gateway.policy import HeaderPolicy
from gateway.policy.content_table import load_content_table

OPTIONS = ("clean-structured-content", "clean-graphics", "retain-safe-private")
MORE = {"private": {"dispositions": "tcia", "csa_headers": "clean"}, "encapsulated": "replace"}
HEADERS = (policy(*OPTIONS, **MORE), policy(*OPTIONS, "retain-longitudinal-modified-dates", **MORE))

pytestmark = pytest.mark.peer


def errors_of(path: Path) -> set[str]:
    """What dciodvfy calls an error of the IOD, without the values it quotes and the places among siblings."""
    done = subprocess.run(["dciodvfy", "-new", path], capture_output=True, check=False)
    lines = (done.stderr + done.stdout).decode("latin-1").splitlines()
    found = {re.sub(r"= <.*", "", line) for line in lines if line.startswith("Error")}
    return {re.sub(r"\[\d+\]", "[]", line) for line in found}


def new_errors(source: Path, target: Path, header: HeaderPolicy) -> set[str]:
    scrub_file(source, target, policy=header, pseudonyms=PSEUDONYMS)
    found = errors_of(target)
    return found - errors_of(source) if found else found


def require(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def built() -> list[Dataset]:
    rows = load_content_table().values()
    every = [content(row.value_type, (row.code, row.scheme)) for row in rows]
    aged = content("NUM", ("121033", "DCM"), MeasuredValueSequence=[measured("93", "a")])
    pointer = one(RelationshipType="INFERRED FROM", ReferencedContentItemIdentifier=[1, 3])
    return [
        *objects(),
        report(*every),
        report(*every, content("TEXT", None, ContentSequence=[pointer])),
        report(aged, content("CONTAINER", None, ContentSequence=[content("TEXT", ("121106", "DCM"))])),
        report(content("TEXT", ("113012", "DCM")), content("IMAGE", None), sop_class=KOS),
        document(PDF, "application/pdf", b"%PDF-1.4 LEAKTEST"),
        document(CDA, "text/XML", b"<ClinicalDocument/>"),
        document(STL, "model/stl", bytes(84)),
    ]


@pytest.mark.parametrize("header", HEADERS)
def test_objects_of_every_kind_have_no_new_error(tmp_path: Path, header: HeaderPolicy) -> None:
    require("dciodvfy")
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    found = {}
    for index, ds in enumerate(built()):
        source.write_bytes(encoded(ds))
        if more := new_errors(source, target, header):
            found[index, ds.Modality] = more
    assert found == {}


def cleanable(shared_data: Path, tmp_path: Path) -> list[Path]:
    """Real files, those without a Patient ID with one."""
    files = []
    for path in sorted((shared_data / "dicom").rglob("*.dcm")):
        try:
            ds = pydicom.dcmread(path)
        except pydicom.errors.InvalidDicomError:
            continue
        if "ContentSequence" in ds and not ds.get("PatientID"):
            ds.PatientID = "LEAK0001"
            ds.save_as(tmp_path / path.name)
            files.append(tmp_path / path.name)
        else:
            files.append(path)
    return files


@pytest.mark.shared
@pytest.mark.parametrize("header", HEADERS)
def test_real_files_have_no_new_error(shared_data: Path, tmp_path: Path, header: HeaderPolicy) -> None:
    require("dciodvfy")
    found = {}
    compared = 0
    for path in cleanable(shared_data, tmp_path):
        try:
            more = new_errors(path, tmp_path / "out", header)
        except StudyError:
            continue
        compared += 1
        if more:
            found[path.name] = more
    assert found == {}
    assert compared > 120


@pytest.mark.shared
@pytest.mark.parametrize("header", HEADERS)
def test_dsrdump_reads_every_cleaned_report_that_it_read_before(
    shared_data: Path, tmp_path: Path, header: HeaderPolicy
) -> None:
    require("dsrdump")
    read = 0
    for path in cleanable(shared_data, tmp_path):
        if "ContentSequence" not in pydicom.dcmread(path, stop_before_pixels=True):
            continue
        scrub_file(path, tmp_path / "out", policy=header, pseudonyms=PSEUDONYMS)
        before, after = (subprocess.run(["dsrdump", f], capture_output=True) for f in (path, tmp_path / "out"))
        if before.returncode == 0:
            read += 1
            assert after.returncode == 0, path.name
            assert after.stderr.count(b"\n") <= before.stderr.count(b"\n"), path.name
    assert read >= 3
