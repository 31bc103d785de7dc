"""Pages of text are told from images with text, and go, hold or lose their lines by policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from text_objects import SC, group_of, save, texture, work

from gateway.errors import Hold
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.text_pages import is_page

REPORT = [
    "RADIOLOGY REPORT",
    "Patient: ZZSYNTH LEAKTEST",
    "Findings: no change since the last study",
    "The heart is of normal size",
    "Signed by Dr Quastenflosser",
]


def report(lines: int = 12, shape: tuple[int, int] = (400, 560), ground: int = 255) -> NDArray[np.uint8]:
    image = Image.new("L", shape[::-1], ground)
    draw, face = ImageDraw.Draw(image), ImageFont.load_default(15)
    for at in range(lines):
        draw.text((20, 14 + at * 28), REPORT[at % len(REPORT)], font=face, fill=255 - ground)
    return np.asarray(image).copy()


@pytest.mark.parametrize("ground", [255, 0])
def test_a_page_of_text_is_told_from_an_image_with_text(ground: int) -> None:
    places = [(10 + at * 28, 16, 34 + at * 28, 340) for at in range(12)]
    assert is_page(report(ground=ground), places)
    assert is_page(np.repeat(report(ground=ground)[..., None], 3, 2), places)
    assert not is_page(report(ground=ground), places[:5])
    image = report(ground=ground)
    image[:, 400:] = np.clip(texture((400, 160), top=200), 0, 255)
    assert not is_page(image, places)
    assert not is_page(np.clip(texture((400, 560)), 0, 255).astype(np.uint8), places)


def test_a_page_of_a_report_goes_whole_holds_or_loses_its_lines(tmp_path: Path) -> None:
    """A page shows nothing but text (PS3.15 E.3.1): nothing of it is an image."""
    from pydicom import dcmread

    page = report()
    clean = np.clip(texture(page.shape), 0, 255).astype(np.uint8)
    path = save(tmp_path / "a.dcm", [clean, page], SC)
    after = {}
    for choice in ("redact", "lines"):
        folder = tmp_path / choice
        folder.mkdir()
        (instance,) = group_of(folder, path)
        stage = BurnedInText(report_page=choice)  # type: ignore[arg-type]
        (step,) = stage.apply([instance], work(), stage.estimate([instance], work()))
        after[choice] = dcmread(instance.candidate).pixel_array
        assert np.array_equal(after[choice][0], clean)
        assert step.counts.get("page", 0) == (choice == "redact")
    assert np.unique(after["redact"][1]).size == 1
    assert (after["lines"][1][:, 480:] == 255).all()
    stage = BurnedInText(report_page="hold")
    (instance,) = group_of(tmp_path, path)
    with pytest.raises(Hold) as caught:
        stage.apply([instance], work(), stage.estimate([instance], work()))
    assert caught.value.reason == "report_in_pixels"
    assert "frame 2" in str(caught.value)
