"""What may be a photograph is held: by modality, by SOP class, or by its colours whatever its class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
import pytest
from head_series import base
from scipy import ndimage

from gateway.gate.face_photograph import PHOTOGRAPH_CLASSES, in_natural_colours, is_photograph
from gateway.gate.reading import Pair
from gateway.gate.residual_face import ResidualFace
from gateway.study import Outcome

POLICY: Any = SimpleNamespace()
SECONDARY, ULTRASOUND = "1.2.840.10008.5.1.4.1.1.7", "1.2.840.10008.5.1.4.1.1.6.1"
SLIDE, PHOTOGRAPHIC = "1.2.840.10008.5.1.4.1.1.77.1.6", "1.2.840.10008.5.1.4.1.1.77.1.4"
COLOUR = "a colour picture is not judged by any detector here"
PHOTOGRAPH = "a photograph is not judged by any detector here"


def skin(seed: int = 5, size: int = 96) -> np.ndarray:
    """Synthetic (size, size, 3) uint8: shades of skin over the middle, grey around, no features of a face."""
    random = np.random.default_rng(seed)
    shade = ndimage.gaussian_filter(random.normal(0, 1, (size, size)), 9)
    shade = 150 + 60 * shade / np.abs(shade).max()
    rgb = shade[..., None] * np.array([1.2, 0.85, 0.7])
    rgb[: size // 4] = shade[: size // 4, :, None]
    return rgb.clip(0, 255).astype(np.uint8)


def grey_in_three(seed: int = 5) -> np.ndarray:
    return np.repeat(skin(seed)[..., :1], 3, axis=2)


def to_ybr(rgb: np.ndarray) -> np.ndarray:
    """PS3.3 C.7.6.3.1.2."""
    matrix = np.array([[0.299, 0.587, 0.114], [-0.1687, -0.3313, 0.5], [0.5, -0.4187, -0.0813]])
    return np.rint(rgb @ matrix.T + [0, 128, 128]).clip(0, 255).astype(np.uint8)


def write(path: Path, pixels: np.ndarray, photometric: str, sop_class: str, modality: str, **more: Any) -> Path:
    dataset = base("MR", "capture", 0, pixels.shape[:2])
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = sop_class
    dataset.Modality, dataset.PhotometricInterpretation = modality, photometric
    if pixels.ndim == 3:
        dataset.SamplesPerPixel, dataset.PlanarConfiguration = 3, 0
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 8, 8, 7
    for keyword, value in more.items():
        setattr(dataset, keyword, value)
    dataset.PixelData = pixels.tobytes()
    dataset.save_as(path, enforce_file_format=True)
    return path


def rules(path: Path) -> set[str]:
    verdict = ResidualFace().judge([Pair("0001", path, path)], POLICY)
    assert (verdict.outcome is Outcome.HOLD) == bool(verdict.findings)
    assert verdict.assessed["pictures"] == 1
    return {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize("modality", ["OT", "SC", "XC", "", "MR"])
@pytest.mark.parametrize("stored", [lambda rgb: (rgb, "RGB"), lambda rgb: (to_ybr(rgb), "YBR_FULL")])
def test_a_capture_in_natural_colours_holds(tmp_path: Path, modality: str, stored: Callable[..., Any]) -> None:
    held = rules(write(tmp_path / "a", *stored(skin()), SECONDARY, modality))
    assert held & {COLOUR, PHOTOGRAPH}


@pytest.mark.parametrize("stored", [lambda rgb: (rgb, "RGB"), lambda rgb: (to_ybr(rgb), "YBR_FULL")])
def test_a_capture_that_is_grey_in_three_samples_is_looked_at(tmp_path: Path, stored: Callable[..., Any]) -> None:
    assert rules(write(tmp_path / "a", *stored(grey_in_three()), SECONDARY, "OT")) == set()


def test_coloured_letters_a_bar_and_a_chart_are_no_photograph(tmp_path: Path) -> None:
    bar, chart = grey_in_three(), np.full((96, 96, 3), 255, np.uint8)
    bar[:, :1] = np.linspace([255, 0, 0], [0, 0, 255], 96)[:, None].astype(np.uint8)
    chart[10:50, 10:80], chart[50:90, 10:60], chart[20:25] = (200, 30, 30), (30, 30, 200), (30, 160, 30)
    for name, pixels in (("bar", bar), ("chart", chart)):
        assert rules(write(tmp_path / name, pixels, "RGB", SECONDARY, "OT")) == set()


@pytest.mark.parametrize(("sop_class", "modality"), [(ULTRASOUND, "US"), (SLIDE, "SM")])
def test_colours_that_are_no_light_go_to_the_detector(tmp_path: Path, sop_class: str, modality: str) -> None:
    assert rules(write(tmp_path / "a", skin(), "RGB", sop_class, modality)) == set()


def test_a_screenshot_that_calls_itself_ultrasound_is_still_a_screenshot(tmp_path: Path) -> None:
    assert rules(write(tmp_path / "a", skin(), "RGB", SECONDARY, "US")) == {COLOUR}


@pytest.mark.parametrize("sop_class", sorted(PHOTOGRAPH_CLASSES))
def test_every_class_of_visible_light_is_a_photograph_in_grey_and_under_any_modality(sop_class: str) -> None:
    dataset = pydicom.Dataset()
    dataset.SOPClassUID, dataset.Modality = sop_class, "OT"
    assert is_photograph(dataset)


def test_a_grey_photograph_holds_by_its_class(tmp_path: Path) -> None:
    assert rules(write(tmp_path / "a", grey_in_three()[..., 0], "MONOCHROME2", PHOTOGRAPHIC, "OT")) == {PHOTOGRAPH}


def test_a_palette_of_natural_colours_holds_and_a_grey_one_does_not(tmp_path: Path) -> None:
    """PS3.3 C.7.6.3.1.5: descriptor (entries, first value, bits), one table for each colour."""
    ramp = np.arange(256)
    index = skin()[..., 0]
    for scale, expected in (((1.2, 0.85, 0.7), {COLOUR}), ((1, 1, 1), set())):
        tables: dict[str, Any] = {}
        for name, by in zip(("Red", "Green", "Blue"), scale, strict=True):
            tables[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, 16]
            tables[f"{name}PaletteColorLookupTableData"] = (ramp * 256 * by).clip(0, 65535).astype("<u2").tobytes()
        path = write(tmp_path / f"{scale[0]}", index, "PALETTE COLOR", SECONDARY, "OT", **tables)
        assert rules(path) == expected


@pytest.mark.parametrize("share", [0.005, 0.1])
def test_little_colour_is_none_and_sixteen_bits_count_like_eight(share: float) -> None:
    rgb = grey_in_three(6)
    rows = max(1, round(96 * share))
    rgb[-rows:, : 96 if share > 0.05 else 40] = skin(6)[-rows:, : 96 if share > 0.05 else 40]
    assert in_natural_colours(rgb, "RGB") is (share > 0.05)
    assert in_natural_colours(rgb.astype(np.uint16) * 257, "RGB") is (share > 0.05)
