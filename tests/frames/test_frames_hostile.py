"""Hostile and broken pixel data is held: bombs before they are decoded, everything else without another exception."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import imagecodecs
import numpy as np
import pytest

from gateway.errors import Hold
from gateway.frames import KEYWORDS, Box, Changes, EncodedImage, redact, transcode
from gateway.frames.syntaxes import (
    HTJ2K_LOSSLESS,
    JPEG_2000_LOSSLESS,
    JPEG_BASELINE,
    JPEG_LOSSLESS,
    JPEG_LS_LOSSLESS,
    RLE,
)
from tests.encoded_images import compressed, fragments, native, noise

ARRAY = noise(16, 16)
STREAMS = {
    JPEG_BASELINE: lambda array: imagecodecs.jpeg8_encode(array, level=90),
    JPEG_LOSSLESS: lambda array: imagecodecs.jpeg8_encode(array, lossless=True, predictor=1),
    JPEG_LS_LOSSLESS: lambda array: imagecodecs.jpegls_encode(array, out=2 * array.nbytes + 4096),
    JPEG_2000_LOSSLESS: lambda array: imagecodecs.jpeg2k_encode(array, codecformat="j2k", level=0, reversible=True),
    HTJ2K_LOSSLESS: lambda array: imagecodecs.htj2k_encode(array, reversible=True),
}


@pytest.mark.parametrize("syntax", STREAMS)
def test_a_stream_of_other_sizes_than_the_header_is_held_before_it_is_decoded(
    tmp_path: Path, syntax: str, monkeypatch
) -> None:
    """A header of 16 x 16 around a stream of 512 x 512, and of more samples: nothing is decoded."""
    monkeypatch.setattr("gateway.frames.decode.DECODERS", {})
    for stream in (STREAMS[syntax](noise(512, 512)), STREAMS[syntax](noise(16, 16, 3))):
        path = compressed(tmp_path / "a.dcm", [bytes(stream)], ARRAY, syntax)
        with pytest.raises(Hold, match="a frame's own size"):
            EncodedImage.open(path)


@pytest.mark.parametrize("syntax", STREAMS)
def test_a_later_frame_of_another_size_is_held(tmp_path: Path, syntax: str) -> None:
    streams = [bytes(STREAMS[syntax](ARRAY)), bytes(STREAMS[syntax](noise(16, 24)))]
    with EncodedImage.open(compressed(tmp_path / "a.dcm", streams, noise(2, 16, 16), syntax)) as image:
        image.stored(0)
        with pytest.raises(Hold, match="pixels_unreadable"):
            image.stored(1)


def test_sizes_that_no_machine_decodes_are_held(tmp_path: Path) -> None:
    header = struct.pack("<16I", 1, 64, *[0] * 14)
    path = compressed(tmp_path / "a.dcm", [header + b"\x81\0" * 50], ARRAY, RLE, Rows=65535, Columns=65535)
    with pytest.raises(Hold, match="larger than this machine decodes"):
        EncodedImage.open(path)
    path = compressed(tmp_path / "b.dcm", [header + b"\x81\0" * 50], ARRAY, RLE, Rows=20000, Columns=20000)
    with EncodedImage.open(path) as image, pytest.raises(Hold, match="cannot be decoded"):
        image.stored(0)


@pytest.mark.parametrize(
    "values",
    [
        {"BitsStored": 9, "HighBit": 8},
        {"HighBit": 3},
        {"BitsAllocated": 12},
        {"NumberOfFrames": 0},
        {"NumberOfFrames": 2},
        {"NumberOfFrames": 2_000_000_000},
        {"Rows": 0},
        {"SamplesPerPixel": 2},
        {"SamplesPerPixel": 3},
        {"PhotometricInterpretation": "ARGB"},
        {"PhotometricInterpretation": ""},
    ],
)
def test_a_header_that_does_not_fit_its_pixels_is_held(tmp_path: Path, values: dict[str, object]) -> None:
    path = native(tmp_path / "a.dcm", ARRAY, **values)
    with pytest.raises(Hold, match="pixels_unreadable"):
        EncodedImage.open(path)


@pytest.mark.parametrize(
    ("uid", "reason"),
    [
        ("1.2.840.10008.1.2.4.100", "video_unsupported"),
        ("1.2.840.10008.1.2.4.102", "video_unsupported"),
        ("1.2.840.10008.1.2.4.106.1", "video_unsupported"),
        ("1.2.840.10008.1.2.4.108", "video_unsupported"),
        ("1.2.840.10008.1.2.4.55", "unsupported_transfer_syntax"),
        ("1.2.840.10008.1.2.4.94", "unsupported_transfer_syntax"),
        ("1.2.3.4", "unsupported_transfer_syntax"),
    ],
)
def test_video_and_unknown_syntaxes_are_held(tmp_path: Path, uid: str, reason: str) -> None:
    path = compressed(tmp_path / "a.dcm", [b"\0\0\1\xba"], ARRAY, uid)
    with pytest.raises(Hold) as held:
        EncodedImage.open(path)
    assert held.value.reason == reason


@pytest.mark.parametrize("syntax", [*STREAMS, RLE])
def test_native_bytes_under_a_compressed_syntax_are_held(tmp_path: Path, syntax: str) -> None:
    """cases.md 48: what several tools write."""
    path = native(tmp_path / "a.dcm", ARRAY)
    uid = syntax.encode() + bytes(len(syntax) & 1)
    data = path.read_bytes()
    at = data.index(b"1.2.840.10008.1.2.1\0")
    length = struct.pack("<H", len(uid))
    data = data[: at - 2] + length + uid + data[at + 20 :]
    grown = struct.unpack_from("<I", data, 140)[0] + len(uid) - 20
    path.write_bytes(data[:140] + struct.pack("<I", grown) + data[144:])
    with pytest.raises(Hold, match="pixels_unreadable"):
        EncodedImage.open(path)


@pytest.mark.parametrize("data", [b"", b"\0" * 4, b"DICM" * 40, bytes(132)])
def test_what_is_no_dicom_file_is_held(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.dcm").write_bytes(data)
    with pytest.raises(Hold, match="pixels_unreadable"):
        EncodedImage.open(tmp_path / "a.dcm")


def test_a_deflated_bomb_is_held(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("gateway.frames.source.MAX_INFLATED_BYTES", 1000)
    path = native(tmp_path / "a.dcm", np.zeros((64, 64), "u1"))
    transcode(path, tmp_path / "b.dcm", KEYWORDS["deflated"], Changes())
    with pytest.raises(Hold, match="pixels_unreadable"):
        EncodedImage.open(tmp_path / "b.dcm")


def test_two_pixel_elements_are_held(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", ARRAY)
    at = path.read_bytes().index(struct.pack("<HH2s", 0x7FE0, 0x0010, b"OB"))
    data = path.read_bytes()
    path.write_bytes(data[:at] + struct.pack("<HH2sHI", 0x7FE0, 0x0008, b"OF", 0, 4) + bytes(4) + data[at:])
    with pytest.raises(Hold, match="several elements of pixel data"):
        EncodedImage.open(path)


def test_run_lengths_that_overrun_or_stop_short_are_held(tmp_path: Path) -> None:
    header = struct.pack("<16I", 1, 64, *[0] * 14)
    for body in (b"\x81\0" * 3, b"\x81\0\x81\0\x81\0", b"\x81\0" * 2 + b"\x01secret", b"\x7f" * 10):
        path = compressed(tmp_path / "a.dcm", [header + body + bytes(len(body) & 1)], ARRAY, RLE)
        with EncodedImage.open(path) as image, pytest.raises(Hold, match="cannot be decoded"):
            image.stored(0)


@pytest.mark.parametrize("syntax", sorted(KEYWORDS.values()))
def test_damaged_files_raise_hold_and_nothing_else(tmp_path: Path, syntax: str) -> None:
    """Bytes flipped, cut out and put in, by a fixed seed: reading, redacting and transcoding end well or hold."""
    transcode(native(tmp_path / "n.dcm", noise(2, 16, 16, 3)), tmp_path / "a.dcm", syntax, Changes())
    whole = (tmp_path / "a.dcm").read_bytes()
    rng = random.Random(syntax)
    held = 0
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(132, len(data))
            if rng.random() < 0.7:
                data[at] = rng.randrange(256)
            else:
                del data[at : at + rng.choice([1, 2, 30])]
        path = tmp_path / "b.dcm"
        path.write_bytes(data)
        try:
            redact(path, tmp_path / "c.dcm", [Box(-1, 1, 1, 4, 4)], Changes())
            transcode(path, tmp_path / "c.dcm", KEYWORDS["explicit-little"], Changes())
        except Hold:
            held += 1
        except ValueError as error:  # the pixel data element itself was damaged beyond recognition
            assert "no pixel data" in str(error)  # noqa: PT017
    assert held > 5


def test_more_fragments_than_memory_has_room_for_are_held(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("gateway.frames.fragments.MAX_FRAGMENTS", 100)
    path = compressed(tmp_path / "a.dcm", [], ARRAY, JPEG_LS_LOSSLESS, data=fragments(*[b""] * 200))
    with pytest.raises(Hold, match="more fragments than"):
        EncodedImage.open(path)


def test_fragments_without_any_frame_are_held(tmp_path: Path) -> None:
    for data in (fragments(), fragments(b""), fragments(b"", b"")):
        with pytest.raises(Hold, match="pixels_unreadable"):
            EncodedImage.open(compressed(tmp_path / "a.dcm", [], ARRAY, JPEG_LS_LOSSLESS, data=data))
