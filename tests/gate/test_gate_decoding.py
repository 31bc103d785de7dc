"""The gate's second decoder: what it reads equals independent decoders, and what it cannot read is `Unseen`."""

from __future__ import annotations

import struct
from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
import pytest
from gate_cases import encode, identified_ct
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, RLELossless

from gateway.gate import decoding, decoding_codestream
from gateway.gate.bytescan import Scan, scan_bytes, scan_file
from gateway.gate.decoding import Frames, stored_values, unused_bits
from gateway.gate.pixel_layout import Unseen, frame_streams, images, layout_of

HTJ2K_LOSSLESS = "1.2.840.10008.1.2.4.201"
JPEG_BASELINE, JPEG_LOSSLESS, JPEG_LS, J2K_LOSSLESS = (f"1.2.840.10008.1.2.4.{number}" for number in (50, 70, 80, 90))
ONE_FILE_EACH = (
    "MR_small_RLE.dcm",
    "MR_small_jp2klossless.dcm",
    "MR_small_jpeg_ls_lossless.dcm",
    "SC_rgb_jpeg_gdcm.dcm",
    "SC_rgb_rle_16bit_2frame.dcm",
    "SC_rgb_rle_32bit.dcm",
    "rtdose_rle_1frame.dcm",
    "JPEGLSNearLossless_16.dcm",
    "SC_rgb_jls_lossy_line.dcm",
    "MR_small_bigendian.dcm",
    "SC_rgb_small_odd.dcm",
    "liver_1frame.dcm",
)


def frames_of(scan: Scan) -> Frames:
    by_path = {leaf.path: leaf for leaf in scan.leaves}
    ((prefix, leaves),) = images(scan)
    layout = layout_of(scan, prefix, leaves, by_path)
    streams = None
    if leaves[0].fragment:
        streams = frame_streams(layout, leaves, by_path.get("(7fe0,0001)"))
    return Frames(layout, leaves, streams)


def values(frames: Frames) -> np.ndarray:
    return np.stack([stored_values(frames.layout, frames.words(k)) for k in range(frames.layout.frames)])


def an_image(samples: np.ndarray, *, stored: int | None = None, planar: int = 0, photometric: str = "") -> Dataset:
    """A CT with these samples, (rows, columns) or (rows, columns, 3); synthetic."""
    ds = identified_ct()
    ds.Rows, ds.Columns = samples.shape[:2]
    ds.SamplesPerPixel = 1 if samples.ndim == 2 else 3
    ds.PhotometricInterpretation = photometric or ("MONOCHROME2" if samples.ndim == 2 else "RGB")
    bits = samples.dtype.itemsize * 8
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = bits, stored or bits, (stored or bits) - 1
    ds.PixelRepresentation = int(samples.dtype.kind == "i")
    if samples.ndim == 3:
        ds.PlanarConfiguration = planar
        samples = np.moveaxis(samples, -1, 0) if planar else samples
    raw = np.ascontiguousarray(samples).tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    return ds


def encapsulated(samples: np.ndarray, stream: bytes | list[bytes], syntax: str, **how: object) -> bytes:
    ds = an_image(samples, **how)
    ds.PixelData = encapsulate(stream if isinstance(stream, list) else [stream])
    ds["PixelData"].VR = "OB"
    ds["PixelData"].is_undefined_length = True
    return encode(ds, syntax)


@pytest.mark.parametrize("name", ONE_FILE_EACH)
def test_what_is_read_equals_pydicoms_own_decoding(name: str, pydicom_files: list[Path]) -> None:
    (path,) = [path for path in pydicom_files if path.name == name][:1]
    expected = pydicom.dcmread(path).pixel_array
    frames = frames_of(scan_file(path, original=True))
    assert np.array_equal(values(frames).reshape(expected.shape), expected.astype(np.int64))


