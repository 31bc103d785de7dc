"""Kinds of objects that `bench.fuzz_header` or its review brought up: no crash, no leak, no effect on what follows."""

import struct
from contextlib import suppress
from pathlib import Path

import pydicom
import pytest
from header_objects import (
    BASIC,
    EXPLICIT,
    PLANT,
    PSEUDONYMS,
    ct_base,
    encoded,
    explicit,
    item,
    scrub,
    with_element,
)
from header_series import EVERYTHING, compare

from gateway.errors import StudyError
from gateway.header import repeats, scrub_file
from gateway.policy.private_lists import load_safe_private, vr_of

CONTENT_SEQUENCE, PRIVATE = 0x0040A730, 0x00091001


def nested(tag: int, depth: int, *, undefined: bool, vr: str = "SQ") -> bytes:
    inner = explicit(0x00100010, "PN", b"ZZSYNTH ")
    for _ in range(depth):
        if undefined:
            head = explicit(tag, vr, b"")[:8] + b"\xff\xff\xff\xff"
            end = b"\xfe\xff\x0d\xe0\0\0\0\0\xfe\xff\xdd\xe0\0\0\0\0"
            inner = head + b"\xfe\xff\x00\xe0\xff\xff\xff\xff" + inner + end
        else:
            inner = explicit(tag, vr, item(inner))
    return inner


@pytest.mark.parametrize("depth", [10, 63, 66, 300, 1500])
@pytest.mark.parametrize("tag", [0x00081140, 0x00400555, CONTENT_SEQUENCE, PRIVATE])
@pytest.mark.parametrize("undefined", [True, False])
@pytest.mark.parametrize("vr", ["SQ", "UN"])
def test_sequences_of_any_depth_are_cleaned_removed_or_held(
    tmp_path: Path,
    depth: int,
    tag: int,
    undefined: bool,
    vr: str,
) -> None:
    file = with_element(encoded(ct_base()), nested(tag, depth, undefined=undefined, vr=vr), tag)
    for header in (EVERYTHING, BASIC):
        (tmp_path / "in").write_bytes(file)
        with suppress(StudyError):
            scrub_file(tmp_path / "in", tmp_path / "out", policy=header, pseudonyms=PSEUDONYMS)
            assert not [word for word in PLANT if word in (tmp_path / "out").read_bytes()]
        compare(file, header)


def test_a_code_string_that_repeats_a_number_of_the_object_does_not_stay(tmp_path: Path) -> None:
    ds = ct_base()
    ds.ModalitiesInStudy = ["CT", "LEAK0001"]
    ds.BodyPartExamined, ds.ScanOptions = "CHEST", "HELICAL"
    out = scrub(tmp_path, ds, EVERYTHING)
    assert not out.has_plant()
    assert (out.ds.BodyPartExamined, out.ds.ScanOptions, out.ds.Modality) == ("CHEST", "HELICAL", "CT")
    assert out.ds.ImageType == ct_base().ImageType
    assert "CT" in out.ds.ModalitiesInStudy


def test_a_code_string_with_escapes_in_it_hides_nothing(tmp_path: Path) -> None:
    hidden = explicit(0x00080008, "CS", b"\x1b$B;3\\LEAK0001\\195")
    file = encoded(ct_base())
    shown = explicit(0x00080008, "CS", b"ORIGINAL\\PRIMARY\\AXIAL")
    assert shown in file
    assert not scrub(tmp_path, file.replace(shown, hidden), EVERYTHING).has_plant()


def test_a_text_of_any_length_is_done_with_at_once_and_goes_when_it_is_too_long_to_be_cleaned(tmp_path: Path) -> None:
    for size, stays in ((10_000, True), (4_000_000, False)):
        long = explicit(0x00204000, "UT", b"thorax " * (size // 7 // 2 * 2))
        out = scrub(tmp_path, with_element(encoded(ct_base()), long, 0x00204000), EVERYTHING)
        assert ("ImageComments" in out.ds) is stays


def test_the_character_set_of_a_private_item_that_had_to_go_does_not_outlive_it(tmp_path: Path) -> None:
    creator, group, number = next(key for key in sorted(load_safe_private()) if vr_of(key) == "SQ" and key[1] < 0x4000)
    text = "Thorax Größe Übersicht".encode("latin-1")
    ds = ct_base()
    plain = with_element(encoded(ds), explicit(0x40080300, "ST", text), 0x40080300)
    held = explicit(0x00080005, "CS", b"GB18030 ") + explicit(CONTENT_SEQUENCE, "SQ", item(b"\1"))
    reserved = explicit(group << 16 | 0x10, "LO", creator.encode() + b" " * (len(creator) % 2))
    block = reserved + explicit(group << 16 | 0x1000 | number, "SQ", item(held))
    with_private = with_element(plain, block, group << 16 | 0x1000 | number)
    without, out = scrub(tmp_path, plain, EVERYTHING), scrub(tmp_path, with_private, EVERYTHING)
    assert out.ds.Impressions == without.ds.Impressions == text.decode("latin-1")
    assert compare(with_private, EVERYTHING)


def test_a_length_that_says_another_structure_than_before_is_read_anew() -> None:
    """The same first eight bytes, another value length behind a long VR."""
    repeats.REPEATS.clear()
    long = explicit(0x00204000, "UT", b"A" * 10)
    files = [with_element(encoded(ct_base()), long, 0x00204000)]
    files.append(files[0].replace(long, long[:8] + struct.pack("<I", 8) + b"A" * 8))
    for file in (*files, *files):
        assert compare(file, EVERYTHING)


def test_objects_that_cannot_be_scrubbed_leave_nothing_behind_that_others_see(tmp_path: Path) -> None:
    good = encoded(ct_base())
    bad = with_element(good, explicit(CONTENT_SEQUENCE, "SQ", item(b"")), CONTENT_SEQUENCE)
    for file in (good, bad, good, bad, good):
        assert compare(file, BASIC) == (file is good)
    (tmp_path / "in").write_bytes(good)
    scrub_file(tmp_path / "in", tmp_path / "out", policy=BASIC, pseudonyms=PSEUDONYMS)
    assert pydicom.dcmread(tmp_path / "out").file_meta.TransferSyntaxUID == EXPLICIT
