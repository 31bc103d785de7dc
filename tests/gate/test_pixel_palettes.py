"""Palettes in segments (PS3.3 C.7.9.2): expanded as pydicom, which shares no code with the gate, expands them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from gate_cases import encode
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset
from pydicom.pixels.processing import apply_color_lut
from residual_cases import with_pixels

from gateway.gate.bytescan import scan_bytes
from gateway.gate.pixel_palettes import expanded
from gateway.gate.pixel_places import Seen, pictures

words = st.integers(0, 0xFFFF)
discrete = st.lists(words, min_size=1, max_size=6).map(lambda values: [0, len(values), *values])
linear = st.tuples(st.integers(1, 40), words).map(lambda part: [1, *part])
COLOURS = ("Red", "Green", "Blue")


@settings(max_examples=60, deadline=None)
@given(st.tuples(discrete, st.lists(st.one_of(discrete, linear), max_size=6)))
def test_segments_stand_for_what_a_peer_makes_of_them(parts: tuple[list[int], list[list[int]]]) -> None:
    segments = [number for part in (parts[0], *parts[1]) for number in part]
    table = expanded(segments)
    dataset = Dataset()
    for colour in COLOURS:
        setattr(dataset, f"{colour}PaletteColorLookupTableDescriptor", [len(table), 0, 16])
        setattr(dataset, f"Segmented{colour}PaletteColorLookupTableData", np.array(segments, "<u2").tobytes())
    dataset.ensure_file_meta()
    dataset.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.1"
    dataset.set_original_encoding(is_implicit_vr=False, is_little_endian=True)
    shown = apply_color_lut(np.arange(len(table), dtype=np.uint16), dataset)
    exact = [Fraction(number) for number in parts[0][2:]]
    for kind, length, *values in parts[1]:
        first, step = exact[-1], Fraction(values[0] - round(exact[-1]), length) if kind else 0
        exact += [first + step * number for number in range(1, length + 1)] if kind else map(Fraction, values)
    # Halfway between two numbers the standard does not say which, and a peer's floats are not exact either.
    half = Fraction(1, 2) + Fraction(1, 10**6)
    for found in (table, shown[..., 0].tolist()):
        assert len(found) == len(exact)
        assert all(abs(one - wanted) <= half for one, wanted in zip(found, exact, strict=True))


@pytest.mark.parametrize(
    "segments", [[1, 5, 9], [0, 4, 1], [2, 1, 0, 0], [7, 1, 1], [0, 0], [0, 1, 5, 1, 65535, 9, 1, 9, 9]]
)
def test_what_is_no_table_is_refused(segments: list[int]) -> None:
    with pytest.raises(ValueError, match=r"segment|entries"):
        expanded(segments)


def palette_object(segments: list[int], count: int) -> Dataset:
    ds = with_pixels(np.arange(256, dtype=np.uint8).reshape(16, 16))
    ds.PhotometricInterpretation = "PALETTE COLOR"
    for colour in COLOURS:
        setattr(ds, f"{colour}PaletteColorLookupTableDescriptor", [count, 0, 16])
        setattr(ds, f"Segmented{colour}PaletteColorLookupTableData", np.array(segments, "<u2").tobytes())
    return ds


def seen(ds: Dataset) -> dict[str, Seen]:
    return {getattr(one, "view", "unseen"): one for one in pictures(scan_bytes(encode(ds)))}  # type: ignore[misc]


def test_a_picture_with_such_a_palette_is_looked_at_and_one_that_does_not_add_up_is_not() -> None:
    views = seen(palette_object([0, 1, 0, 1, 255, 65280], 256))
    np.testing.assert_array_equal(
        views["palette, brightest channel"].grey.reshape(-1), np.arange(256, dtype=np.float32) * 256
    )
    assert "unseen" in seen(palette_object([0, 1, 0, 1, 200, 65280], 256))
