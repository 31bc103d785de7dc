"""`redact` changes the boxes and nothing else: native bytes, quantised coefficients, stored values, fragments."""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from gateway.frames import KEYWORDS, Box, Changes, EncodedImage, redact, transcode
from gateway.frames.syntaxes import JPEG_2000, JPEG_LOSSLESS_SV1, JPEG_LS_LOSSY
from tests.encoded_images import compressed, native, noise, smooth

LOSSLESS = [
    uid for keyword, uid in KEYWORDS.items() if keyword not in ("explicit-little", "implicit-little", "deflated")
]
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


@pytest.mark.parametrize("planar", [0, 1])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_colour_cine_changes_in_the_box_only(tmp_path: Path, planar: int, dtype: str) -> None:
    """cases.md 47: RGB, 5 frames, PlanarConfiguration 0 and 1."""
    array = noise(5, 11, 13, 3, dtype=dtype) | 1
    path = native(tmp_path / "a.dcm", array, PlanarConfiguration=planar)
    redact(path, tmp_path / "b.dcm", [BOX], Changes())
    before, after = (pydicom.dcmread(tmp_path / name) for name in ("a.dcm", "b.dcm"))
    assert after.PlanarConfiguration == planar
    expected = array.copy()
    expected[:, 2:5, 3:9] = 0
    words = np.moveaxis(expected, -1, -3) if planar else expected
    assert after.PixelData[: words.nbytes] == words.tobytes()
    del before.PixelData, after.PixelData
    assert before == after


def test_a_box_is_rows_and_columns_of_every_frame_not_frames_and_rows(tmp_path: Path) -> None:
    """Axes of a five-frame greyscale object: (frame, row, column)."""
    array = noise(5, 11, 13, dtype="u2", bits=12) | 1
    redact(native(tmp_path / "a.dcm", array, BitsStored=12), tmp_path / "b.dcm", [BOX, Box(1, 0, 0, 1, 2)], Changes())
    expected = array.copy()
    expected[:, 2:5, 3:9] = 0
    expected[1, :1, :2] = 0
    np.testing.assert_array_equal(stored(tmp_path / "b.dcm"), expected)


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_native_pixels_change_in_the_boxes_only_whatever_the_layout(tmp_path_factory, data: st.DataObject) -> None:
    """Every layout, byte order and box, one bit a pixel and odd frames in big-endian words included."""
    folder = tmp_path_factory.mktemp("boxes")
    syntax = data.draw(
        st.sampled_from(
            [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian, DeflatedExplicitVRLittleEndian]
        )
    )
    frames, rows, columns = (data.draw(st.integers(1, top)) for top in (4, 6, 7))
    dtype = data.draw(st.sampled_from(["bit", "u1", "u2", "i2", "u4"]))
    colour = dtype != "bit" and data.draw(st.booleans())
    shape = (frames, rows, columns, 3) if colour else (frames, rows, columns)
    array = noise(*shape, dtype="u1" if dtype == "bit" else dtype, bits=1 if dtype == "bit" else None)
    values = {
        "NumberOfFrames": frames,
        "SamplesPerPixel": 3 if colour else 1,
        **({"BitsAllocated": 1, "BitsStored": 1} if dtype == "bit" else {}),
    }
    packed = np.packbits(array.reshape(-1), bitorder="little").tobytes() if dtype == "bit" else None
    swapped = syntax == ExplicitVRBigEndian and array.dtype.itemsize == 1 and data.draw(st.booleans())
    described = array if frames > 1 else array[0]
    path = native(folder / "a.dcm", described, syntax, data=packed, swapped=swapped, **values)
    edge = [st.integers(-1, rows + 1), st.integers(-1, columns + 1)]
    boxes = data.draw(st.lists(st.builds(Box, st.integers(-1, frames - 1), *edge, *edge), max_size=3))
    redact(path, path, boxes, Changes())
    mask = np.zeros((frames, rows, columns), bool)
    for box in boxes:
        chosen = slice(None) if box.frame < 0 else box.frame
        mask[chosen, max(box.top, 0) : max(box.bottom, 0), max(box.left, 0) : max(box.right, 0)] = True
    after = stored(path)
    np.testing.assert_array_equal(after[~mask], array[~mask])
    dark = min(int(array.min()), 0)
    assert (after[mask] <= 0).all()
    assert after[mask].size == 0 or after[mask].min() >= dark


