"""Every real file at hand: each is cleaned or held with a reason; a cleaned one is whole, valid and else unchanged."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pydicom
import pytest
from header_objects import BASIC, MODIFIED, PSEUDONYMS, policy
from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset

from gateway.errors import StudyError
from gateway.header import scrub_file
from gateway.header.dictionary import dictionary
from gateway.policy import HeaderPolicy, load_table

RETAINING = policy(
    *("retain-uids", "retain-device-identity", "retain-institution-identity", "retain-patient-characteristics"),
    "retain-longitudinal-full-dates",
)
TECHNICAL = frozenset({"US", "SS", "UL", "SL", "FL", "FD", "AT", "CS", "DS", "IS", "OB", "OW", "OF", "OD", "OV"})
OURS = frozenset({0x00120062, 0x00120064, 0x00280303})
GONE = frozenset({0x00080001})  # Length to End: wrong afterwards


def scrubbed(path: Path, target: Path, header: HeaderPolicy) -> str:
    """The reason for holding, or "" when `target` was written."""
    try:
        scrub_file(path, target, policy=header, pseudonyms=PSEUDONYMS)
    except StudyError as error:
        return error.reason
    return ""


def raw(ds: Dataset, tag: int) -> object:
    item = ds.get_item(tag)
    return (item.value, item.VR) if isinstance(item, RawDataElement) else item.value


def is_number(value: bytes | None) -> bool:
    return not set(value or b"") - set(b"0123456789+-.eE \\\0")


def technical_differences(before: Dataset, after: Dataset, path: str = "") -> list[str]:
    """Where `after` lacks or changes a technical attribute that no row of the table names, at any depth."""
    table, entries = load_table(), dictionary()
    found = []
    for tag in map(int, before._dict):
        entry = entries.get(tag)
        if entry is None or f"{tag:08X}" in table or tag & 0xFFFF == 0 or tag in OURS | GONE:
            continue
        here = f"{path}/{entry.keyword}"
        if entry.vr == "SQ" and tag not in (0x00080300, 0x04000500, 0x4FFE0001):
            pairs = zip(before[tag].value, after[tag].value, strict=True) if tag in after else [(before, Dataset())]
            for one, other in pairs:
                found += technical_differences(one, other, here)
        elif entry.vr in ("IS", "DS") and isinstance(one := raw(before, tag), tuple) and not is_number(one[0]):
            continue  # badVR.dcm: text where a number should be is not kept
        elif set(entry.vr.split(" or ")) & TECHNICAL and (tag not in after or raw(before, tag) != raw(after, tag)):
            found.append(here)
    return found


def identifiers(ds: Dataset) -> set[bytes]:
    """Long values that name this patient, study or instance and nothing else."""
    words = {str(ds.get(keyword, "")) for keyword in ("SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID")}
    words |= {str(ds.get(keyword, "")) for keyword in ("PatientID", "AccessionNumber", "PatientAddress")}
    return {word.encode() for word in words if len(word) >= 8}


def check(files: list[Path], tmp_path: Path, header: HeaderPolicy, *, at_least: int) -> Counter[str]:
    reasons: Counter[str] = Counter()
    target = tmp_path / "out.dcm"
    for path in files:
        reason = scrubbed(path, target, header)
        reasons[reason] += 1
        if reason:
            continue
        before, after = pydicom.dcmread(path, force=True), pydicom.dcmread(target)
        assert technical_differences(before, after) == [], path.name
        assert all(not tag.is_private for tag in after._dict), path.name
        assert after.file_meta.MediaStorageSOPInstanceUID == after.SOPInstanceUID
        if before.file_meta.get("TransferSyntaxUID"):
            assert after.file_meta.TransferSyntaxUID == before.file_meta.TransferSyntaxUID
        if "retain-uids" not in header.options:
            out = target.read_bytes()
            assert [word for word in identifiers(before) if word in out] == [], path.name
    assert reasons[""] >= at_least
    return reasons


@pytest.mark.parametrize("header", [BASIC, MODIFIED, RETAINING])
def test_pydicoms_files_are_cleaned_or_held(pydicom_files: list[Path], tmp_path: Path, header: HeaderPolicy) -> None:
    reasons = check(pydicom_files, tmp_path, header, at_least=130)
    # eight directories; reports; files without Patient ID, without Study UID, truncated, or in another syntax than said
    assert reasons.keys() == {"", "dicomdir", "structured_content", "missing_patient_id", "unreadable_object"}
    assert reasons["dicomdir"] == 8


@pytest.mark.shared
def test_the_shared_files_are_cleaned_or_held(shared_data: Path, tmp_path: Path) -> None:
    files = sorted((shared_data / "dicom").rglob("*.dcm"))
    check(files, tmp_path, MODIFIED, at_least=120)


def test_a_second_run_gives_the_same_bytes(pydicom_files: list[Path], tmp_path: Path) -> None:
    for path in pydicom_files[::5]:
        first, second = tmp_path / "a", tmp_path / "b"
        if scrubbed(path, first, MODIFIED) == "":
            scrubbed(path, second, MODIFIED)
            assert first.read_bytes() == second.read_bytes()


def errors_of(path: Path) -> set[str]:
    """What dciodvfy (dicom3tools) calls an error of the IOD, without the values it quotes."""
    done = subprocess.run(["dciodvfy", "-new", path], capture_output=True, check=False)
    lines = (done.stderr + done.stdout).decode("latin-1").splitlines()
    return {re.sub(r"= <.*", "", line) for line in lines if line.startswith("Error")}


@pytest.mark.peer
@pytest.mark.parametrize("header", [BASIC, MODIFIED, RETAINING])
def test_a_cleaned_file_has_no_error_that_its_original_had_not(
    pydicom_files: list[Path], tmp_path: Path, header: HeaderPolicy
) -> None:
    if shutil.which("dciodvfy") is None:
        pytest.skip("dciodvfy is not installed: apt-get install dicom3tools")
    target = tmp_path / "out.dcm"
    new = {}
    compared = 0
    for path in pydicom_files:
        if scrubbed(path, target, header) == "":
            compared += 1
            found = errors_of(target)
            if found and (more := found - errors_of(path)):
                new[path.name] = more
    assert new == {}
    assert compared > 130
