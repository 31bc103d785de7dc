"""What a box is filled with looks black: in every photometric interpretation, sign and depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.pixels import apply_color_lut

from gateway.frames import Box, Changes, EncodedImage, redact
from tests.encoded_images import native, noise

BOX = Box(-1, 1, 1, 3, 4)


def filled(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(stored values of the first frame, what it shows) after redaction."""
    redact(path, path, [BOX], Changes())
    with EncodedImage.open(path) as image:
        return image.stored(0), image.shown(0)


@pytest.mark.parametrize(
    ("dtype", "bits", "values", "expected"),
    [
        ("u1", 8, {}, 0),
        ("u2", 12, {}, 0),
        ("u2", 12, {"PhotometricInterpretation": "MONOCHROME1"}, 4095),
        ("u1", 8, {"PhotometricInterpretation": "MONOCHROME1"}, 255),
        ("u2", 12, {"RescaleSlope": -1, "RescaleIntercept": 0}, 4095),
        ("u4", 32, {}, 0),
    ],
)
def test_unsigned_grey_takes_the_dark_end_of_the_range(
    tmp_path: Path, dtype: str, bits: int, values: Any, expected: int
) -> None:
    stored, shown = filled(native(tmp_path / "a.dcm", noise(6, 6, dtype=dtype, bits=bits), BitsStored=bits, **values))
    assert (stored[1:3, 1:4] == expected).all()
    if "RescaleSlope" not in values:
        assert (shown[1:3, 1:4] == 0).all()


@pytest.mark.parametrize(
    ("low", "high", "photometric", "expected"),
    [
        (-1024, 3000, "MONOCHROME2", -1024),  # the darkest that the frame has: a viewer's stretch does not change
        (100, 900, "MONOCHROME2", 0),
        (-1024, 3000, "MONOCHROME1", 3000),
        (-900, -100, "MONOCHROME1", 0),
    ],
)
def test_signed_grey_takes_the_darkest_of_the_frame_or_0(
    tmp_path: Path, low: int, high: int, photometric: str, expected: int
) -> None:
    array = np.linspace(low, high, 36).astype("i2").reshape(6, 6)
    stored, shown = filled(native(tmp_path / "a.dcm", array, PhotometricInterpretation=photometric))
    assert (stored[1:3, 1:4] == expected).all()
    assert shown[1:3, 1:4].max() == shown.min()


@pytest.mark.parametrize(
    ("photometric", "expected"),
    [("RGB", (0, 0, 0)), ("YBR_FULL", (0, 128, 128)), ("YBR_PARTIAL_420", (16, 128, 128))],
)
def test_colour_is_black_in_its_own_space(tmp_path: Path, photometric: str, expected: tuple[int, int, int]) -> None:
    stored, shown = filled(native(tmp_path / "a.dcm", noise(6, 6, 3), PhotometricInterpretation=photometric))
    assert (stored[1:3, 1:4] == expected).all()
    assert (shown[1:3, 1:4] == 0).all()


def test_a_palette_gives_its_darkest_entry(tmp_path: Path) -> None:
    red, green, blue = ([0x8000, 0xFF00, 0x1000, 0x0000], [0x8000, 0, 0x1000, 0x9000], [0x8000, 0, 0x1000, 0])
    values: dict[str, Any] = {"PhotometricInterpretation": "PALETTE COLOR"}
    for colour, entries in (("Red", red), ("Green", green), ("Blue", blue)):
        values[f"{colour}PaletteColorLookupTableDescriptor"] = [4, 10, 16]
        values[f"{colour}PaletteColorLookupTableData"] = np.array(entries, "<u2").tobytes()
    array = (noise(6, 6, bits=2) + 10).astype("u1")
    path = native(tmp_path / "a.dcm", array, **values)
    stored, shown = filled(path)
    assert (stored[1:3, 1:4] == 12).all()  # the third, dark grey: the first value that maps is 10
    dataset = pydicom.dcmread(path)
    np.testing.assert_array_equal(shown, apply_color_lut(dataset.pixel_array, dataset) >> 8)
    assert (shown[1:3, 1:4] == 16).all()


def test_float_takes_its_minimum_or_0(tmp_path: Path) -> None:
    array = np.linspace(-2, 5, 36).astype("f4").reshape(6, 6)
    array[5, 5] = np.nan
    dataset = pydicom.dcmread(native(tmp_path / "a.dcm", np.zeros((6, 6), "u4")))
    del dataset.PixelData, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation
    dataset.add_new(0x7FE00008, "OF", array.tobytes())
    dataset.save_as(tmp_path / "b.dcm")
    stored, _ = filled(tmp_path / "b.dcm")
    assert (stored[1:3, 1:4] == -2).all()
    assert np.isnan(stored[5, 5])
