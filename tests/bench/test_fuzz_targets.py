"""What the fuzzer begins with reaches what it is meant to try, and each target takes any bytes without a finding."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.fuzz_targets import TARGETS
from gateway.errors import Hold
from gateway.frames.image import EncodedImage
from gateway.frames.syntaxes import Codec


@pytest.mark.parametrize("name", ["dimse", "stow"])
def test_a_seed_leaves_an_object_in_the_spool(tmp_path: Path, name: str) -> None:
    run = TARGETS[name].opened(tmp_path)
    for seed in TARGETS[name].seeds():
        run(seed)
    assert list((tmp_path / "home" / "spool").rglob("*.dcm"))


def test_seeds_of_frames_hold_pixels_of_every_codec(tmp_path: Path) -> None:
    codecs = set()
    for seed in TARGETS["frames"].seeds():
        (tmp_path / "in.dcm").write_bytes(seed)
        with suppress(Hold), EncodedImage.open(tmp_path / "in.dcm") as image:  # some are broken on purpose
            image.stored(0)
            codecs.add(image.source.syntax.codec)
    assert {Codec.JPEG, Codec.JPEG_LS, Codec.JPEG_2000, Codec.RLE} <= codecs


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_no_finding(tmp_path: Path, name: str) -> None:
    run = TARGETS[name].opened(tmp_path)
    seeds = [seed[:2000] for seed in TARGETS[name].seeds()[:6]]

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.one_of(
            st.binary(max_size=200),
            st.builds(_spliced, st.sampled_from(seeds), st.binary(max_size=8), st.integers(0, 1999)),
        )
    )
    def try_it(data: bytes) -> None:
        run(data)

    try_it()


def _spliced(seed: bytes, piece: bytes, at: int) -> bytes:
    return seed[:at] + piece + seed[at + len(piece) :]
