"""How text looks, and that it goes: faint, turned, dark, coloured, of other scripts (cases.md 8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from text_objects import PLANT, SHAPE, US, drawn, group_of, ink_left, mask_of, run, save, stored, texture

from gateway.pixels.burned_in_text import BurnedInText

DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


@pytest.mark.parametrize("with_header", [True, False])
def test_faint_text_in_a_wide_window_is_redacted(tmp_path: Path, *, with_header: bool) -> None:
    """cases.md 8: 12 bits, low contrast on texture, and the same under an emptied header."""
    frame = texture(SHAPE) * 6 + 300
    frame[80:92, 230:250] = 4000  # metal
    mask = mask_of(PLANT, SHAPE, size=20)
    frame += mask * 110
    original = np.clip(frame, 0, 4095).astype(np.uint16)
    bits = {"BitsStored": 12, "HighBit": 11}
    names = {} if with_header else {"PatientName": "", "PatientID": "", "PatientBirthDate": ""}
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [original], **bits, **names))
    run(BurnedInText(on_low_confidence="redact"), group)
    assert ink_left(group[0].candidate, mask > 0.5, original) < 0.02


def rgb(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Yellow text on a grey picture."""
    out = np.repeat(np.clip(texture(SHAPE), 0, 255).astype(np.uint8)[..., None], 3, 2)
    ink = mask_of(PLANT, SHAPE) > 0.3
    out[ink] = (230, 210, 0)
    return out


@pytest.mark.parametrize(
    ("make", "elements", "dark"),
    [
        (lambda: drawn(), {"PhotometricInterpretation": "MONOCHROME1"}, 255),
        (lambda: rgb(drawn()), {}, 0),
        (lambda: np.rot90(drawn()).copy(), {}, 0),
        (lambda: np.rot90(drawn(), 2).copy(), {}, 0),
        (lambda: 255 - drawn(), {}, 0),
    ],
    ids=["monochrome1", "rgb", "quarter turn", "upside down", "dark on light"],
)
def test_every_look_of_text_is_filled_with_what_looks_black(
    tmp_path: Path, make: Callable[[], NDArray[np.uint8]], elements: dict[str, object], dark: int
) -> None:
    frame = make()
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame], **elements))  # type: ignore[arg-type]
    run(BurnedInText(), group)
    ink = mask_of(PLANT, SHAPE) > 0.3
    if frame.shape[:2] != SHAPE:
        ink = np.rot90(ink)
    elif np.array_equal(frame, np.rot90(drawn(), 2)):
        ink = np.rot90(ink, 2)
    assert (stored(group[0].candidate)[ink] == dark).all()


def test_palette_colour_is_looked_at_as_it_shows(tmp_path: Path) -> None:
    """Entries in a shuffled order: stored values mean nothing by themselves."""
    order = np.random.default_rng(3).permutation(256).astype(np.uint8)
    table = np.zeros(256, np.uint16)
    table[order] = np.arange(256) * 257
    lut = {
        f"{colour}PaletteColorLookupTable{part}": value
        for colour in ("Red", "Green", "Blue")
        for part, value in (("Descriptor", [256, 0, 16]), ("Data", table.tobytes()))
    }
    entries = order[drawn()]
    group = group_of(
        tmp_path, save(tmp_path / "a.dcm", [entries], US, PhotometricInterpretation="PALETTE COLOR", **lut)
    )
    run(BurnedInText(), group)
    shown = table[stored(group[0].candidate)] // 257
    assert not shown[mask_of(PLANT, SHAPE) > 0.3].any()


@pytest.mark.skipif(not DEJAVU.is_file(), reason="no DejaVu font here")
def test_cyrillic_goes_by_what_the_detector_sees(tmp_path: Path) -> None:
    how = {"font": str(DEJAVU), "size": 16}
    frame = drawn("Воронцова Юлия 1950", **how)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame]))
    run(BurnedInText(), group)
    assert not stored(group[0].candidate)[mask_of("Воронцова Юлия 1950", SHAPE, **how) > 0.3].any()  # type: ignore[arg-type]
