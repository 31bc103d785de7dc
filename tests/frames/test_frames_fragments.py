"""Which fragments make which frame (PS3.5 A.4; cases.md 55, 49): none is lost, none is mixed up, doubt holds."""

from __future__ import annotations

import struct
from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Hold
from gateway.frames import KEYWORDS, Changes, EncodedImage, replace_frames, transcode
from gateway.frames.encapsulation import WIDE_BYTES
from tests.encoded_images import compressed, fragments, native, noise

FRAMES = noise(2, 16, 16)
J2K, RLE, JPEG_LS = KEYWORDS["jpeg-2000-lossless"], KEYWORDS["rle"], KEYWORDS["jpeg-ls-lossless"]


def j2k(frame: np.ndarray) -> bytes:
    data = imagecodecs.jpeg2k_encode(frame, codecformat="j2k", level=0, reversible=True)
    return bytes(data) + bytes(len(data) & 1)


ONE, TWO = j2k(FRAMES[0]), j2k(FRAMES[1])
CUT = len(ONE) // 2 & ~1


def opened(tmp_path: Path, data: bytes, frames: int = 2, syntax: str = J2K, **values: object) -> EncodedImage:
    described = FRAMES if frames > 1 else FRAMES[0]
    path = compressed(tmp_path / "a.dcm", [], described, syntax, data=data, **{"NumberOfFrames": frames, **values})
    return EncodedImage.open(path)


def check(image: EncodedImage, expected: np.ndarray = FRAMES) -> None:
    np.testing.assert_array_equal(np.stack([image.stored(frame) for frame in range(image.frames)]), expected)


@pytest.mark.parametrize("first", [True, False])
def test_an_empty_table_with_several_fragments_a_frame(tmp_path: Path, first: bool) -> None:
    """cases.md 55: 2 frames, fragments 2 + 1, offset table empty."""
    parts = (ONE[:CUT], ONE[CUT:], TWO) if first else (ONE, TWO[:CUT], TWO[CUT:])
    check(opened(tmp_path, fragments(*parts)))


def test_a_basic_table_with_several_fragments_a_frame(tmp_path: Path) -> None:
    table = struct.pack("<2I", 0, len(ONE) + 16)
    check(opened(tmp_path, fragments(ONE[:CUT], ONE[CUT:], TWO, table=table)))


def test_an_extended_table(tmp_path: Path) -> None:
    offsets, lengths = struct.pack("<2Q", 0, len(ONE) + 8), struct.pack("<2Q", len(ONE), len(TWO))
    values = {"ExtendedOffsetTable": offsets, "ExtendedOffsetTableLengths": lengths}
    check(opened(tmp_path, fragments(ONE, TWO), **values))


def test_a_table_that_names_only_the_first_frame_is_completed_by_the_streams(tmp_path: Path) -> None:
    check(opened(tmp_path, fragments(ONE, TWO, table=bytes(4))))


def test_one_frame_in_many_fragments(tmp_path: Path) -> None:
    parts = [ONE[at : at + 10] for at in range(0, len(ONE), 10)]
    check(opened(tmp_path, fragments(*parts), frames=1), FRAMES[:1])


def test_odd_fragments_are_read_and_written_even(tmp_path: Path) -> None:
    """cases.md 49: an odd JPEG fragment; what is written has even length and the same picture."""
    odd = ONE.rstrip(b"\0")
    odd = odd if len(odd) % 2 else odd + b"\0"
    check(opened(tmp_path, fragments(odd, odd)), FRAMES[[0, 0]])
    replace_frames(tmp_path / "a.dcm", tmp_path / "b.dcm", FRAMES, Changes())
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        check(image)
        assert image.spans is not None
        assert all((end - start) % 2 == 0 for frame in image.spans.spans for start, end in frame)


def test_frames_beyond_number_of_frames_are_counted_and_not_read(tmp_path: Path) -> None:
    image = opened(tmp_path, fragments(ONE, TWO), frames=1)
    assert image.frames == 1
    assert image.notes == ("extra_frames",)
    check(image, FRAMES[:1])


