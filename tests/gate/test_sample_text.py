"""Text that a device writes into a row of pixels as the codes of its letters: found in samples of every width.

Nobody sees it as letters, and a search through the bytes finds it in samples of 8 bits only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from gate_cases import NAME, encode, findings, identified_ct
from hypothesis import given
from hypothesis import strategies as st
from pydicom.encaps import encapsulate
from pydicom.pixels import get_encoder
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, RLELossless
from residual_cases import background, judged, with_pixels

from gateway.gate.attributes import Kind
from gateway.gate.sample_text import SampleText
from gateway.gate.terms import Term
from gateway.study import Outcome

JPEG_2000, JPEG_LS = "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.80"
ROW = 3


def spelt(dtype: str = "u2", *, shift: int = 0) -> np.ndarray:
    """A picture with the plant's codes in one row, its values moved up by some bits."""
    picture = background(48, 64).astype(dtype)
    picture[ROW, : len(NAME)] = np.frombuffer(NAME.encode(), np.uint8)
    return picture << shift


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ExplicitVRBigEndian])
def test_native_samples_of_every_width_are_searched(tmp_path: Path, dtype: str, syntax: str) -> None:
    ds = with_pixels(spelt(dtype))
    if syntax == ExplicitVRBigEndian:
        ds.PixelData = spelt(dtype).astype(f">{dtype}").tobytes()
    ds["PixelData"].VR = "OB" if dtype == "u1" else "OW"
    assert findings(tmp_path, encode(identified_ct()), encode(ds, syntax)) == {"(7fe0,0010)": "name of (0010,0010)"}


def _jpeg_2000(picture: np.ndarray) -> bytes:
    return bytes(imagecodecs.jpeg2k_encode(picture, level=0, codecformat="J2K"))


def _rle(picture: np.ndarray) -> bytes:
    ds = with_pixels(picture)
    return bytes(next(get_encoder(RLELossless).iter_encode(ds)))


@pytest.mark.parametrize(
    ("syntax", "encoder"),
    [(JPEG_2000, _jpeg_2000), (JPEG_LS, imagecodecs.jpegls_encode), (RLELossless, _rle)],
    ids=["JPEG 2000", "JPEG-LS", "RLE"],
)
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_compressed_samples_are_searched_as_decoded(
    tmp_path: Path, syntax: str, encoder: Callable[[np.ndarray], bytes], dtype: str
) -> None:
    ds = with_pixels(spelt(dtype))
    ds.PixelData = encapsulate([encoder(spelt(dtype))])
    ds["PixelData"].is_undefined_length = True
    verdict = judged(tmp_path, encode(ds, syntax))
    assert verdict.reason == "residual_text"
    assert [(one.where, one.rule) for one in verdict.findings] == [
        ("(7fe0,0010) frame 0 rows 3-4 columns 0-64", "values that spell the name of (0010,0010)")
    ]


def test_values_in_the_upper_bits_are_searched(tmp_path: Path) -> None:
    """PS3.5 8.1.1: 12 bits stored up to bit 15 are no codes as words, and are as values."""
    ds = with_pixels(spelt(shift=4), stored=12)
    ds.HighBit = 15
    assert judged(tmp_path, encode(ds)).reason == "residual_text"


def test_every_frame_is_searched(tmp_path: Path) -> None:
    frames = np.stack([background(48, 64), background(48, 64, seed=1), spelt()])
    verdict = judged(tmp_path, encode(with_pixels(frames)))
    assert verdict.findings[0].where.startswith("(7fe0,0010) frame 2 rows 3-4")


def test_a_picture_whose_values_lie_among_the_codes_of_letters_passes(tmp_path: Path) -> None:
    noise = np.random.default_rng(3).integers(48, 123, (64, 96)).astype(np.uint16)
    candidate = encode(with_pixels(noise))
    (tmp_path / "other").mkdir()
    assert judged(tmp_path, candidate).outcome is Outcome.PASS
    assert findings(tmp_path / "other", encode(identified_ct()), candidate) == {}


def test_what_is_no_code_is_no_fault() -> None:
    values = np.array([np.nan, np.inf, -1.0, 300.0, *b"ZZSYNTH^LEAKTEST", 90.5], np.float32)
    (found,) = SampleText({b"zzsynth^leaktest": Term(Kind.NAME, alone=False)}).in_values(values)
    assert found[:2] == (4, 20)


@given(
    st.lists(st.sampled_from([b"Zz", b"abcde", b"\xe4\xf6", b"\0", b"q", b"\xff\xfe"]), max_size=40).map(b"".join),
    st.sets(st.sampled_from([b"zzabcde", b"abcdeabcde", b"q\xe4\xf6abcde", b"zzzzzzzz"]), min_size=1),
)
def test_bytes_are_found_as_a_plain_search_finds_them(chunk: bytes, spellings: set[bytes]) -> None:
    terms = {one: Term(Kind.NAME, alone=False, first=number) for number, one in enumerate(sorted(spellings))}
    found = {one.first for one in SampleText(terms).in_bytes(chunk)}
    wanted = {term.first for one, term in terms.items() if one in chunk.lower()}
    assert wanted <= found
