"""Floats that differ and show alike: what is no number, and the two zeros (IEEE 754). Text between them goes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian

from gateway.frames import EncodedImage
from gateway.pixels import Estimate, Instance, Work
from gateway.pixels.hidden import HiddenPixels
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from tests.encoded_images import header, save

WORK = Work(Policy(name="hidden", header=HeaderPolicy(), gate=GatePolicy(study={})), b"s" * 32)
ELEMENTS = {4: ("FloatPixelData", 0x7FE00008, "OF"), 8: ("DoubleFloatPixelData", 0x7FE00009, "OD")}


def floats(path: Path, bits: np.ndarray, syntax: str = ExplicitVRLittleEndian) -> Path:
    """An object whose float pixels have these bits."""
    dataset = header(bits)
    for keyword in ("BitsStored", "HighBit", "PixelRepresentation"):
        delattr(dataset, keyword)
    _, tag, vr = ELEMENTS[bits.dtype.itemsize]
    order = ">" if syntax == ExplicitVRBigEndian else "<"
    dataset.add_new(tag, vr, bits.astype(bits.dtype.newbyteorder(order)).tobytes())
    return save(path, dataset, syntax)


def cleaned(path: Path, stage: HiddenPixels = HiddenPixels()) -> dict[str, int]:  # noqa: B008 - frozen
    shutil.copy(path, path.with_name("original.dcm"))
    (step,) = stage.apply([Instance("00001", path, path)], WORK, Estimate())
    return dict(step.counts)


def bits_of(path: Path, like: np.ndarray, order: str = "<") -> np.ndarray:
    keyword = ELEMENTS[like.dtype.itemsize][0]
    raw = pydicom.dcmread(path)[keyword].value
    return np.frombuffer(raw, like.dtype.newbyteorder(order)).reshape(like.shape)


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ExplicitVRBigEndian])
@pytest.mark.parametrize("kind", ["u4", "u8"])
def test_what_is_no_number_and_the_sign_of_zero_say_nothing_afterwards(tmp_path: Path, kind: str, syntax: str) -> None:
    bits = np.linspace(-1, 1, 2 * 6 * 8).reshape(2, 6, 8).astype(f"f{kind[1]}").view(kind).copy()
    quiet, negative = np.array([np.nan, -0.0], f"f{kind[1]}").view(kind)
    expected = bits.copy()
    bits[0, 1, :3] = quiet, quiet | 0x1234, quiet | 0x4321
    bits[1, 2, :2] = 0, negative
    expected[0, 1, :3], expected[1, 2, :2] = quiet, 0
    path = floats(tmp_path / "a.dcm", bits, syntax)
    assert cleaned(path) == {"altered_values": 2}
    order = ">" if syntax == ExplicitVRBigEndian else "<"
    np.testing.assert_array_equal(bits_of(path, bits, order), expected)
    assert cleaned(path) == {}


@pytest.mark.parametrize("payload", [0x7FC00000, 0xFFC00000, 0x7F812345])
def test_one_way_to_write_no_number_hides_nothing_and_stays(tmp_path: Path, payload: int) -> None:
    bits = np.linspace(1, 2, 48, dtype="f4").reshape(6, 8).view("u4").copy()
    bits[2, 2:5] = payload
    path = floats(tmp_path / "a.dcm", bits)
    whole = path.read_bytes()
    assert cleaned(path) == {}
    assert path.read_bytes() == whole


def test_a_policy_may_keep_them(tmp_path: Path) -> None:
    bits = np.zeros((6, 8), "u4")
    bits[1, 1] = 0x7FC00001
    bits[1, 2] = 0x7FC00002
    path = floats(tmp_path / "a.dcm", bits)
    assert cleaned(path, HiddenPixels(look_alikes="keep")) == {}
    with EncodedImage.open(path) as image:
        assert np.isnan(image.stored(0)).sum() == 2