@pytest.mark.parametrize(
    "data",
    [
        fragments(ONE),  # one frame is missing
        fragments(ONE, TWO, table=struct.pack("<2I", 0, 6)),  # into the first
        fragments(ONE, TWO, table=struct.pack("<2I", 8, len(ONE) + 8)),  # does not begin at 0
        fragments(ONE, TWO, table=struct.pack("<3I", 0, len(ONE) + 8, len(ONE) + 8)),  # twice
        fragments(ONE, TWO, table=b"\0\0\0\0\0"),
        fragments(),
    ],
)
def test_fragments_that_do_not_add_up_are_held(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(Hold, match="pixels_unreadable"):
        opened(tmp_path, data)


def test_run_lengths_have_one_fragment_a_frame(tmp_path: Path) -> None:
    native(tmp_path / "n.dcm", FRAMES)
    transcode(tmp_path / "n.dcm", tmp_path / "r.dcm", RLE, Changes())
    with EncodedImage.open(tmp_path / "r.dcm") as image:
        streams = [image.fragment(frame) for frame in range(2)]
    with pytest.raises(Hold, match="cannot be decoded"):
        opened(tmp_path, fragments(streams[0][:100], streams[0][100:]), syntax=RLE).stored(0)


@pytest.mark.parametrize("zeros", [2, 6, 64])
def test_run_lengths_may_be_padded_with_zeros_and_with_nothing_else(tmp_path: Path, zeros: int) -> None:
    """PS3.5 G.3.1 knows one pad byte; some writers align segments or fragments to more."""
    native(tmp_path / "n.dcm", FRAMES[0])
    transcode(tmp_path / "n.dcm", tmp_path / "r.dcm", RLE, Changes())
    with EncodedImage.open(tmp_path / "r.dcm") as image:
        stream = image.fragment(0)
    check(opened(tmp_path, fragments(stream + bytes(zeros)), frames=1, syntax=RLE), FRAMES[:1])
    for behind in (bytes(zeros) + b"\1\7", b"\0\7" * zeros, bytes(66)):
        with pytest.raises(Hold, match="cannot be decoded"):
            opened(tmp_path, fragments(stream + behind), frames=1, syntax=RLE).stored(0)


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.booleans())
def test_any_cutting_of_any_streams_comes_together_again(tmp_path_factory, cuts: list[int], table: bool) -> None:
    """Whatever the cutting, and with or without a table, the frames are the frames."""
    folder = tmp_path_factory.mktemp("cut")
    frames = noise(len(cuts), 8, 8, seed=len(cuts))
    parts, offsets, at = [], [], 0
    for frame, pieces in zip(frames, cuts, strict=True):
        data = bytes(imagecodecs.jpegls_encode(frame))
        data += bytes(len(data) & 1)
        step = max(len(data) // pieces & ~1, 16)
        offsets.append(at)
        for start in range(0, len(data), step):
            parts.append(data[start : start + step])
            at += 8 + len(parts[-1])
    encoded = struct.pack(f"<{len(offsets)}I", *offsets) if table else b""
    path = compressed(folder / "a.dcm", [], frames, JPEG_LS, data=fragments(*parts, table=encoded))
    with EncodedImage.open(path) as image:
        check(image, frames)


def test_what_is_written_has_a_basic_table_that_pydicom_follows(tmp_path: Path) -> None:
    frames = noise(5, 9, 9, dtype="u2")
    transcode(native(tmp_path / "a.dcm", frames), tmp_path / "b.dcm", JPEG_LS, Changes())
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    offsets = pydicom.encaps.parse_basic_offsets(dataset.PixelData)
    assert len(offsets) == 5
    fragments_of = list(pydicom.encaps.generate_fragmented_frames(dataset.PixelData))
    assert [len(parts) for parts in fragments_of] == [1] * 5
    np.testing.assert_array_equal(dataset.pixel_array, frames)


def test_an_extended_table_is_written_where_32_bits_might_not_reach(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("gateway.frames.encapsulation.WIDE_BYTES", 100)
    assert WIDE_BYTES <= 1 << 31
    frames = noise(3, 9, 9, dtype="u2")
    transcode(native(tmp_path / "a.dcm", frames), tmp_path / "b.dcm", JPEG_LS, Changes())
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    offsets = struct.unpack("<3Q", dataset.ExtendedOffsetTable)
    lengths = struct.unpack("<3Q", dataset.ExtendedOffsetTableLengths)
    assert offsets == (0, lengths[0] + 8, lengths[0] + lengths[1] + 16)
    np.testing.assert_array_equal(dataset.pixel_array, frames)
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        check(image, frames)
