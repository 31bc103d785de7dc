"""A colour label that lies is seen by length or by codestream and corrected, or held; colours are never shifted."""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
import pytest
from pydicom.pixels import pixel_array

from gateway.errors import Hold
from gateway.frames import KEYWORDS, Box, Changes, EncodedImage, redact, transcode
from gateway.frames.syntaxes import HTJ2K_LOSSLESS, JPEG_2000, JPEG_2000_LOSSLESS, JPEG_BASELINE, JPEG_LOSSLESS
from tests.encoded_images import compressed, native, noise, smooth

COLOUR = smooth(16, 16, 3)
NOISE = noise(16, 16, 3)
BLACK = {"RGB": (0, 0, 0), "YBR_FULL": (0, 128, 128)}


def jpeg(array: np.ndarray, *, coded: str, subsampling: str = "444") -> bytes:
    """A baseline stream whose components are `array`'s samples under the name `coded`."""
    return bytes(
        imagecodecs.jpeg8_encode(array, level=95, colorspace=coded, outcolorspace=coded, subsampling=subsampling)
    )


def without_markers(data: bytes) -> bytes:
    """The stream without APP0 and APP14, its components named 1, 2, 3: it says nothing about its colours."""
    out, position = bytearray(data[:2]), 2
    while data[position + 1] != 0xDA:
        end = position + 2 + int.from_bytes(data[position + 2 : position + 4], "big")
        segment = bytearray(data[position:end])
        if data[position + 1] == 0xC0:
            segment[10], segment[13], segment[16] = 1, 2, 3
        if data[position + 1] not in (0xE0, 0xEE):
            out += segment
        position = end
    scan = bytearray(data[position:])
    scan[5], scan[7], scan[9] = 1, 2, 3
    return bytes(out + scan)


def test_half_chroma_by_label_but_three_samples_by_length(tmp_path: Path) -> None:
    """cases.md 50: 8 x 8, 192 bytes, label YBR_FULL_422; pydicom raises, we read three samples and say so."""
    array = noise(8, 8, 3)
    path = native(tmp_path / "a.dcm", array, PhotometricInterpretation="YBR_FULL_422")
    with EncodedImage.open(path) as image:
        assert (image.photometric, image.notes) == ("YBR_FULL", ("colour_label",))
        np.testing.assert_array_equal(image.stored(0), array)
    redact(path, tmp_path / "b.dcm", [Box(0, 0, 0, 2, 2)], Changes())
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    assert dataset.PhotometricInterpretation == "YBR_FULL"
    expected = array.copy()
    expected[:2, :2] = BLACK["YBR_FULL"]
    np.testing.assert_array_equal(np.frombuffer(dataset.PixelData, "u1").reshape(8, 8, 3), expected)


def test_three_samples_by_label_but_half_chroma_by_length(tmp_path: Path) -> None:
    data = noise(8, 4, 4).tobytes()  # Y1 Y2 Cb Cr
    path = native(tmp_path / "a.dcm", noise(8, 8, 3), data=data, PhotometricInterpretation="YBR_FULL")
    with EncodedImage.open(path) as image:
        assert (image.photometric, image.notes) == ("YBR_FULL_422", ("colour_label",))
        pairs = np.frombuffer(data, "u1").reshape(8, 4, 4)
        np.testing.assert_array_equal(image.stored(0)[:, ::2, 0], pairs[..., 0])
        np.testing.assert_array_equal(image.stored(0)[:, 1::2, 0], pairs[..., 1])
        np.testing.assert_array_equal(image.stored(0)[:, ::2, 1:], pairs[..., 2:])
        np.testing.assert_array_equal(image.stored(0)[:, 1::2, 1:], pairs[..., 2:])


@pytest.mark.parametrize("columns", [7, 8])
def test_half_chroma_that_is_too_short_or_cannot_be_is_held(tmp_path: Path, columns: int) -> None:
    path = native(tmp_path / "a.dcm", noise(8, columns, 3), data=bytes(100), PhotometricInterpretation="YBR_FULL_422")
    with pytest.raises(Hold, match="pixels_unreadable"):
        EncodedImage.open(path)


@pytest.mark.parametrize("label", ["YBR_FULL_422", "YBR_FULL"])
def test_baseline_jpeg_in_ybr_stays_ybr(tmp_path: Path, label: str) -> None:
    """cases.md 51: decoded values are those of the components, and their label is YBR_FULL, not RGB."""
    data = jpeg(COLOUR, coded="YCBCR", subsampling="422")
    path = compressed(tmp_path / "a.dcm", [data], COLOUR, JPEG_BASELINE, PhotometricInterpretation=label)
    with EncodedImage.open(path) as image:
        assert (image.photometric, image.notes) == ("YBR_FULL", ())
        raw = imagecodecs.jpeg8_decode(data, colorspace="YCBCR", outcolorspace="YCBCR")
        np.testing.assert_array_equal(image.stored(0), raw)
        rgb = imagecodecs.jpeg8_decode(data)  # libjpeg's own conversion
        assert np.abs(image.shown(0).astype(int) - rgb).max() <= 2
    transcode(path, tmp_path / "b.dcm", KEYWORDS["explicit-little"], Changes())
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    assert dataset.PhotometricInterpretation == "YBR_FULL"
    assert dataset.LossyImageCompression == "01"
    np.testing.assert_array_equal(pixel_array(dataset, raw=True), raw)


