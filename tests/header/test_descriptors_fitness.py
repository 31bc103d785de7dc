"""Text where numbers belong: whether a kept binary attribute is what it says it is (cases.md 4)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from header_objects import IMPLICIT, ct_base, encoded, explicit, implicit, scrub, with_element
from hypothesis import given
from hypothesis import strategies as st

from gateway.header.elements import IMPLICIT_LITTLE, Element, Reader
from gateway.header.fitness import fits

# Table Position (FD), Slice Location Vector (FL 1-n), Bits Stored (US), Frame Increment Pointer (AT 1-n)
TABLE_POSITION, LOCATIONS, BITS_STORED, POINTER = 0x00189327, 0x00182005, 0x00280101, 0x00280009


def element(tag: int, value: bytes, vr: str = "") -> tuple[Element, Reader]:
    """An element without a VR of its own, as implicit VR has it, and a reader of its bytes."""
    data = implicit(tag, value)
    reader = Reader(data, IMPLICIT_LITTLE)
    (found,) = reader.elements(0, len(data))
    return found._replace(vr=vr), reader


def kept(vr: str, tag: int, value: bytes) -> bool:
    return fits(vr, *element(tag, value))


@pytest.mark.parametrize(
    ("vr", "tag", "value"),
    [
        ("FD", TABLE_POSITION, b"LEAKTEST"),
        ("FD", TABLE_POSITION, b"ZZSYNTH "),
        ("FL", LOCATIONS, b"ZZSYNTH^LEAKTEST"),
        ("US", BITS_STORED, b"ZZSYNTH^LEAKTEST"),
        ("US", BITS_STORED, b"DOE^JO"),
        ("AT", POINTER, b"LEAK0001"),
        ("US", BITS_STORED, b"19500131"),
    ],
)
def test_text_where_numbers_belong_does_not_fit(vr: str, tag: int, value: bytes) -> None:
    assert not kept(vr, tag, value)


@pytest.mark.parametrize(
    ("vr", "tag", "value"),
    [
        ("US", BITS_STORED, struct.pack("<H", 12)),
        ("US", BITS_STORED, b"AB"),  # 16961: two letters name nobody
        ("AT", POINTER, struct.pack("<HH", 0x0018, 0x1063)),
        ("FL", LOCATIONS, struct.pack("<4f", -97.5, 0.0, 12.25, 100.1)),
        ("FD", TABLE_POSITION, b""),
        ("FD", TABLE_POSITION, struct.pack("<d", -1.5e-12)),
    ],
)
def test_numbers_fit(vr: str, tag: int, value: bytes) -> None:
    assert kept(vr, tag, value)


@given(st.floats(min_value=-100_000, max_value=100_000, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-70))
def test_no_double_of_a_usual_size_is_taken_for_text(number: float) -> None:
    assert kept("FD", TABLE_POSITION, struct.pack("<d", number))


@given(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz^ ,.'-", min_size=8, max_size=64))
def test_no_text_of_eight_characters_is_taken_for_numbers(text: str) -> None:
    value = text.encode().ljust(-(-len(text) // 8) * 8, b" ")
    assert not kept("FD", TABLE_POSITION, value)
    assert not kept("US", BITS_STORED, value)


def test_a_name_in_a_table_position_does_not_leave(tmp_path: Path) -> None:
    made = explicit(TABLE_POSITION, "FD", b"LEAKTEST")
    out = scrub(tmp_path, with_element(encoded(ct_base()), made, TABLE_POSITION))
    assert out.has_plant() == []
    assert "TablePosition" not in out.ds


def test_a_name_in_a_count_does_not_leave_in_implicit_vr(tmp_path: Path) -> None:
    ds = ct_base()
    ds.add_new(0x00189093, "US", [int.from_bytes(b"ZZSYNTH^"[at : at + 2], "little") for at in range(0, 8, 2)])
    out = scrub(tmp_path, ds, syntax=IMPLICIT)
    assert out.has_plant() == []
