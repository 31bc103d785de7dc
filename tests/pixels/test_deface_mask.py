"""What a mask takes from any plane, whatever the plane's grid; and what it never takes: the brain of real heads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.deface_heads import read_head
from gateway.pixels.deface_mask import Mask, mask_of
from gateway.pixels.head_template import head_template
from gateway.volumes import Plane

MASK = mask_of(np.eye(4), ears=True)
AXES = {"axial": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), "sagittal": ((0.0, 1.0, 0.0), (0.0, 0.0, -1.0))}
# What `align` gives for the head S16 as CT and as T1, patient to template (4 x 4, LPS mm).
S16 = {
    "CT": [
        [0.9956, 0.0432, -0.018, 8.9501],
        [-0.0501, 0.9541, -0.0483, -7.8332],
        [0.0149, 0.0618, 0.9771, -21.3403],
        [0, 0, 0, 1],
    ],
    "T1": [
        [0.956, 0.0485, -0.0222, 8.8146],
        [-0.0593, 0.9299, -0.0534, -8.174],
        [0.0213, 0.0702, 0.9526, -20.9048],
        [0, 0, 0, 1],
    ],
}


def plane(position: tuple[float, float, float], orientation: str, spacing_mm: float, rows: int, columns: int) -> Plane:
    along_row, along_column = AXES[orientation]
    return Plane(
        instance=0,
        frame=0,
        position=position,
        along_row=along_row,
        along_column=along_column,
        row_spacing_mm=spacing_mm,
        column_spacing_mm=spacing_mm,
        thickness_mm=1.0,
        rows=rows,
        columns=columns,
        slope=1.0,
        intercept=0.0,
        series="1.2",
        frame_of_reference="1.3",
        order=(),
    )


def taken(mask: Mask, one: Plane) -> np.ndarray:
    found = mask.on(one)
    return np.zeros((one.rows, one.columns), bool) if found is None else found


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from([("axial", (-110.0, -160.0)), ("sagittal", (-160.0, 90.0))]),
    st.floats(-100, 60),
    st.sampled_from([0.7, 2.0, 4.0]),
    st.integers(5, 60),
)
def test_a_plane_loses_the_same_whether_whole_or_in_two(
    view: tuple[str, tuple[float, float]], at: float, spacing_mm: float, cut: int
) -> None:
    """Each half is looked at in a window of its own."""
    orientation, (first, second) = view
    position = (first, second, at) if orientation == "axial" else (at / 2, first, second)
    whole = plane(position, orientation, spacing_mm, 64, 70)
    step = spacing_mm * cut * np.array(AXES[orientation][1])
    lower = replace(whole, position=tuple((np.array(position) + step).tolist()), rows=64 - cut)
    halves = np.vstack([taken(MASK, replace(whole, rows=cut)), taken(MASK, lower)])
    assert np.array_equal(taken(MASK, whole), halves)


def test_nothing_goes_within_11_mm_of_the_templates_brain_nor_24_mm_straight_before_it() -> None:
    brain = head_template().brain
    near = np.zeros_like(brain)
    for z, y, x in np.argwhere(np.ones((3, 3, 3), bool)) - 1:
        length = max(1.0, float(np.linalg.norm((z, y, x))))
        near |= np.roll(brain, tuple(int(5 * one / length) for one in (z, y, x)), (0, 1, 2))  # 10 mm
    before = np.logical_or.reduce([np.roll(brain, -steps, 1) for steps in range(12)])  # 22 mm; y grows to the back
    assert not (MASK.removed & (near | before)).any()
    assert MASK.removed.sum() > 50_000


@pytest.mark.shared
@pytest.mark.parametrize("modality", sorted(S16))
def test_the_brain_of_a_head_whose_frontal_pole_lies_far_forward_is_spared(shared_data: Path, modality: str) -> None:
    """It reaches 16 mm before the template's after alignment; 11 mm around alone took 3,074 voxels of it."""
    head = read_head(shared_data / "heads" / "synthseg_labels", "S16")
    mask = mask_of(np.array(S16[modality]), ears=True)
    brain = skin = gone = 0
    for number in range(0, head.tissue.shape[0], 2):
        position = tuple((head.affine @ [0, 0, number, 1])[:3].tolist())
        lost = taken(mask, plane(position, "axial", 1.0, *head.tissue.shape[1:]))
        brain += int((lost & head.brain[number]).sum())
        skin += int(head.face[number].sum())
        gone += int((lost & head.face[number]).sum())
    assert brain == 0
    assert gone > 0.99 * skin
