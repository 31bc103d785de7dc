"""Slices that make no volume: held with the reason, or masked with the volume beside them; never let through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
import pytest
from head_series import block_volume, head_volume, instances, to_template, truth, values_of, write_series
from scipy import ndimage

from gateway.errors import Hold
from gateway.pixels import deface_find
from gateway.pixels.deface import Deface
from gateway.pixels.head_alignment import Alignment
from gateway.pixels.head_template import head_template
from gateway.pixels.stage import Instance
from gateway.volumes import Volume

WORK: Any = SimpleNamespace(policy=SimpleNamespace(digest="d"), seed=b"s" * 32)
CT = head_volume("CT")
ROWS = CT.values.shape[1]
FAR = ndimage.distance_transform_edt(~head_template().brain) * 2 > 20
FACE = truth(ndimage.binary_erosion(head_template().face & head_template().head, iterations=3) & FAR, CT)


@pytest.fixture
def aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the head lies, without the search for it."""
    known = Alignment(np.linalg.inv(to_template()), 1.14, 0.99)
    monkeypatch.setattr(deface_find, "align", lambda volume, hounsfield: known)


def moved(paths: list[Path], change: Callable[[int, list[float]], list[float]], **more: Any) -> list[Path]:
    """Slices in other places."""
    for number, path in enumerate(paths):
        dataset = pydicom.dcmread(path)
        dataset.ImagePositionPatient = change(number, [float(one) for one in dataset.ImagePositionPatient])
        for keyword, value in more.items():
            setattr(dataset, keyword, value)
        dataset.save_as(path)
    return paths


def estimate(group: list[Instance]) -> Any:
    return Deface().estimate(group, WORK)


def tilted(number: int, at: list[float]) -> list[float]:
    """By 15 degrees."""
    return [at[0], at[1] + 8.0 * number * 0.268, at[2]]


def denser_below(number: int, at: list[float]) -> list[float]:
    """Posterior fossa in thinner slices than the rest, as head CT used to be."""
    return [at[0], at[1], at[2] - (8.0 - 4.0) * min(number, 10)]


def doubled(number: int, at: list[float]) -> list[float]:
    """One slice was taken again."""
    return [at[0], at[1], at[2] - (8.0 if number == 20 else 0.0)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (tilted, "gantry tilt"),
        (denser_below, "slices are missing or uneven"),
        (doubled, "positions repeat unevenly"),
    ],
)
def test_slices_that_make_no_volume_are_held_with_the_reason(
    tmp_path: Path, change: Callable[[int, list[float]], list[float]], why: str
) -> None:
    group = instances(moved(write_series(CT, tmp_path / "in", "CT"), change), tmp_path / "out")
    with pytest.raises(Hold, match=rf"geometry_unsuitable: .*{why}"):
        estimate(group)


def test_a_projection_is_held_with_the_reason(tmp_path: Path) -> None:
    paths = write_series(CT, tmp_path / "in", "CT")[:1]
    moved(paths, lambda _, at: at, ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])
    with pytest.raises(Hold, match=r"geometry_unsuitable: .*projection"):
        estimate(instances(paths, tmp_path / "out"))


def test_slices_that_make_no_volume_do_not_pass_beside_a_trunk(tmp_path: Path) -> None:
    """A volume that is no head vouches for a localiser that reaches beyond it, not for slices of what lies above it."""
    trunk = write_series(block_volume(), tmp_path / "in")
    top = float(block_volume().affine[2, 3]) + 40 * 4.0
    above = write_series(Volume(block_volume().values[:5], block_volume().affine), tmp_path / "in", series="b")
    moved(above, lambda number, at: [at[0], at[1] + 2.0 * number, top + 8.0 * number])
    with pytest.raises(Hold, match=r"geometry_unsuitable: .*gantry tilt"):
        estimate(instances([*trunk, *above], tmp_path / "out"))


def test_two_slices_beside_a_trunk_are_a_localiser(tmp_path: Path) -> None:
    trunk = write_series(block_volume(), tmp_path / "in")
    above = write_series(Volume(block_volume().values[:2], block_volume().affine), tmp_path / "in", series="b")
    moved(above, lambda number, at: [at[0], at[1], at[2] + 8.0 * number])
    found = estimate(instances([*trunk, *above], tmp_path / "out"))
    assert found.facts["dropped"] == []


@pytest.mark.usefixtures("aligned")
def test_a_tilted_series_beside_a_volume_of_the_head_loses_what_the_volume_loses(tmp_path: Path) -> None:
    """Its slices lie in the same frame of reference: where each of them cuts the head is known."""
    group = instances([*write_series(CT, tmp_path / "in", "CT"), *sheared(tmp_path / "in")], tmp_path / "out")
    stage = Deface()
    stage.apply(group, WORK, stage.estimate(group, WORK))
    changed = values_of([one.original for one in group]) != values_of([one.candidate for one in group])
    upright, leaning = np.split(changed, 2)
    assert upright[FACE].mean() > 0.97
    for number in range(len(upright)):
        assert np.array_equal(leaning[number, : ROWS - number // 2], upright[number, number // 2 :])


def sheared(folder: Path) -> list[Path]:
    """The same head under a tilted gantry: every other slice begins a row further back, and shows what is there."""
    paths = write_series(CT, folder, "CT", series="t")
    for number, path in enumerate(paths):
        dataset = pydicom.dcmread(path)
        x, y, z = (float(one) for one in dataset.ImagePositionPatient)
        dataset.ImagePositionPatient = [x, y + 4.0 * (number // 2), z]
        dataset.PixelData = np.roll(dataset.pixel_array, -(number // 2), axis=0).tobytes()
        dataset.save_as(path)
    return paths
