"""Boxes in JPEG: of 8 bits in the DCT domain, of 12 bits as native pixels; nothing outside is compressed again."""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import jpeglib
import numpy as np
import pydicom
import pytest
from pydicom.pixels import pixel_array
from pydicom.uid import (
    ExplicitVRLittleEndian,
)

from gateway.frames import Box, Changes, EncodedImage, redact
from gateway.frames.syntaxes import JPEG_BASELINE, JPEG_EXTENDED
from tests.encoded_images import compressed, smooth

BOX = Box(-1, 2, 3, 5, 9)


def stored(path: Path) -> np.ndarray:
    with EncodedImage.open(path) as image:
        return np.stack([image.stored(frame) for frame in range(image.frames)])


def outside(array: np.ndarray, box: Box = BOX) -> np.ndarray:
    """(frames, pixels outside the box[, samples])."""
    mask = np.ones(array.shape[1:3], bool)
    mask[box.top : box.bottom, box.left : box.right] = False
    return array[:, mask]


def inside(array: np.ndarray, box: Box = BOX) -> np.ndarray:
    return array[:, box.top : box.bottom, box.left : box.right]


def coefficients(data: bytes, path: Path) -> list[np.ndarray]:
    path.write_bytes(data)
    jpeg = jpeglib.read_dct(str(path))
    jpeg.load()
    return [part for part in (jpeg.Y, jpeg.Cb, jpeg.Cr) if part is not None]


@pytest.mark.parametrize(
    ("coded", "subsampling"),
    [("YCBCR", "444"), ("YCBCR", "422"), ("YCBCR", "420"), ("RGB", "444"), ("GRAYSCALE", None)],
)
def test_baseline_jpeg_keeps_the_coefficients_of_every_other_block(
    tmp_path: Path, coded: str, subsampling: str | None
) -> None:
    array = smooth(45, 61, 3) if subsampling else smooth(45, 61)
    data = bytes(
        imagecodecs.jpeg8_encode(array, level=80, colorspace=coded, outcolorspace=coded, subsampling=subsampling)
    )
    label = {"YCBCR": "YBR_FULL_422", "RGB": "RGB", "GRAYSCALE": "MONOCHROME2"}[coded]
    path = compressed(tmp_path / "a.dcm", [data], array, JPEG_BASELINE, PhotometricInterpretation=label)
    box = Box(0, 17, 9, 23, 30)
    redact(path, tmp_path / "b.dcm", [box], Changes())
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        changed = image.fragment(0)
        values = image.stored(0)
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    assert (dataset.PhotometricInterpretation, dataset.file_meta.TransferSyntaxUID) == (label, JPEG_BASELINE)
    black = {"YCBCR": [0, 128, 128], "RGB": [0, 0, 0], "GRAYSCALE": 0}[coded]
    assert (values[17:23, 9:30] == black).all()
    before, after = coefficients(data, tmp_path / "x.jpg"), coefficients(changed, tmp_path / "y.jpg")
    halved = {"444": (1, 1), "422": (1, 2), "420": (2, 2), None: (1, 1)}[subsampling]
    for index, (one, other) in enumerate(zip(before, after, strict=True)):
        down, across = halved if index else (1, 1)
        touched = np.zeros(one.shape[:2], bool)
        touched[17 // (8 * down) : -(-23 // (8 * down)), 9 // (8 * across) : -(-30 // (8 * across))] = True
        np.testing.assert_array_equal(one[~touched], other[~touched])
        assert not other[touched].reshape(-1, 64)[:, 1:].any()


def test_jpeg_of_twelve_bits_goes_native(tmp_path: Path) -> None:
    array = smooth(24, 24, dtype="u2", bits=12)
    data = bytes(imagecodecs.jpeg8_encode(array, level=90, bitspersample=12))
    path = compressed(tmp_path / "a.dcm", [data], array, JPEG_EXTENDED, BitsStored=12)
    before = stored(path)
    redact(path, tmp_path / "b.dcm", [BOX], Changes())
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    assert dataset.file_meta.TransferSyntaxUID == ExplicitVRLittleEndian
    assert (dataset.LossyImageCompression, dataset.LossyImageCompressionMethod) == ("01", "ISO_10918_1")
    after = pixel_array(dataset, raw=True)[None]
    np.testing.assert_array_equal(outside(after), outside(before))
    assert not inside(after).any()
