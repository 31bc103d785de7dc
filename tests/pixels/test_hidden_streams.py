"""What hides in compressed frames goes: comments, application segments, thumbnails, boxes, bytes behind the end."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest

from gateway.frames import Changes, EncodedImage, transcode
from gateway.frames.stripping import stripped
from gateway.frames.syntaxes import (
    JPEG_2000,
    JPEG_2000_LOSSLESS,
    JPEG_BASELINE,
    JPEG_LOSSLESS,
    JPEG_LS_LOSSLESS,
    RLE,
    Codec,
)
from gateway.gate.encoding import judge_encoding
from gateway.gate.reading import Pair
from gateway.pixels import Instance, Work, run_stage
from gateway.pixels.hidden import HiddenPixels
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Outcome
from tests.encoded_images import compressed, jpeg_ls, native, noise, smooth

WORK = Work(Policy(name="hidden", header=HeaderPolicy(), gate=GatePolicy(study={})), b"s" * 32)
STAMPS = {"PatientIdentityRemoved": "YES", "DeidentificationMethod": "DEID_GW"}
SECRET = b"LEAK0001 ZZSYNTH^LEAKTEST"


def cleaned(candidate: Path) -> dict[str, int]:
    """Counts of the stage; the candidate passes the gate's check of its encoding, and a second run finds nothing."""
    original = candidate.with_name("original.dcm")
    shutil.copy(candidate, original)
    instance = Instance("00001", original, candidate)
    (step,) = run_stage("hidden_pixels", HiddenPixels(), [instance], WORK, candidate.parent / "store")
    verdict = judge_encoding([Pair("00001", original, candidate)])
    assert verdict.outcome is Outcome.PASS, verdict.findings
    after = candidate.read_bytes()
    (again,) = run_stage("hidden_pixels", HiddenPixels(), [instance], WORK, candidate.parent / "store")
    assert (dict(again.counts), candidate.read_bytes()) == ({}, after)
    return dict(step.counts)


def stored(path: Path) -> np.ndarray:
    with EncodedImage.open(path) as image:
        return np.stack([image.stored(frame) for frame in range(image.frames)])


def segment(marker: int, contents: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(contents) + 2) + contents


EXIF, COMMENT = segment(0xE1, b"Exif\0\0" + SECRET), segment(0xFE, SECRET)
THUMBNAIL = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\4\4" + noise(4, 4, 3).tobytes())


@pytest.mark.parametrize("extra", [EXIF, COMMENT, EXIF + COMMENT])
@pytest.mark.parametrize("syntax", [JPEG_BASELINE, JPEG_LOSSLESS, JPEG_LS_LOSSLESS])
def test_comments_and_application_segments_of_jpeg_go(tmp_path: Path, syntax: str, extra: bytes) -> None:
    array = smooth(16, 16)
    encode: Any = {
        JPEG_BASELINE: lambda: imagecodecs.jpeg8_encode(array, level=90),
        JPEG_LOSSLESS: lambda: imagecodecs.jpeg8_encode(array, lossless=True, predictor=1),
        JPEG_LS_LOSSLESS: lambda: jpeg_ls(array),
    }[syntax]
    plain = bytes(encode())
    path = compressed(
        tmp_path / "a.dcm", [plain[:2] + extra + plain[2:], plain], np.stack([array, array]), syntax, **STAMPS
    )
    before = stored(path)
    counts = cleaned(path)
    assert counts == {"stream_extras": 1}
    assert SECRET not in path.read_bytes()
    np.testing.assert_array_equal(stored(path), before)