@pytest.mark.parametrize(
    ("syntax", "encoder"),
    [
        (JPEG_LOSSLESS, imagecodecs.ljpeg_encode),
        (JPEG_LS, imagecodecs.jpegls_encode),
        (J2K_LOSSLESS, lambda a: imagecodecs.jpeg2k_encode(a, codecformat="j2k", reversible=True, level=0)),
        (HTJ2K_LOSSLESS, lambda a: imagecodecs.htj2k_encode(a, reversible=True)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_lossless_frames_come_back_as_they_were(syntax: str, encoder, dtype) -> None:
    samples = np.random.default_rng(5).integers(0, 256, (37, 53)).astype(dtype)
    file = encapsulated(samples, encoder(samples), syntax)
    assert np.array_equal(values(frames_of(scan_bytes(file)))[0], samples)


def test_bits_that_a_point_transform_leaves_off_are_zeros() -> None:
    """10918-1 H.1.2.1: coded is the value shifted down by Pt, and the precision stays that of the value."""
    samples = (np.random.default_rng(5).integers(0, 64, (37, 53)) << 2).astype(np.uint8)
    stream = bytearray(imagecodecs.jpeg8_encode(samples >> 2, lossless=True, predictor=1, bitspersample=6))
    stream[stream.index(b"\xff\xc3") + 4] = 8  # precision
    scan = stream.index(b"\xff\xda")
    stream[scan + 1 + int.from_bytes(stream[scan + 2 : scan + 4], "big")] = 2  # Pt
    file = encapsulated(samples, bytes(stream), JPEG_LOSSLESS)
    assert np.array_equal(values(frames_of(scan_bytes(file)))[0], samples)


def test_lossy_jpeg_stays_within_its_tolerance() -> None:
    ramp = np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1))
    stream = imagecodecs.jpeg8_encode(ramp, level=90)
    got = values(frames_of(scan_bytes(encapsulated(ramp, stream, JPEG_BASELINE))))[0]
    assert np.abs(got - imagecodecs.jpeg8_decode(stream).astype(int)).max() <= 4


@given(
    samples=st.integers(1, 2).map(lambda n: 1 if n == 1 else 3),
    width=st.sampled_from([np.uint8, np.uint16, np.int16]),
    planar=st.integers(0, 1),
    seed=st.integers(0, 1000),
    big=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_native_samples_are_read_as_pydicom_reads_them(samples, width, planar, seed, big) -> None:
    shape = (7, 9) if samples == 1 else (7, 9, 3)
    image = np.random.default_rng(seed).integers(0, 100, shape).astype(width)
    ds = an_image(image, planar=planar)
    syntax = ExplicitVRLittleEndian
    if big:
        syntax = ExplicitVRBigEndian
        raw = np.frombuffer(ds.PixelData, np.uint8)
        if image.dtype.itemsize == 2 or ds["PixelData"].VR == "OW":
            raw = raw.reshape(-1, 2)[:, ::-1]
        ds.PixelData = raw.tobytes()
        ds["PixelData"].VR = "OW"
    got = values(frames_of(scan_bytes(encode(ds, syntax))))[0]
    assert np.array_equal(got, image) or (big and image.dtype.itemsize == 1)


def test_eight_bit_samples_in_big_endian_words_are_swapped_back() -> None:
    image = np.arange(8 * 6, dtype=np.uint8).reshape(8, 6)
    ds = an_image(image)
    ds.PixelData = np.frombuffer(ds.PixelData, np.uint8).reshape(-1, 2)[:, ::-1].tobytes()
    ds["PixelData"].VR = "OW"
    assert np.array_equal(values(frames_of(scan_bytes(encode(ds, ExplicitVRBigEndian))))[0], image)


def test_single_bits_run_on_over_frames_without_padding() -> None:
    bits = np.random.default_rng(1).integers(0, 2, (3, 5, 5)).astype(np.uint8)
    ds = an_image(bits[0])
    ds.NumberOfFrames, ds.BitsAllocated, ds.BitsStored, ds.HighBit = 3, 1, 1, 0
    raw = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    assert np.array_equal(values(frames_of(scan_bytes(encode(ds)))), bits)


def test_subsampled_colour_is_spread_over_its_two_pixels() -> None:
    ds = an_image(np.zeros((2, 4, 3), np.uint8), photometric="YBR_FULL_422")
    ds.PixelData = bytes([10, 11, 90, 91, 12, 13, 92, 93] * 2)
    got = frames_of(scan_bytes(encode(ds))).words(0)
    assert got[0].tolist() == [[10, 90, 91], [11, 90, 91], [12, 92, 93], [13, 92, 93]]


def test_floats_are_read_as_floats() -> None:
    image = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    ds = an_image(np.zeros((3, 4), np.uint16))
    del ds.PixelData
    ds.BitsAllocated = 32
    ds.FloatPixelData = image.tobytes()
    assert np.array_equal(frames_of(scan_bytes(encode(ds))).words(0), image)


def test_bits_outside_bits_stored_are_given_apart() -> None:
    words = np.full((4, 4), 0x0123, np.uint16)
    words[1, 2] |= 0x4000
    frames = frames_of(scan_bytes(encode(an_image(words, stored=12))))
    hidden = unused_bits(frames.layout, frames.words(0))
    assert hidden is not None
    assert np.argwhere(hidden).tolist() == [[1, 2]]
    assert (stored_values(frames.layout, frames.words(0)) == 0x0123).all()


def test_a_sign_that_is_carried_on_hides_nothing() -> None:
    words = np.array([[-5, 5], [-1, 0]], np.int16)
    frames = frames_of(scan_bytes(encode(an_image(words, stored=12))))
    assert unused_bits(frames.layout, frames.words(0)) is None
    assert np.array_equal(stored_values(frames.layout, frames.words(0)), words)


def _jpeg(samples: np.ndarray) -> bytes:
    return imagecodecs.jpeg8_encode(samples, level=90)


def _with_segment(stream: bytes, marker: int, body: bytes) -> bytes:
    return stream[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body + stream[2:]


GREY = np.tile(np.arange(32, dtype=np.uint8) * 7, (24, 1))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda s: s + b"more than padding", "bytes behind the end of the codestream"),
        (lambda s: s + _jpeg(GREY), "bytes behind the end of the codestream"),
        (lambda s: s[:-40], "the codestream is cut short"),
        (lambda s: _jpeg(GREY[:8]), "the codestream is of another size than the header says"),
        (lambda s: b"\0" * 100, "no codestream of its transfer syntax"),
        (
            lambda s: _with_segment(s, 0xE1, b"Exif\0\0" + _jpeg(GREY)),
            "application data in the codestream, large enough for a picture",
        ),
        (
            lambda s: _with_segment(s, 0xFE, b"x" * 5000),
            "application data in the codestream, large enough for a picture",
        ),
    ],
)
def test_a_jpeg_that_is_not_only_its_picture_cannot_be_looked_at(change, rule: str) -> None:
    file = encapsulated(GREY, change(_jpeg(GREY)), JPEG_BASELINE)
    with pytest.raises(Unseen) as caught:
        frames_of(scan_bytes(file)).words(0)
    assert caught.value.rule == rule


