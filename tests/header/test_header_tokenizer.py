"""The tokenizer against pydicom as an independent reader of the same bytes, and against malformed ones."""

from pathlib import Path

import pydicom
import pytest
from header_objects import ct_base, encoded, explicit, implicit, item
from hypothesis import given
from hypothesis import strategies as st
from pydicom.dataelem import RawDataElement

from gateway.errors import StudyError
from gateway.header.elements import (
    EXPLICIT_BIG,
    EXPLICIT_LITTLE,
    IMPLICIT_LITTLE,
    MAX_DEPTH,
    Malformed,
    Reader,
)
from gateway.header.encoding import element, header, sequence
from gateway.header.source import open_source, top_level


def test_every_top_level_value_is_where_pydicom_finds_it(pydicom_files: list[Path]) -> None:
    compared = 0
    for path in pydicom_files:
        try:
            source = open_source(path)
            _, elements, _ = top_level(source)
        except StudyError:
            continue
        if source.deflated:
            continue
        ds = pydicom.dcmread(path)
        raw = {int(tag): ds.get_item(tag) for tag in ds._dict if tag.element}
        mine = {one.tag: one for one in elements if one.tag & 0xFFFF}
        assert mine.keys() >= raw.keys(), path.name
        for tag, theirs in raw.items():
            if isinstance(theirs, RawDataElement) and theirs.value is not None and not mine[tag].undefined:
                value = bytes(source.data[mine[tag].start : mine[tag].end])
                assert value == theirs.value, (path.name, f"{tag:08X}")
                compared += 1
    assert compared > 5000


@pytest.mark.parametrize(
    ("syntax", "data"),
    [
        (EXPLICIT_LITTLE, explicit(0x00100010, "PN", b"A^B ")),
        (IMPLICIT_LITTLE, implicit(0x00100010, b"A^B ")),
        (EXPLICIT_BIG, b"\x00\x10\x00\x10PN\x00\x04A^B "),
    ],
)
def test_an_element_is_read_in_each_encoding_as_it_is_written(syntax: object, data: bytes) -> None:
    assert element(syntax, 0x00100010, "PN", b"A^B") == data  # type: ignore[arg-type]
    (one,) = Reader(data, syntax).elements(0, len(data))  # type: ignore[arg-type]
    assert (one.tag, data[one.start : one.end]) == (0x00100010, b"A^B ")


def test_a_short_vr_that_outgrows_its_length_field_is_written_as_unknown() -> None:
    assert header(EXPLICIT_LITTLE, 0x00081160, "IS", 70000) == explicit(0x00081160, "UN", b"")[:8] + b"\x70\x11\x01\x00"


@pytest.mark.parametrize(
    "data",
    [
        b"\x10\x00\x10\x00PN\x05\x00ab",  # length beyond the end
        b"\x10\x00\x10\x00pn\x00\x00",  # no VR
        b"\x10\x00\x10",
        explicit(0x00082218, "SQ", b"")[:8] + b"\xff\xff\xff\xff" + item(b""),  # never delimited
        explicit(0x7FE00010, "OB", b"")[:8] + b"\xff\xff\xff\xff" + item(b"ab"),
        b"\xfe\xff\x00\xe0UL\x00\x00",  # an item outside a sequence
    ],
)
def test_broken_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        Reader(data, EXPLICIT_LITTLE).elements(0, len(data))


def test_nesting_is_bounded() -> None:
    deep = b""
    for _ in range(MAX_DEPTH + 2):
        deep = explicit(0x00082218, "SQ", b"")[:8] + b"\xff\xff\xff\xff" + b"\xfe\xff\x00\xe0\xff\xff\xff\xff" + deep
        deep += b"\xfe\xff\x0d\xe0\0\0\0\0" + b"\xfe\xff\xdd\xe0\0\0\0\0"
    with pytest.raises(Malformed):
        Reader(deep, EXPLICIT_LITTLE).elements(0, len(deep))


def test_explicit_elements_in_a_data_set_that_says_implicit_do_not_hide_in_a_length() -> None:
    data = explicit(0x00080005, "CS", b"ISO_IR 100") + explicit(0x00100010, "PN", b"A^B ") + bytes(0x00200000)
    with pytest.raises(Malformed):  # "CS" + length 10 read as a length is 676 kB, which this data set has
        Reader(data, IMPLICIT_LITTLE).element(0, len(data))


@given(st.binary(max_size=200), st.sampled_from([IMPLICIT_LITTLE, EXPLICIT_LITTLE, EXPLICIT_BIG]))
def test_any_bytes_are_elements_or_malformed(data: bytes, syntax: object) -> None:
    try:
        elements = Reader(data, syntax).elements(0, len(data))  # type: ignore[arg-type]
    except Malformed:
        return
    assert [one.stop for one in elements][-1:] == ([len(data)] if data else [])


def test_a_sequence_is_written_with_defined_lengths() -> None:
    body = explicit(0x00080100, "SH", b"AB")
    assert sequence(EXPLICIT_LITTLE, 0x00082218, [body]) == explicit(0x00082218, "SQ", item(body))


def test_a_large_file_is_mapped_and_read_alike(tmp_path: Path) -> None:
    ds = ct_base()
    ds.PixelData = bytes(3 << 20)
    (tmp_path / "big.dcm").write_bytes(encoded(ds))
    reader, elements, trailing = top_level(open_source(tmp_path / "big.dcm"))
    assert not trailing
    assert elements[-1].end - elements[-1].start == 3 << 20
    assert reader.syntax == EXPLICIT_LITTLE
