"""The struct walk and pydicom name the same study for every object; no content raises or costs much memory."""

from __future__ import annotations

import io
import resource
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.filebase import DicomBytesIO
from pydicom.filereader import read_file_meta_info
from pydicom.filewriter import write_dataset
from pydicom.sequence import Sequence

from gateway.receive.identity import WANTED, NotUnderstood, Short, identify, walk
from tests.receive.raw_peer import dataset, element, uid

IMPLICIT, EXPLICIT = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1"
BIG, DEFLATED = "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.1.99"
UIDS = st.from_regex(r"1(\.[1-9][0-9]{0,6}){1,6}", fullmatch=True)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def file_with(path: Path, content: bytes, syntax: str) -> tuple[Path, int]:
    """A PS3.10 file and where its data set begins."""
    value = uid(syntax)
    body = struct.pack("<HH2sH", 2, 0x10, b"UI", len(value)) + value
    meta = b"\0" * 128 + b"DICM" + struct.pack("<HH2sHI", 2, 0, b"UL", 4, len(body)) + body
    path.write_bytes(meta + content)
    return path, len(meta)


def encoded(image: Dataset, syntax: str) -> bytes:
    out = DicomBytesIO()
    out.is_implicit_VR, out.is_little_endian = syntax == IMPLICIT, syntax != BIG
    write_dataset(out, image)
    return out.getvalue()


@st.composite
def datasets(draw: st.DrawFn, depth: int = 2) -> Dataset:
    """Elements before, between and after the wanted ones; sequences of both kinds of length, at depth."""
    image = Dataset()
    if draw(st.booleans()):
        image.SOPInstanceUID = draw(UIDS)
    if draw(st.booleans()):
        image.StudyInstanceUID = draw(UIDS)
    if draw(st.booleans()):
        image.NumberOfStudyRelatedInstances = draw(st.integers(0, 99999))
    image.Modality = "CT"
    image.StudyDescription = draw(st.text("abc XYZ", max_size=20))
    image.add_new(0x00191001, "UN", draw(st.binary(max_size=30)))
    image.add_new(0x7FE00010, "OW", b"\0" * 2 * draw(st.integers(0, 50)))
    if depth:
        for keyword in draw(st.sets(st.sampled_from(["ReferencedStudySequence", "RequestAttributesSequence"]))):
            items = draw(st.lists(datasets(depth=depth - 1), max_size=2))
            for item in items:
                item.is_undefined_length_sequence_item = draw(st.booleans())
            setattr(image, keyword, Sequence(items))
            image[keyword].is_undefined_length = draw(st.booleans())
    return image


@MANY
@given(image=datasets(), syntax=st.sampled_from([IMPLICIT, EXPLICIT, BIG]))
def test_the_walk_finds_what_pydicom_finds(image, syntax):
    content = encoded(image, syntax)
    try:
        found = walk(content, whole=True, syntax=syntax)
    except NotUnderstood:
        assert "StudyInstanceUID" not in image  # nothing else that pydicom writes is beyond it
        return
    assert {tag: value.decode().strip(" \0") for tag, value in found.items()} == {
        tag: str(image[tag].value) for tag in WANTED if tag in image
    }


@MANY
@given(image=datasets(), syntax=st.sampled_from([IMPLICIT, EXPLICIT, BIG]), cut=st.integers(0, 400))
def test_a_head_cut_anywhere_is_short_or_already_enough(image, syntax, cut):
    content = encoded(image, syntax)
    try:
        whole = walk(content, whole=True, syntax=syntax)
    except NotUnderstood:
        return
    try:
        found = walk(content[:cut], whole=False, syntax=syntax)
    except Short:
        return
    assert found == whole


def test_every_dicom_file_of_pydicom_is_named_as_pydicom_names_it(pydicom_files):
    named = 0
    for path in pydicom_files:
        meta = read_file_meta_info(path)
        length = meta.get("FileMetaInformationGroupLength")
        if not length or not meta.get("TransferSyntaxUID"):
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pydicom.config.settings.reading_validation_mode", 0)
            try:
                image = dcmread(path, stop_before_pixels=True)
                expected = str(image.get("StudyInstanceUID", "")), str(image.get("SOPInstanceUID", ""))
            except Exception:  # noqa: BLE001
                continue
        found = identify(path, offset=144 + length, syntax=str(meta.TransferSyntaxUID))
        if not expected[0]:
            assert found is None, path.name
            continue
        assert found is not None, path.name
        assert (found.study_instance_uid, found.sop_instance_uid) == expected
        named += 1
    assert named > 100