def test_bits_of_neighbours_survive_in_one_bit_segments(tmp_path: Path) -> None:
    bits = np.ones((3, 3, 5), "u1")
    data = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    path = native(tmp_path / "a.dcm", bits, data=data, BitsAllocated=1, BitsStored=1)
    redact(path, tmp_path / "b.dcm", [Box(1, 0, 0, 3, 5)], Changes())
    after = np.unpackbits(np.frombuffer(pydicom.dcmread(tmp_path / "b.dcm").PixelData, "u1"), bitorder="little")
    assert after[:45].tolist() == [1] * 15 + [0] * 15 + [1] * 15


def test_an_odd_number_of_bytes_has_one_pad_byte(tmp_path: Path) -> None:
    """cases.md 49: 3 x 3 RGB is 27 bytes, written as 28 (PS3.5 8.1.1)."""
    array = noise(3, 3, 3) | 1
    redact(native(tmp_path / "a.dcm", array), tmp_path / "b.dcm", [Box(0, 0, 0, 1, 1)], Changes())
    assert pydicom.dcmread(tmp_path / "b.dcm").PixelData == bytes(3) + array.tobytes()[3:] + b"\0"


def test_extremes_that_are_no_longer_true_go(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(5, 5, dtype="u2") | 1, SmallestImagePixelValue=1, LargestImagePixelValue=9)
    redact(path, tmp_path / "b.dcm", [Box(0, 0, 0, 1, 1)], Changes())
    redact(path, tmp_path / "c.dcm", [], Changes())
    assert "SmallestImagePixelValue" not in pydicom.dcmread(tmp_path / "b.dcm")
    assert pydicom.dcmread(tmp_path / "c.dcm") == pydicom.dcmread(path)


def test_half_chroma_is_redacted_by_pairs_of_columns(tmp_path: Path) -> None:
    pairs = noise(6, 4, 4)
    path = native(tmp_path / "a.dcm", noise(6, 8, 3), data=pairs.tobytes(), PhotometricInterpretation="YBR_FULL_422")
    redact(path, tmp_path / "b.dcm", [Box(0, 1, 3, 3, 5)], Changes())
    expected = pairs.copy()
    expected[1:3, 1:3] = (0, 0, 128, 128)
    assert pydicom.dcmread(tmp_path / "b.dcm").PixelData == expected.tobytes()


@pytest.mark.parametrize("syntax", LOSSLESS)
@pytest.mark.parametrize(
    ("shape", "dtype", "bits"),
    [((3, 12, 15), "u2", 12), ((3, 12, 15), "i2", 16), ((3, 12, 15, 3), "u1", 8), ((3, 7, 9), "u1", 8)],
)
def test_lossless_pixels_outside_the_box_are_identical(
    tmp_path: Path, syntax: str, shape, dtype: str, bits: int
) -> None:
    array = noise(*shape, dtype=dtype, bits=bits)
    transcode(native(tmp_path / "n.dcm", array, BitsStored=bits), tmp_path / "a.dcm", syntax, Changes())
    redact(tmp_path / "a.dcm", tmp_path / "b.dcm", [BOX], Changes())
    after = stored(tmp_path / "b.dcm")
    np.testing.assert_array_equal(outside(after), outside(array))
    assert (inside(after) == (array.min() if dtype == "i2" else 0)).all() or dtype == "i2"
    before, changed = (pydicom.dcmread(tmp_path / name) for name in ("a.dcm", "b.dcm"))
    assert changed.file_meta.TransferSyntaxUID == syntax
    assert changed.PhotometricInterpretation == before.PhotometricInterpretation
    assert "LossyImageCompression" not in changed


@pytest.mark.parametrize("syntax", LOSSLESS)
def test_frames_that_no_box_touches_keep_their_bytes(tmp_path: Path, syntax: str) -> None:
    array = noise(4, 12, 15, dtype="u2")
    transcode(native(tmp_path / "n.dcm", array), tmp_path / "a.dcm", syntax, Changes())
    redact(tmp_path / "a.dcm", tmp_path / "b.dcm", [Box(2, 2, 3, 5, 9)], Changes())
    with EncodedImage.open(tmp_path / "a.dcm") as before, EncodedImage.open(tmp_path / "b.dcm") as after:
        same = [before.fragment(frame) == after.fragment(frame) for frame in range(4)]
    assert same == [True, True, False, True]


