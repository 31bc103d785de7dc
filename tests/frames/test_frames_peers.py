"""Every transfer syntax in and out against independent decoders: DCMTK and GDCM (and pydicom, which uses both)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from image_peers import DCMTK, by_dcmtk, by_gdcm
from pydicom.pixels import pixel_array

from gateway.errors import Hold
from gateway.frames import KEYWORDS, Box, Changes, EncodedImage, redact, transcode
from gateway.frames.syntaxes import HTJ2K_LOSSLESS
from tests.encoded_images import native, noise
from tests.peers import dcmtk, need

OUT = [  # one of a kind: depth, sign, colour, frames, byte order, compression, one bit, palette, odd
    *(
        "CT_small.dcm",
        "MR_small_bigendian.dcm",
        "SC_rgb_rle_2frame.dcm",
        "SC_rgb_rle_16bit.dcm",
        "SC_rgb_jpeg_dcmtk.dcm",
    ),
    *("liver_1frame.dcm", "rtdose_expb_1frame.dcm", "JPGExtended.dcm", "JPEG2000.dcm"),
    *("JPEGLSNearLossless_16.dcm", "SC_rgb_small_odd_big_endian.dcm", "SC_rgb_jpeg_gdcm.dcm"),
    *("SC_ybr_full_422_uncompressed.dcm", "image_dfl.dcm", "693_J2KI.dcm", "MR_small_padded.dcm"),
]
GDCM_CANNOT = {  # known faults of GDCM 3.2, all of run lengths: 16 and 32 bit colour, and odd sizes
    ("SC_rgb_rle_16bit.dcm", "rle"),
    ("SC_rgb_small_odd_big_endian.dcm", "rle"),
}
CANNOT = {  # (file, keyword) that no codec here writes without a change: those are held
    **{("liver_1frame.dcm", keyword): "one bit" for keyword in ("rle", "jpeg-lossless-sv1", "jpeg-ls-lossless")},
    **{("liver_1frame.dcm", keyword): "one bit" for keyword in ("jpeg-2000-lossless", "htj2k-lossless")},
    **{("rtdose_expb_1frame.dcm", keyword): "32 bit" for keyword in ("jpeg-lossless-sv1", "jpeg-ls-lossless")},
    ("rtdose_expb_1frame.dcm", "htj2k-lossless"): "32 bit",
}


def stored(path: Path) -> np.ndarray:
    with EncodedImage.open(path) as image:
        frames = [image.stored(frame) for frame in range(image.frames)]
    return np.stack(frames) if len(frames) > 1 else frames[0]


def named(paths: list[Path], name: str) -> Path:
    found = [path for path in paths if path.name == name]
    if not found:
        pytest.skip(f"pydicom does not install {name}")
    return found[0]


def test_every_compressed_file_decodes_as_dcmtk_decodes_it(pydicom_files: list[Path], tmp_path: Path) -> None:
    need("dcmtk")
    compared = set()
    for path in pydicom_files:
        try:
            image = EncodedImage.open(path)
        except Hold:
            continue
        if not image.frames or image.transfer_syntax not in DCMTK or image.rows * image.columns > 600_000:
            continue
        theirs = by_dcmtk(path, image.transfer_syntax, tmp_path)
        difference = np.abs(stored(path).astype(np.int64) - theirs.astype(np.int64))
        subsampled = image.stream(0) is not None and image.stream(0).subsampled
        if subsampled:  # the standard leaves open how chroma is spread over pixels: luma must agree
            difference = difference[..., 0]
        assert difference.max() == 0, path.name
        compared.add(image.transfer_syntax)
    assert compared >= set(DCMTK) - {"1.2.840.10008.1.2.4.57"}


@pytest.mark.parametrize("name", OUT)
def test_every_transfer_syntax_out_is_read_by_peers(pydicom_files: list[Path], tmp_path: Path, name: str) -> None:
    need("dcmtk")
    path = named(pydicom_files, name)
    expected = stored(path)
    written = {}
    for keyword, syntax in KEYWORDS.items():
        target = tmp_path / f"{keyword}.dcm"
        if (name, keyword) in CANNOT:
            with pytest.raises(Hold, match="transcoding_failed"):
                transcode(path, target, syntax, Changes())
            continue
        transcode(path, target, syntax, Changes())
        np.testing.assert_array_equal(stored(target), expected, err_msg=keyword)
        if keyword not in ("htj2k-lossless", "deflated"):
            np.testing.assert_array_equal(pixel_array(target, raw=True), expected, err_msg=keyword)
        theirs = by_dcmtk(target, syntax, tmp_path)
        if theirs is not None:
            np.testing.assert_array_equal(theirs, expected, err_msg=f"dcmtk, {keyword}")
        if (name, keyword) not in GDCM_CANNOT:
            written[keyword] = target
    if expected.dtype.itemsize < 4 and name != "liver_1frame.dcm":
        for keyword, theirs in zip(written, by_gdcm(list(written.values()), expected), strict=True):
            np.testing.assert_array_equal(theirs, expected, err_msg=f"gdcm, {keyword}")


@pytest.mark.parametrize(
    "encoder",
    [
        *(["dcmcjpls", interleave] for interleave in ("+il", "+is", "+in")),
        *(["dcmcjpeg", "+el", "+sv", str(predictor)] for predictor in range(1, 8)),
        *(["dcmcjpeg", "+e1"], ["dcmcjpeg", "+e1", "+cy"], ["dcmcrle"], ["dcmcjpls"]),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("shape", "dtype", "bits"), [((2, 21, 33), "u2", 12), ((2, 21, 33), "i2", 12), ((2, 21, 33, 3), "u1", 8)]
)
def test_what_dcmtk_compresses_without_loss_is_read_as_it_was(
    tmp_path: Path, encoder: list[str], shape, dtype: str, bits: int
) -> None:
    """Every predictor and interleave mode; a fragment, redacted, stays what it was outside the box."""
    array = noise(*shape, dtype=dtype, bits=bits)
    path = native(tmp_path / "a.dcm", array, BitsStored=bits)
    subprocess.run([dcmtk(encoder[0]), *encoder[1:], path, tmp_path / "b.dcm"], check=True, capture_output=True)
    np.testing.assert_array_equal(stored(tmp_path / "b.dcm"), array)
    redact(tmp_path / "b.dcm", tmp_path / "c.dcm", [Box(-1, 0, 0, 4, 33)], Changes())
    np.testing.assert_array_equal(stored(tmp_path / "c.dcm")[:, 4:], array[:, 4:])


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2"])
def test_noise_that_nothing_compresses_is_written_all_the_same(tmp_path: Path, keyword: str, dtype: str) -> None:
    array = noise(200, 300, dtype=dtype)
    transcode(native(tmp_path / "a.dcm", array), tmp_path / "b.dcm", KEYWORDS[keyword], Changes())
    np.testing.assert_array_equal(stored(tmp_path / "b.dcm"), array)


def test_htj2k_is_read_by_two_libraries(tmp_path: Path) -> None:
    """Written by OpenJPH, read here by OpenJPEG; and OpenJPH itself gives the same."""
    array = noise(33, 47, 3)
    transcode(native(tmp_path / "a.dcm", array), tmp_path / "b.dcm", HTJ2K_LOSSLESS, Changes())
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        np.testing.assert_array_equal(image.stored(0), array)
        np.testing.assert_array_equal(imagecodecs.htj2k_decode(image.fragment(0)), array)


@pytest.mark.parametrize(
    "name", ["SC_rgb_jpeg_dcmtk.dcm", "SC_rgb_dcmtk_+eb+cr.dcm", "MR_small_RLE.dcm", "SC_rgb_jpeg_gdcm.dcm"]
)
def test_redacted_frames_are_what_peers_read(pydicom_files: list[Path], tmp_path: Path, name: str) -> None:
    """cases.md 65: decode and compare after the step, with a decoder that is not the one that wrote it."""
    need("dcmtk")
    path = named(pydicom_files, name)
    redact(path, tmp_path / "b.dcm", [Box(-1, 8, 8, 24, 40)], Changes())
    ours = stored(tmp_path / "b.dcm")
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        theirs = by_dcmtk(tmp_path / "b.dcm", image.transfer_syntax, tmp_path)
    np.testing.assert_array_equal(theirs, ours)
    assert len(np.unique(ours[8:24, 8:40].reshape(16 * 32, -1), axis=0)) == 1


@pytest.mark.shared
def test_every_shared_image_survives_a_round_through_every_syntax(shared_data: Path, tmp_path: Path) -> None:
    rounds = 0
    for path in sorted((shared_data / "dicom").rglob("*.dcm"))[::9]:
        try:
            image = EncodedImage.open(path)
        except Hold:
            continue
        if not image.frames or image.frames * image.rows * image.columns > 60_000:
            continue
        for syntax in KEYWORDS.values():
            try:
                transcode(path, tmp_path / "b.dcm", syntax, Changes())
            except Hold as held:
                assert held.reason == "transcoding_failed"  # noqa: PT017
                continue
            np.testing.assert_array_equal(stored(tmp_path / "b.dcm"), stored(path))
            rounds += 1
    assert rounds > 20