def test_a_thumbnail_of_jfif_goes_and_its_density_stays(tmp_path: Path) -> None:
    plain = bytes(imagecodecs.jpeg8_encode(smooth(16, 16), level=90))
    assert plain[2:4] == b"\xff\xe0"
    data = plain[:2] + THUMBNAIL + plain[20:]
    path = compressed(tmp_path / "a.dcm", [data], smooth(16, 16), JPEG_BASELINE, **STAMPS)
    assert cleaned(path) == {"stream_extras": 1}
    with EncodedImage.open(path) as image:
        assert image.fragment(0).startswith(b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0")


def test_the_marker_that_says_rgb_stays(tmp_path: Path) -> None:
    data = bytes(imagecodecs.jpeg8_encode(smooth(16, 16, 3), level=90, colorspace="RGB", outcolorspace="RGB"))
    path = compressed(tmp_path / "a.dcm", [data[:2] + COMMENT + data[2:]], smooth(16, 16, 3), JPEG_BASELINE, **STAMPS)
    assert cleaned(path) == {"stream_extras": 1}
    with EncodedImage.open(path) as image:
        assert b"Adobe" in image.fragment(0)
        assert image.photometric == "RGB"


@pytest.mark.parametrize("syntax", [JPEG_BASELINE, JPEG_LS_LOSSLESS, JPEG_2000_LOSSLESS])
def test_bytes_behind_the_end_of_a_stream_go(tmp_path: Path, syntax: str) -> None:
    array = smooth(16, 16)
    plain = {
        JPEG_BASELINE: lambda: bytes(imagecodecs.jpeg8_encode(array, level=90)),
        JPEG_LS_LOSSLESS: lambda: jpeg_ls(array),
        JPEG_2000_LOSSLESS: lambda: bytes(
            imagecodecs.jpeg2k_encode(array, codecformat="j2k", level=0, reversible=True)
        ),
    }[syntax]()
    whole_picture = plain + SECRET + plain  # another frame in the same fragment
    path = compressed(tmp_path / "a.dcm", [whole_picture], array, syntax, **STAMPS)
    assert cleaned(path) == {"stream_extras": 1}
    assert SECRET not in path.read_bytes()
    with EncodedImage.open(path) as image:
        assert len(image.fragment(0)) <= len(plain) + 1
        np.testing.assert_array_equal(image.stored(0), stored(tmp_path / "original.dcm")[0])


def test_comments_and_boxes_of_jpeg_2000_go(tmp_path: Path) -> None:
    array = noise(16, 16)
    plain = bytes(imagecodecs.jpeg2k_encode(array, codecformat="j2k", level=0, reversible=True))
    at = plain.index(b"\xff\x52")  # before COD
    commented = plain[:at] + segment(0x64, b"\0\1" + SECRET) + plain[at:]
    boxed = bytes(imagecodecs.jpeg2k_encode(array, codecformat="jp2", level=0, reversible=True))
    boxed += struct.pack(">I4s", 8 + len(SECRET), b"uuid") + SECRET
    for data in (commented, boxed):
        path = compressed(tmp_path / "a.dcm", [data], array, JPEG_2000_LOSSLESS, **STAMPS)
        assert cleaned(path) == {"stream_extras": 1}
        assert SECRET not in path.read_bytes()
        np.testing.assert_array_equal(stored(path)[0], array)
        with EncodedImage.open(path) as image:
            assert image.fragment(0).startswith(b"\xff\x4f\xff\x51")


def test_what_hides_in_the_header_of_run_lengths_goes(tmp_path: Path) -> None:
    array = noise(9, 11)
    transcode(native(tmp_path / "n.dcm", array), tmp_path / "r.dcm", RLE, Changes())
    with EncodedImage.open(tmp_path / "r.dcm") as image:
        data = image.fragment(0)
    path = compressed(tmp_path / "a.dcm", [data[:20] + SECRET + data[20 + len(SECRET) :]], array, RLE, **STAMPS)
    assert cleaned(path) == {"stream_extras": 1}
    with EncodedImage.open(path) as image:
        assert image.fragment(0) == data


def test_lossy_compression_that_swings_beyond_its_range_hides_nothing(tmp_path: Path) -> None:
    """12 bits stored in a stream of 16 (PS3.5 8.2.4): a few values come out beyond the range, and the file stays."""
    array = np.where(np.random.default_rng(2).random((48, 48)) < 0.5, 0, 4095).astype(np.uint16)
    data = bytes(imagecodecs.jpeg2k_encode(array, codecformat="j2k", level=65, reversible=False))
    assert imagecodecs.jpeg2k_decode(data).max() > 4095
    path = compressed(tmp_path / "a.dcm", [stripped(data, Codec.JPEG_2000)], array, JPEG_2000, BitsStored=12, **STAMPS)
    before = path.read_bytes()
    assert cleaned(path) == {}
    assert path.read_bytes() == before


def test_bits_above_a_lossy_picture_go_and_do_not_become_part_of_it(tmp_path: Path) -> None:
    array = smooth(48, 48, dtype="u2", bits=12)
    above = np.zeros_like(array)
    above[8:24, 8:24] = 1 << 13
    data = bytes(imagecodecs.jpeg2k_encode(array | above, codecformat="j2k", level=60, reversible=False))
    path = compressed(tmp_path / "a.dcm", [stripped(data, Codec.JPEG_2000)], array, JPEG_2000, BitsStored=12, **STAMPS)
    assert cleaned(path) == {"unused_bits": 1}
    assert np.abs(stored(path)[0, 10:22, 10:22].astype(int) - array[10:22, 10:22]).max() < 200
