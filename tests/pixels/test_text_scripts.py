"""Names in scripts of the east, of two signs and more, small, faint or written downwards, go and do not hold."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from text_objects import group_of, mask_of, run, save, stored, texture

from gateway.pixels.burned_in_text import BurnedInText

SHAPE = (200, 320)
FOUND = find_spec("japanize_matplotlib")
FONT = Path(str(FOUND.origin)).with_name("fonts") / "ipaexg.ttf" if FOUND else Path()
LIGHT = 215.0


def downwards(text: str, size: int) -> NDArray[np.float64]:
    return np.maximum.reduce(
        [mask_of(sign, SHAPE, (16 + at * (size + 3), 150), size, str(FONT)) for at, sign in enumerate(text)]
    )


@pytest.mark.skipif(not FONT.is_file(), reason="no japanize-matplotlib here: pip install -e '.[bench]'")
@pytest.mark.parametrize(
    ("text", "size", "contrast", "down"),
    [
        ("林 誠", 22, 1.0, False),
        ("高橋恵子", 13, 1.0, False),
        ("佐藤 花子 1950年1月31日", 20, 0.12, False),
        ("渡辺 直樹", 24, 0.15, False),
        ("渡辺直樹", 20, 1.0, True),
        ("小林健一", 20, 0.15, True),
    ],
    ids=["two signs", "small", "faint", "faint and short", "downwards", "downwards and faint"],
)
def test_a_name_goes_by_what_the_detector_sees(
    tmp_path: Path, text: str, size: int, contrast: float, *, down: bool
) -> None:
    mask = downwards(text, size) if down else mask_of(text, SHAPE, at=(90, 70), size=size, font=str(FONT))
    ground = texture(SHAPE)
    drawn = ground * (1 - mask) + LIGHT * mask if contrast == 1 else ground + LIGHT * contrast * mask
    frame = np.clip(drawn, 0, 255).astype(np.uint8)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame]))
    run(BurnedInText(), group)
    after = stored(group[0].candidate)
    ink = mask > 0.5
    assert float((after[ink] == frame[ink]).mean()) < 0.02
    beside = np.ones(SHAPE, bool)
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    beside[max(0, rows[0] - 24) : rows[-1] + 25, max(0, columns[0] - 24) : columns[-1] + 25] = False
    assert np.array_equal(after[beside], frame[beside])
