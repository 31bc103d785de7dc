"""`residual_text` looks where no viewer does: overlays, icons, bits beside the values, palettes, private blocks."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from gate_cases import encode, policy, private
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.sequence import Sequence as Items
from residual_cases import NAME_IN_PIXELS, background, judged, with_pixels, written

from gateway.gate.residual_text import ResidualText
from gateway.pixels import Estimate, Instance, Work
from gateway.pixels.hidden import HiddenPixels
from gateway.study import Outcome

JPEG_BASELINE = "1.2.840.10008.1.2.4.50"


def test_text_in_an_overlay_is_found(tmp_path: Path) -> None:
    ds = with_pixels(background())
    plane = written(np.zeros((160, 256), np.uint8), NAME_IN_PIXELS, value=1)
    ds.add_new(0x60000010, "US", 160)
    ds.add_new(0x60000011, "US", 256)
    ds.add_new(0x60000100, "US", 1)
    ds.add_new(0x60003000, "OW", np.packbits(plane.reshape(-1), bitorder="little").tobytes())
    verdict = judged(tmp_path, encode(ds))
    assert verdict.findings[0].where.startswith("(6000,3000) frame 0")


def test_text_in_an_icon_is_found(tmp_path: Path) -> None:
    ds = with_pixels(background())
    icon = with_pixels(written(np.full((100, 256), 40, np.uint8), NAME_IN_PIXELS, value=230))
    kept = {"Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "PixelData"}
    item = Dataset()
    for element in icon:
        if element.keyword in kept | {"SamplesPerPixel", "PhotometricInterpretation"}:
            item.add(element)
    ds.IconImageSequence = Items([item])
    assert judged(tmp_path, encode(ds)).findings[0].where.startswith("(0088,0200)[0].(7fe0,0010)")


def test_text_in_bits_that_no_viewer_shows_is_found(tmp_path: Path) -> None:
    ink = written(np.zeros((160, 256), np.uint16), NAME_IN_PIXELS, value=1)
    words = background() | (ink << 14)
    assert judged(tmp_path, encode(with_pixels(words, stored=12))).reason == "residual_text"


def test_text_that_a_palette_hides_is_found(tmp_path: Path) -> None:
    """Two indices of one colour: nobody sees the text until the palette is changed."""
    ds = with_pixels(written(np.full((160, 256), 40, np.uint8), NAME_IN_PIXELS, value=200))
    ds.PhotometricInterpretation = "PALETTE COLOR"
    for channel in ("Red", "Green", "Blue"):
        setattr(ds, f"{channel}PaletteColorLookupTableDescriptor", [256, 0, 16])
        setattr(ds, f"{channel}PaletteColorLookupTableData", np.full(256, 30000, "<u2").tobytes())
    assert judged(tmp_path, encode(ds)).reason == "residual_text"


def test_a_picture_in_a_private_block_is_looked_at(tmp_path: Path) -> None:
    ds = with_pixels(background())
    block = io.BytesIO()
    Image.fromarray(written(np.full((100, 256), 40, np.uint8), NAME_IN_PIXELS, value=230)).save(block, "PNG")
    private(ds, 0x10, "OB", block.getvalue() + b"\0" * (len(block.getvalue()) % 2))
    verdict = judged(tmp_path, encode(ds))
    assert (verdict.reason, verdict.findings[0].where[:11]) == ("residual_text", "(0029,1010)")


@pytest.mark.parametrize(
    ("block", "outcome"),
    [
        (np.random.default_rng(0).bytes(2048), Outcome.HOLD),
        (bytes(2048), Outcome.PASS),
        (b"an ordinary protocol, line by line\n" * 60, Outcome.PASS),
    ],
    ids=["unknown", "zeros", "text"],
)
def test_a_private_block_that_may_be_a_picture_holds(tmp_path: Path, block: bytes, outcome: Outcome) -> None:
    ds = with_pixels(background())
    private(ds, 0x10, "OB", block)
    verdict = judged(tmp_path, encode(ds))
    assert verdict.outcome is outcome
    if outcome is Outcome.HOLD:
        assert (verdict.reason, verdict.findings[0].rule) == ("gate_failed", "a private block that cannot be looked at")


def test_what_cannot_be_looked_at_holds_whatever_is_allowed(tmp_path: Path) -> None:
    stream = imagecodecs.jpeg8_encode(np.full((160, 256), 99, np.uint8), level=90)
    ds = with_pixels(np.full((160, 256), 99, np.uint8))
    ds.PixelData = encapsulate([stream + b"something behind the end"])
    ds["PixelData"].is_undefined_length = True
    verdict = judged(tmp_path, encode(ds, JPEG_BASELINE), check=ResidualText(max=100))
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "gate_failed")
    assert verdict.findings[0].where == "(7fe0,0010) frame 0"


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one[:2] + b"\xff\xe1" + (5002).to_bytes(2, "big") + b"Exif\0\0" + bytes(4994) + one[2:],
        lambda one: one + b"something behind the end",
    ],
    ids=["a large EXIF block", "bytes behind the end"],
)
def test_what_a_stage_can_take_out_is_said_to_whoever_looks(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    stream = imagecodecs.jpeg8_encode(background().astype(np.uint8), level=90)
    ds = with_pixels(background().astype(np.uint8))
    ds.PixelData = encapsulate([change(stream)])
    ds["PixelData"].is_undefined_length = True
    candidate = encode(ds, JPEG_BASELINE)
    (tmp_path / "before").mkdir()
    verdict = judged(tmp_path / "before", candidate)
    assert verdict.reason == "gate_failed"
    assert verdict.findings[0].rule.endswith("the stage hidden_pixels, put first under pixels, takes it out")

    path = tmp_path / "candidate.dcm"
    path.write_bytes(candidate)
    work = Work(policy(), bytes(32))
    HiddenPixels().apply([Instance("0001", path, path)], work, Estimate())
    assert judged(tmp_path, path.read_bytes()).outcome is Outcome.PASS


def test_text_of_an_overlay_of_several_frames_is_found_whatever_frame_it_lies_on(tmp_path: Path) -> None:
    """PS3.3 C.9.2.1.2: (60xx,0051) says where the first frame of an overlay lies; a viewer may ignore it."""
    ds = with_pixels(np.stack([background(96, 256, seed=seed) for seed in range(3)]))
    plane = np.zeros((2, 96, 256), np.uint8)
    plane[1] = written(plane[1], NAME_IN_PIXELS, value=1)
    numbers = {0x10: 96, 0x11: 256, 0x51: 2, 0x100: 1, 0x102: 0}
    for element, value in numbers.items():
        ds.add_new(0x60020000 | element, "US", value)
    ds.add_new(0x60020015, "IS", 2)
    ds.add_new(0x60023000, "OW", np.packbits(plane.reshape(-1), bitorder="little").tobytes())
    assert judged(tmp_path, encode(ds)).findings[0].where.startswith("(6002,3000) frame 1")


def test_text_in_the_bits_above_signed_values_is_found(tmp_path: Path) -> None:
    """Each word carries its sign on, but where text is drawn the bit above it is turned over."""
    values = np.random.default_rng(4).integers(-40, 40, (160, 256), dtype=np.int16)
    ink = written(np.zeros((160, 256), np.uint16), NAME_IN_PIXELS, value=1)
    ds = with_pixels(values.view(np.uint16) ^ (ink << 15), stored=12)
    ds.PixelRepresentation = 1
    assert judged(tmp_path, encode(ds)).reason == "residual_text"


@pytest.mark.parametrize("pair", [(0x7FC00000, 0x7FC00001), (0x00000000, 0x80000000)], ids=["no numbers", "zeros"])
def test_text_between_floats_that_are_alike_is_found(tmp_path: Path, pair: tuple[int, int]) -> None:
    """IEEE 754: every viewer shows all that is no number the same, and both zeros."""
    ink = written(np.zeros((160, 256), np.uint8), NAME_IN_PIXELS, value=1)
    bits = np.where(ink > 0, pair[1], pair[0]).astype("<u4")
    bits[:8] = np.linspace(1, 2, 256, dtype="<f4").view("<u4")
    ds = with_pixels(bits)
    for keyword in ("PixelData", "BitsStored", "HighBit", "PixelRepresentation"):
        delattr(ds, keyword)
    ds.add_new(0x7FE00008, "OF", bits.tobytes())
    assert judged(tmp_path, encode(ds)).reason == "residual_text"
