"""`EncodedImage.stored` and `shown`, against pydicom, GDCM and DCMTK as independent decoders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.pixels import pixel_array
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from gateway.errors import Hold
from gateway.frames import EncodedImage
from tests.encoded_images import native, noise

MAX_PIXELS = 1_500_000  # the larger files of pydicom say nothing that smaller ones do not
HELD = {  # file -> where it is held: none of these can be read as what its header says
    "JPEG2000-embedded-sequence-delimiter.dcm": "a frame's own size",
    "MR_truncated.dcm": "the data set",
    "SC_rgb_jpeg.dcm": "the data set",
    "badVR.dcm": "NumberOfFrames",
    "emri_small_jpeg_2k_lossless_too_short.dcm": "the data set",
    "meta_missing_tsyntax.dcm": "Rows",
    "nested_priv_SQ.dcm": "Rows",
    "rtplan_truncated.dcm": "the data set",
    "winter.dcm": "the data set",
}
NOT_BY_PEERS = {
    "JPEG-lossy.dcm",
    "JPGExtended.dcm",
}  # JPEG of 12 bits: no plug-in of pydicom here; see test_frames_peers
NOT_BY_PYDICOM = {"image_dfl.dcm"}  # deflated: pydicom's `pixel_array` wants a path without deflate


def images(paths: list[Path]) -> Iterator[tuple[Path, EncodedImage]]:
    for path in paths:
        if path.name in HELD:
            continue
        with EncodedImage.open(path) as image:
            if image.frames and image.frames * image.rows * image.columns < MAX_PIXELS:
                yield path, image


def test_every_frame_that_pydicom_installs_is_decoded_as_pydicom_decodes_it(pydicom_files: list[Path]) -> None:
    compared = 0
    for path, image in images(pydicom_files):
        if path.name in NOT_BY_PEERS | NOT_BY_PYDICOM:
            continue
        for frame in range(min(image.frames, 3)):
            ours, theirs = image.stored(frame), pixel_array(path, raw=True, index=frame)
            assert ours.dtype == theirs.dtype.newbyteorder("="), path.name
            np.testing.assert_array_equal(ours, theirs, err_msg=path.name)
            compared += 1
    assert compared > 90


def test_files_that_are_not_what_they_say_are_held(pydicom_files: list[Path]) -> None:
    seen = set()
    for path in pydicom_files:
        if path.name in HELD:
            with pytest.raises(Hold) as held:
                EncodedImage.open(path).stored(0)
            assert held.value.reason == "pixels_unreadable"
            assert HELD[path.name] in held.value.at
            seen.add(path.name)
    assert len(seen) >= 7


def test_every_frame_shows_as_eight_bits(pydicom_files: list[Path]) -> None:
    for path, image in images(pydicom_files):
        shown = image.shown(0)
        assert shown.dtype == np.uint8, path.name
        colour = image.samples == 3 or image.photometric == "PALETTE COLOR"
        assert shown.shape == (image.rows, image.columns, *([3] if colour else [])), path.name


def test_an_object_without_pixels_has_no_frames(pydicom_files: list[Path]) -> None:
    path = next(path for path in pydicom_files if path.name == "rtplan.dcm")
    with EncodedImage.open(path) as image:
        assert (image.frames, image.rows, image.photometric) == (0, 0, "")


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian])
@pytest.mark.parametrize(
    ("dtype", "bits"), [("u1", 8), ("u1", 5), ("u2", 12), ("u2", 16), ("i2", 12), ("i2", 16), ("u4", 32), ("i4", 20)]
)
def test_native_values_come_out_as_they_went_in(tmp_path: Path, syntax: str, dtype: str, bits: int) -> None:
    array = noise(3, 5, 7, dtype=dtype, bits=bits)
    with EncodedImage.open(native(tmp_path / "a.dcm", array, syntax, BitsStored=bits)) as image:
        assert image.transfer_syntax == syntax
        for frame in range(3):
            np.testing.assert_array_equal(image.stored(frame), array[frame])


@pytest.mark.parametrize("planar", [0, 1])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_native_colour_by_pixel_and_by_plane(tmp_path: Path, planar: int, dtype: str) -> None:
    array = noise(2, 5, 7, 3, dtype=dtype)
    with EncodedImage.open(native(tmp_path / "a.dcm", array, PlanarConfiguration=planar)) as image:
        np.testing.assert_array_equal(np.stack([image.stored(0), image.stored(1)]), array)


def test_bits_outside_bits_stored_are_masked_away_and_the_sign_is_extended(tmp_path: Path) -> None:
    words = np.array([[0xF7FF, 0xF800, 0x0FFF, 0x0000]], "u2")
    with EncodedImage.open(native(tmp_path / "u.dcm", words, BitsStored=12)) as image:
        assert image.stored(0).tolist() == [[0x7FF, 0x800, 0xFFF, 0]]
    with EncodedImage.open(native(tmp_path / "i.dcm", words, BitsStored=12, PixelRepresentation=1)) as image:
        assert image.stored(0).tolist() == [[2047, -2048, -1, 0]]


def test_values_in_the_upper_bits_come_down(tmp_path: Path) -> None:
    words = np.array([[0xABC0, 0x123F]], "u2")
    with EncodedImage.open(native(tmp_path / "a.dcm", words, BitsStored=12, HighBit=15)) as image:
        assert image.stored(0).tolist() == [[0xABC, 0x123]]


def test_frames_of_one_bit_share_bytes(tmp_path: Path) -> None:
    bits = noise(3, 3, 5, bits=1)
    data = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    path = native(tmp_path / "a.dcm", bits, data=data, BitsAllocated=1, BitsStored=1)
    with EncodedImage.open(path) as image:
        np.testing.assert_array_equal(np.stack([image.stored(frame) for frame in range(3)]), bits)
    np.testing.assert_array_equal(pydicom.dcmread(path).pixel_array, bits)


@pytest.mark.parametrize(
    ("keyword", "dtype", "vr"), [("FloatPixelData", "f4", "OF"), ("DoubleFloatPixelData", "f8", "OD")]
)
def test_float_pixels_stay_float(tmp_path: Path, keyword: str, dtype: str, vr: str) -> None:
    array = np.linspace(-2.5, 3.5, 2 * 3 * 4).astype(dtype).reshape(2, 3, 4)
    array[0, 0, 0] = np.nan
    dataset = pydicom.dcmread(
        native(tmp_path / "a.dcm", np.zeros((2, 3, 4), "u4"), BitsAllocated=array.dtype.itemsize * 8)
    )
    del dataset.PixelData, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation
    dataset.add_new(keyword, vr, array.tobytes())
    dataset.save_as(tmp_path / "b.dcm")
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        np.testing.assert_array_equal(np.stack([image.stored(0), image.stored(1)]), array)
        assert image.shown(0).dtype == np.uint8


def test_monochrome1_shows_inverted(tmp_path: Path) -> None:
    array = np.repeat(np.array([[0, 100, 4095]], "u2"), 3, axis=0)
    one = EncodedImage.open(native(tmp_path / "1.dcm", array, BitsStored=12, PhotometricInterpretation="MONOCHROME1"))
    two = EncodedImage.open(native(tmp_path / "2.dcm", array, BitsStored=12))
    assert one.shown(0)[0].tolist() == [255, 249, 0]
    np.testing.assert_array_equal(one.shown(0), 255 - two.shown(0))


def test_padding_does_not_dim_the_picture(tmp_path: Path) -> None:
    array = np.array([[-2000, -2000, 0, 100]], "i2")
    with EncodedImage.open(native(tmp_path / "a.dcm", array, PixelPaddingValue=-2000)) as image:
        assert image.shown(0).tolist() == [[0, 0, 0, 255]]


def test_ybr_shows_as_rgb(tmp_path: Path) -> None:
    """PS3.3 C.7.6.3.1.2: 8-bit YBR_FULL of pure red is (76, 85, 255), of white (255, 128, 128)."""
    array = np.array([[[76, 85, 255], [255, 128, 128], [0, 128, 128]]], "u1")
    with EncodedImage.open(native(tmp_path / "a.dcm", array, PhotometricInterpretation="YBR_FULL")) as image:
        assert np.abs(image.shown(0).astype(int) - [[[255, 0, 0], [255, 255, 255], [0, 0, 0]]]).max() <= 1