@pytest.mark.parametrize(("syntax", "level"), [(JPEG_LS_LOSSY, 3), (JPEG_2000, 40)])
def test_lossy_frames_lose_nothing_more(tmp_path: Path, syntax: str, level: int) -> None:
    """The touched frame is encoded again without loss under the same syntax: equal outside, and still marked lossy."""
    array = smooth(32, 32)
    if syntax == JPEG_2000:
        data = imagecodecs.jpeg2k_encode(array, codecformat="j2k", level=level, reversible=False)
    else:
        data = imagecodecs.jpegls_encode(array, level=level)
    streams = [bytes(data), bytes(data)]
    path = compressed(tmp_path / "a.dcm", streams, np.stack([array, array]), syntax)
    before = stored(path)
    assert not np.array_equal(before[0], array)
    redact(path, tmp_path / "b.dcm", [Box(0, 2, 3, 5, 9)], Changes())
    after = stored(tmp_path / "b.dcm")
    np.testing.assert_array_equal(outside(after[:1]), outside(before[:1]))
    np.testing.assert_array_equal(after[1], before[1])
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    assert (dataset.file_meta.TransferSyntaxUID, dataset.LossyImageCompression) == (syntax, "01")
    assert dataset.LossyImageCompressionMethod == {JPEG_2000: "ISO_15444_1", JPEG_LS_LOSSY: "ISO_14495_1"}[syntax]
    ratio = 32 * 32 * 2 / sum(len(data) + len(data) % 2 for data in streams)
    assert abs(float(dataset.LossyImageCompressionRatio) - ratio) < 0.01


@pytest.mark.parametrize("dtype", ["u2", "i2"])
def test_what_lossy_decoding_leads_beyond_white_or_black_stays_white_or_black(tmp_path: Path, dtype: str) -> None:
    """12 bits stored in a stream of 16: its wavelets swing beyond the range; masked, white would turn into black."""
    low, high = (-2048, 2047) if dtype == "i2" else (0, 4095)
    array = np.where(np.random.default_rng(2).random((48, 48)) < 0.5, low, high).astype(dtype)
    data = bytes(imagecodecs.jpeg2k_encode(array, codecformat="j2k", level=65, reversible=False))
    decoded = imagecodecs.jpeg2k_decode(data)
    assert decoded.max() > high
    path = compressed(tmp_path / "a.dcm", [data], array, JPEG_2000, BitsStored=12)
    redact(path, tmp_path / "b.dcm", [BOX], Changes())
    np.testing.assert_array_equal(
        outside(pydicom.dcmread(tmp_path / "b.dcm").pixel_array[None]), outside(np.clip(decoded, low, high)[None])
    )


def test_values_of_few_bits_in_wide_words_stay_in_lossless_jpeg(tmp_path: Path) -> None:
    """8 bits stored, 16 allocated, coded with a precision of 16, as dcmcjpeg does."""
    array = noise(11, 13, dtype="u2", bits=8)
    data = bytes(imagecodecs.jpeg8_encode(array, lossless=True, predictor=1, bitspersample=16))
    path = compressed(tmp_path / "a.dcm", [data], array, JPEG_LOSSLESS_SV1, BitsStored=8)
    redact(path, tmp_path / "b.dcm", [BOX], Changes())
    after = pydicom.dcmread(tmp_path / "b.dcm")
    assert (after.file_meta.TransferSyntaxUID, after.BitsAllocated, after.BitsStored) == (JPEG_LOSSLESS_SV1, 16, 8)
    expected = array.copy()
    expected[2:5, 3:9] = 0
    np.testing.assert_array_equal(after.pixel_array, expected)


def test_an_irreversible_colour_transform_gives_way_in_all_frames_at_once(tmp_path: Path) -> None:
    array = smooth(32, 32, 3)
    data = bytes(imagecodecs.jpeg2k_encode(array, codecformat="j2k", level=40, reversible=False, mct=True))
    path = compressed(
        tmp_path / "a.dcm", [data, data], np.stack([array, array]), JPEG_2000, PhotometricInterpretation="YBR_ICT"
    )
    before = stored(path)
    redact(path, tmp_path / "b.dcm", [Box(1, 2, 3, 5, 9)], Changes())
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        assert (image.dataset.PhotometricInterpretation, image.photometric) == ("YBR_RCT", "RGB")
        assert [image.stream(frame).reversible for frame in range(2)] == [True, True]
        np.testing.assert_array_equal(image.stored(0), before[0])
    np.testing.assert_array_equal(outside(stored(tmp_path / "b.dcm")[1:]), outside(before[1:]))
