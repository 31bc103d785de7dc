"""Golden values of decoded files, and a bound on memory (cases.md 52, 72)."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import pytest

from gateway.frames import KEYWORDS, Box, Changes, EncodedImage, change_header, redact, transcode
from gateway.frames.tidying import survey, tidy
from tests.encoded_images import native, noise

# file -> colour of the decoded samples, sha256 of them: another decoder, or another version of one, shows here
GOLDEN = {
    "GDCMJ2K_TextGBR.dcm": ("RGB", "bea5673fdd49313f"),
    "JPEG2000.dcm": ("MONOCHROME2", "0b1224a6dcd0dceb"),
    "JPGExtended.dcm": ("MONOCHROME2", "d30242775a414c01"),
    "SC_jpeg_no_color_transform.dcm": ("RGB", "be7aa556b206ac44"),
    "SC_jpeg_no_color_transform_2.dcm": ("RGB", "334275c10bc60e80"),
    "SC_rgb_dcmtk_+eb+cr.dcm": ("RGB", "e414aaca68669516"),
    "SC_rgb_dcmtk_+eb+cy+n1.dcm": ("YBR_FULL", "74588bc79349380d"),
    "SC_rgb_dcmtk_+eb+cy+np.dcm": ("YBR_FULL", "74588bc79349380d"),
    "SC_rgb_dcmtk_+eb+cy+s2.dcm": ("YBR_FULL", "ddddadc3c3d361b5"),
    "SC_rgb_gdcm_KY.dcm": ("RGB", "169e619557b12114"),
    "SC_rgb_jls_lossy_line.dcm": ("RGB", "bd5344c0a46bc6c0"),
    "SC_rgb_jpeg_app14_dcmd.dcm": ("RGB", "334275c10bc60e80"),
    "SC_rgb_jpeg_dcmd.dcm": ("RGB", "be7aa556b206ac44"),
    "SC_rgb_jpeg_dcmtk.dcm": ("YBR_FULL", "ddddadc3c3d361b5"),
    "SC_rgb_jpeg_gdcm.dcm": ("RGB", "169e619557b12114"),
    "SC_rgb_small_odd_jpeg.dcm": ("YBR_FULL", "773e6f89b7f5b520"),
    "examples_ybr_color.dcm": ("YBR_FULL", "ad9418bf3d042fd3"),
}
FRAMES, FRAME_BYTES = 20, 256 * 256 * 3


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_decoded_values_are_pinned(pydicom_files: list[Path], name: str) -> None:
    path = next((path for path in pydicom_files if path.name == name), None)
    if path is None:
        pytest.skip(f"pydicom does not install {name}")
    with EncodedImage.open(path) as image:
        assert (image.photometric, hashlib.sha256(image.stored(0).tobytes()).hexdigest()[:16]) == GOLDEN[name]


@pytest.mark.parametrize("keyword", ["explicit-little", "rle", "jpeg-ls-lossless"])
def test_memory_is_that_of_a_few_frames_however_many_there_are(tmp_path: Path, keyword: str) -> None:
    path = native(tmp_path / "a.dcm", noise(FRAMES, 256, 256, 3))
    transcode(path, path, KEYWORDS[keyword], Changes())
    target = tmp_path / "b.dcm"
    for step in (
        lambda: redact(path, target, [Box(-1, 2, 2, 9, 99)], Changes()),
        lambda: transcode(path, target, KEYWORDS["jpeg-lossless-sv1"], Changes()),
        lambda: change_header(path, target, Changes({0x00280301: ("CS", "NO")})),
        lambda: tidy(path, target, survey(EncodedImage.open(path), None), None, Changes()),
    ):
        tracemalloc.start()
        step()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < FRAME_BYTES * 14 < FRAME_BYTES * FRAMES