@pytest.mark.parametrize("syntax", [J2K_LOSSLESS, HTJ2K_LOSSLESS])
def test_bytes_behind_a_jpeg_2000_codestream_are_seen(syntax: str) -> None:
    encoder = imagecodecs.htj2k_encode if syntax == HTJ2K_LOSSLESS else imagecodecs.jpeg2k_encode
    how = {} if syntax == HTJ2K_LOSSLESS else {"codecformat": "j2k", "level": 0}
    stream = encoder(GREY, reversible=True, **how)
    assert np.array_equal(values(frames_of(scan_bytes(encapsulated(GREY, stream, syntax))))[0], GREY)
    with pytest.raises(Unseen):
        frames_of(scan_bytes(encapsulated(GREY, stream + b"hidden picture", syntax))).words(0)


def test_bytes_behind_an_rle_segment_are_seen() -> None:
    ds = pydicom.dcmread(pydicom.data.get_testdata_file("MR_small_RLE.dcm"))
    (stream,) = pydicom.encaps.generate_frames(ds.PixelData, number_of_frames=1)
    ds.PixelData = encapsulate([stream + b"hidden picture"])
    with pytest.raises(Unseen):
        frames_of(scan_bytes(encode(ds, RLELossless))).words(0)


def test_more_fragments_than_frames_cannot_be_looked_at() -> None:
    file = encapsulated(GREY, [_jpeg(GREY), _jpeg(GREY)], JPEG_BASELINE)  # one frame is stated
    with pytest.raises(Unseen):
        frames_of(scan_bytes(file)).words(0)