def test_lossless_jpeg_in_ybr_stays_ybr(tmp_path: Path) -> None:
    data = bytes(imagecodecs.jpeg8_encode(NOISE, lossless=True, predictor=1, colorspace="RGB", outcolorspace="RGB"))
    path = compressed(tmp_path / "a.dcm", [data], NOISE, JPEG_LOSSLESS, PhotometricInterpretation="YBR_FULL")
    with EncodedImage.open(path) as image:
        assert (image.photometric, image.notes) == ("YBR_FULL", ())
        np.testing.assert_array_equal(image.stored(0), NOISE)
    redact(path, tmp_path / "b.dcm", [Box(0, 4, 4, 8, 8)], Changes())
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        assert image.dataset.PhotometricInterpretation == image.photometric == "YBR_FULL"
        assert (image.stored(0)[4:8, 4:8] == BLACK["YBR_FULL"]).all()


def test_baseline_jpeg_in_rgb_without_a_marker_is_rgb_by_its_label(tmp_path: Path) -> None:
    """cases.md 52: nothing in the stream says RGB, the label does (PS3.5 8.2.1)."""
    data = without_markers(jpeg(COLOUR, coded="RGB"))
    with EncodedImage.open(compressed(tmp_path / "a.dcm", [data], COLOUR, JPEG_BASELINE)) as image:
        assert (image.photometric, image.notes) == ("RGB", ())
        assert np.abs(image.stored(0).astype(int) - COLOUR).max() < 12
        np.testing.assert_array_equal(image.shown(0), image.stored(0))


def test_a_label_of_rgb_over_half_chroma_is_corrected(tmp_path: Path) -> None:
    data = jpeg(COLOUR, coded="YCBCR", subsampling="420")
    path = compressed(tmp_path / "a.dcm", [data], COLOUR, JPEG_BASELINE)
    with EncodedImage.open(path) as image:
        assert (image.photometric, image.notes) == ("YBR_FULL", ("colour_label",))
    redact(path, tmp_path / "b.dcm", [Box(0, 0, 0, 3, 3)], Changes())
    assert pydicom.dcmread(tmp_path / "b.dcm").PhotometricInterpretation == "YBR_FULL"


def test_a_label_that_only_jfif_contradicts_is_held(tmp_path: Path) -> None:
    data = jpeg(COLOUR, coded="YCBCR")
    assert b"JFIF" in data
    with pytest.raises(Hold, match="contradicted by the markers"):
        EncodedImage.open(compressed(tmp_path / "a.dcm", [data], COLOUR, JPEG_BASELINE))


@pytest.mark.parametrize("syntax", [JPEG_2000_LOSSLESS, JPEG_2000])
def test_jpeg_2000_with_a_colour_transform_decodes_to_rgb(tmp_path: Path, syntax: str) -> None:
    """cases.md 54, PS3.5 8.2.4: YBR_RCT and YBR_ICT are gone once the samples are decoded."""
    reversible = syntax == JPEG_2000_LOSSLESS
    data = imagecodecs.jpeg2k_encode(
        COLOUR, codecformat="j2k", level=0 if reversible else 40, reversible=reversible, mct=True
    )
    label = "YBR_RCT" if reversible else "YBR_ICT"
    path = compressed(tmp_path / "a.dcm", [bytes(data)], COLOUR, syntax, PhotometricInterpretation=label)
    with EncodedImage.open(path) as image:
        assert (image.photometric, image.notes) == ("RGB", ())
        assert np.abs(image.stored(0).astype(int) - COLOUR).max() <= (0 if reversible else 16)
    transcode(path, tmp_path / "b.dcm", KEYWORDS["explicit-little"], Changes())
    assert pydicom.dcmread(tmp_path / "b.dcm").PhotometricInterpretation == "RGB"


def test_jpeg_2000_that_holds_ybr_stays_ybr(tmp_path: Path) -> None:
    data = imagecodecs.jpeg2k_encode(NOISE, codecformat="j2k", level=0, reversible=True, mct=False)
    path = compressed(
        tmp_path / "a.dcm", [bytes(data)], NOISE, JPEG_2000_LOSSLESS, PhotometricInterpretation="YBR_FULL"
    )
    for keyword in ("explicit-little", "jpeg-2000-lossless", "htj2k-lossless", "jpeg-ls-lossless"):
        transcode(path, tmp_path / "b.dcm", KEYWORDS[keyword], Changes())
        with EncodedImage.open(tmp_path / "b.dcm") as image:
            assert image.dataset.PhotometricInterpretation == image.photometric == "YBR_FULL"
            np.testing.assert_array_equal(image.stored(0), NOISE)


def test_a_transform_in_the_label_that_the_stream_lacks_is_held(tmp_path: Path) -> None:
    data = imagecodecs.jpeg2k_encode(NOISE, codecformat="j2k", level=0, reversible=True, mct=False)
    with pytest.raises(Hold, match="contradicted by the markers"):
        EncodedImage.open(
            compressed(
                tmp_path / "a.dcm", [bytes(data)], NOISE, JPEG_2000_LOSSLESS, PhotometricInterpretation="YBR_RCT"
            )
        )


@pytest.mark.parametrize("syntax", [JPEG_2000_LOSSLESS, HTJ2K_LOSSLESS])
def test_rgb_is_written_to_jpeg_2000_with_its_reversible_transform_and_label(tmp_path: Path, syntax: str) -> None:
    transcode(native(tmp_path / "a.dcm", NOISE), tmp_path / "b.dcm", syntax, Changes())
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        assert (image.dataset.PhotometricInterpretation, image.photometric) == ("YBR_RCT", "RGB")
        assert image.stream(0).colour == "rgb"
        np.testing.assert_array_equal(image.stored(0), NOISE)