@pytest.mark.parametrize("syntax", [IMPLICIT, EXPLICIT, BIG, DEFLATED])
@MANY
@given(content=st.binary(max_size=500), keep=st.integers(0, 80))
def test_no_content_raises(tmp_path, syntax, content, keep):
    path, offset = file_with(tmp_path / "x", dataset()[:keep] + content, syntax)
    identify(path, offset=offset, syntax=syntax)


@MANY
@given(at=st.integers(0, 200), byte=st.integers(0, 255), syntax=st.sampled_from([IMPLICIT, EXPLICIT, BIG]))
def test_no_damaged_object_raises(tmp_path, at, byte, syntax):
    image = Dataset()
    image.SOPInstanceUID, image.StudyInstanceUID = "1.2.3", "1.2"
    image.RequestAttributesSequence = Sequence([Dataset()])
    image["RequestAttributesSequence"].is_undefined_length = True
    image.PatientName = "A^B"
    content = bytearray(encoded(image, syntax))
    content[at % len(content)] = byte
    path, offset = file_with(tmp_path / "x", bytes(content), syntax)
    identify(path, offset=offset, syntax=syntax)


def test_elements_out_of_order_are_found_by_the_slow_way(tmp_path):
    content = element(0x0020, 0x000D, uid("1.2")) + element(0x0008, 0x0018, uid("1.2.3"))
    path, offset = file_with(tmp_path / "x", content, IMPLICIT)
    found = identify(path, offset=offset, syntax=IMPLICIT)
    assert found is not None
    assert (found.study_instance_uid, found.sop_instance_uid) == ("1.2", "1.2.3")


def test_the_wanted_elements_may_lie_beyond_large_private_ones(tmp_path):
    for size in (100_000, 3_000_000, 20_000_000):
        content = element(8, 0x18, uid("1.2.3")) + element(9, 0x1001, b"\0" * size) + dataset()[-12:]
        path, offset = file_with(tmp_path / "x", content, IMPLICIT)
        found = identify(path, offset=offset, syntax=IMPLICIT)
        assert found is not None
        assert found.study_instance_uid == "1.2"


@pytest.mark.parametrize(
    ("count", "expected"),
    [("12", 12), ("12 ", 12), ("", 0), ("-3", 0), ("x", 0), ("99999999999", 0), ("²", 0), ("2147483647", 2147483647)],
)
def test_the_expected_count_is_a_number_or_not_told(tmp_path, count, expected):
    content = dataset() + element(0x20, 0x1208, count.encode("latin-1"))
    path, offset = file_with(tmp_path / "x", content, IMPLICIT)
    found = identify(path, offset=offset, syntax=IMPLICIT)
    assert found is not None
    assert found.expected == expected


@pytest.mark.parametrize("syntax", [IMPLICIT, EXPLICIT])
def test_sequences_nested_100000_deep_are_walked_without_recursion(tmp_path, syntax):
    opened = (
        struct.pack("<HHI", 8, 0x1110, 0xFFFFFFFF)
        if syntax == IMPLICIT
        else struct.pack("<HH2s2xI", 8, 0x1110, b"SQ", 0xFFFFFFFF)
    )
    content = (opened + struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)) * 100_000
    path, offset = file_with(tmp_path / "x", content, syntax)
    assert identify(path, offset=offset, syntax=syntax) is None  # never closed: not readable
    closed = (struct.pack("<HHI", 0xFFFE, 0xE00D, 0) + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)) * 100_000
    study = (
        element(0x20, 0xD, uid("1.2"))
        if syntax == IMPLICIT
        else struct.pack("<HH2sH", 0x20, 0xD, b"UI", 4) + uid("1.2")
    )
    path, offset = file_with(tmp_path / "x", content + closed + study, syntax)
    found = identify(path, offset=offset, syntax=syntax)
    assert found is not None
    assert found.study_instance_uid == "1.2"


def test_a_deflate_bomb_is_inflated_within_bounds(tmp_path):
    """4 GB of zeros in 4 MB, with the study behind them: told to be unreadable, not inflated."""
    deflater = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    out = io.BytesIO()
    out.write(deflater.compress(struct.pack("<HH2s2xI", 8, 1, b"UN", 0xFFFFFFF0)))
    chunk = b"\0" * (1 << 24)
    for _ in range(16):  # 256 MB are as good as 4 GB for what is shown
        out.write(deflater.compress(chunk))
    out.write(deflater.flush())
    path, offset = file_with(tmp_path / "x", out.getvalue(), DEFLATED)
    del chunk
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert identify(path, offset=offset, syntax=DEFLATED) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