def test_frames_in_several_fragments_are_put_together_by_their_starts() -> None:
    first, second = _jpeg(GREY), _jpeg(GREY[::-1].copy())
    halves = first[: len(first) // 2 * 2 - 40], first[len(first) // 2 * 2 - 40 :]
    ds = an_image(GREY)
    ds.NumberOfFrames = 2
    ds.PixelData = encapsulate([*halves, second], has_bot=False)
    ds["PixelData"].is_undefined_length = True
    got = values(frames_of(scan_bytes(encode(ds, JPEG_BASELINE))))
    assert np.abs(got[1] - got[0][::-1]).max() <= 8


def test_a_native_value_of_another_length_cannot_be_looked_at() -> None:
    ds = an_image(GREY)
    ds.PixelData += b"\0\0\0\0"
    with pytest.raises(Unseen):
        frames_of(scan_bytes(encode(ds)))


def test_decoders_that_disagree_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.arange(48, dtype=np.uint8).reshape(6, 8)
    file = encapsulated(samples, imagecodecs.jpegls_encode(samples), JPEG_LS)
    whole = decoding._gdcm

    def one_off(*args: object) -> np.ndarray:
        changed = whole(*args).copy()
        changed[3] ^= 1
        return changed

    monkeypatch.setattr(decoding, "_gdcm", one_off)
    with pytest.raises(Unseen) as caught:
        frames_of(scan_bytes(file)).words(0)
    assert caught.value.rule == "two decoders do not agree upon the picture"


@pytest.mark.parametrize("attribute", ["Rows", "Columns", "BitsAllocated"])
def test_a_picture_without_its_size_cannot_be_looked_at(attribute: str) -> None:
    ds = an_image(GREY)
    delattr(ds, attribute)
    with pytest.raises(Unseen):
        frames_of(scan_bytes(encode(ds)))


def test_a_huge_stated_size_is_refused_before_anything_is_decoded() -> None:
    stream = bytearray(imagecodecs.jpeg2k_encode(GREY, codecformat="j2k", level=0))
    stream[8:16] = struct.pack(">II", 60000, 60000)
    ds = an_image(GREY)
    ds.Rows = ds.Columns = 60000
    ds.PixelData = encapsulate([bytes(stream)])
    ds["PixelData"].is_undefined_length = True
    with pytest.raises(Unseen) as caught:
        frames_of(scan_bytes(encode(ds, J2K_LOSSLESS)))
    assert caught.value.rule == "a frame too large to look at"


@given(at=st.floats(0, 1), value=st.integers(0, 255), cut=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_damaged_headers_of_a_codestream_are_unseen_or_read_and_nothing_else(at, value, cut) -> None:
    """The gate's own parser only: what it lets through goes to the decoders, in a worker of its own."""
    stream = bytearray(_jpeg(GREY))
    stream[int(at * (len(stream) - 1))] = value
    damaged = bytes(stream[: len(stream) - cut])
    frames = frames_of(scan_bytes(encapsulated(GREY, _jpeg(GREY), JPEG_BASELINE)))
    try:
        facts = decoding_codestream.examine(frames.layout, damaged, "frame 0")
    except Unseen:
        return
    assert (facts.rows, facts.columns, facts.samples) == (24, 32, 1)
