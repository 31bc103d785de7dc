"""What is spared: the person's own brain as the volume shows it, and the template's where the volume does not tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from bench.deface import halved
from bench.deface_heads import read_head
from bench.deface_sessions import session
from gateway.pixels.deface_guard import OWN_MM, guard_of, template_guard
from gateway.pixels.deface_mask import mask_of
from gateway.pixels.deface_measure import measure
from gateway.pixels.head_brain import own_brain
from gateway.pixels.head_seen import Seen, see
from gateway.pixels.head_template import head_template
from gateway.pixels.head_tissue import lifted
from gateway.volumes import Volume

TEMPLATE = head_template()
SEED = 20261130
# mean of soft tissue, bone, fluid, brain
VALUES = {"T1": (420, 80, 180, 680), "T2": (300, 70, 950, 480), "CT": (45, 1000, 8, 33), "PET": (80, 40, 60, 500)}
# What `align` gives for two heads as CT, patient to template (4 x 4, LPS mm).
ALIGNED = {
    "S05": [
        [1.028727, -0.043859, 0.001865, 6.884257],
        [0.035899, 1.003801, 0.032329, -16.851269],
        [-0.001859, -0.010578, 0.988785, -15.421929],
        [0.0, 0.0, 0.0, 1.0],
    ],
    "S16": [
        [0.992309, -0.019348, -0.014843, 8.571737],
        [0.012935, 0.954781, 0.056897, -7.06011],
        [0.018852, -0.046796, 0.973861, -21.508976],
        [0.0, 0.0, 0.0, 1.0],
    ],
}


def shifted(mask: np.ndarray, before_mm: float) -> np.ndarray:
    """A region and all that it passes on its way forward."""
    steps = range(round(before_mm / TEMPLATE.spacing_mm) + 1)
    return np.logical_or.reduce([np.roll(mask, -step, axis=1) for step in steps])  # y grows to the back


def volume_of(brain: np.ndarray, modality: str, *, lesion: np.ndarray | None = None, bone: bool = True) -> Volume:
    """Synthetic, at 4 mm on the template's axes: fluid and bone of 4 mm each around a brain, soft tissue elsewhere."""
    soft, skull, fluid, inside = VALUES[modality]
    distance = ndimage.distance_transform_edt(~brain, sampling=TEMPLATE.spacing_mm)
    head = TEMPLATE.head | (distance <= 16)
    values = np.where(head, float(soft), -1000.0 if modality == "CT" else 8.0)
    if bone:
        values[distance <= 10], values[distance <= 5] = skull, fluid
    values[brain] = inside
    if lesion is not None:
        values[lesion] = skull if modality == "T1" else fluid
    noise = np.random.default_rng(SEED).normal(0, 8, values.shape)
    blocks = (values + noise)[:, :140, :104].reshape(68, 2, 70, 2, 52, 2).mean((1, 3, 5))
    affine = TEMPLATE.affine.copy()
    affine[:3, 3] += TEMPLATE.spacing_mm / 2
    affine[:3, :3] *= 2
    found = Volume(blocks.astype(np.float32), affine)
    return lifted(found) if modality == "PET" else found


def seen(volume: Volume, modality: str, to_template: np.ndarray | None = None) -> Seen:
    return see(volume, np.eye(4) if to_template is None else to_template, hounsfield=modality == "CT")


@pytest.mark.parametrize("modality", sorted(VALUES))
def test_a_frontal_pole_far_before_the_templates_is_found_and_spared(modality: str) -> None:
    """24 mm before it, where the template's guard ends."""
    brain = shifted(TEMPLATE.brain, 24)
    found = seen(volume_of(brain, modality), modality)
    assert found.own is not None
    assert ndimage.distance_transform_edt(~found.own, sampling=2)[brain].max() < OWN_MM / 2
    guard = guard_of(found)
    assert not (brain & ~guard & ~found.shallow).any()
    assert (brain & ~template_guard()).any()
    assert measure(found, mask_of(np.eye(4), ears=True, protected=guard)).brain == 0


@pytest.mark.parametrize("modality", ["CT", "T1"])
def test_the_template_s_guard_gives_way_only_in_skin_and_far_from_the_brain(modality: str) -> None:
    found = seen(volume_of(TEMPLATE.brain, modality), modality)
    given_up = template_guard() & ~guard_of(found)
    assert given_up.sum() > 200
    assert not (given_up & ~found.shallow).any()
    assert ndimage.distance_transform_edt(~TEMPLATE.brain, sampling=2)[given_up].min() > OWN_MM


def test_where_brain_cannot_be_told_from_the_rest_the_template_s_guard_stands() -> None:
    """No bone to be seen: all of the head is as bright as the brain."""
    alike = volume_of(TEMPLATE.brain, "T1", bone=False)
    bright = Volume(np.where(alike.values > 200, 600, alike.values).astype(np.float32), alike.affine)
    assert not (template_guard() & TEMPLATE.head & ~guard_of(seen(bright, "T1"))).any()


def test_values_that_are_no_brain_tell_nothing() -> None:
    """CT whose rescale is not in Hounsfield units."""
    volume = volume_of(TEMPLATE.brain, "CT")
    wrong = Volume(volume.values + 1024, volume.affine)
    assert own_brain(wrong, np.eye(4), hounsfield=True) is None
    assert np.array_equal(guard_of(seen(wrong, "CT")), template_guard())


def test_a_dark_lesion_at_the_frontal_pole_is_brain_all_the_same() -> None:
    brain = shifted(TEMPLATE.brain, 14)
    z, y, x = (int(one) for one in np.argwhere(brain)[np.argmin(np.argwhere(brain)[:, 1])])
    places = np.mgrid[tuple(slice(0, count) for count in brain.shape)]
    lesion = brain & (sum((one - at) ** 2 for one, at in zip(places, (z, y, x), strict=True)) < 8**2)
    found = seen(volume_of(brain, "T1", lesion=lesion), "T1")
    assert not (lesion & ~guard_of(found)).any()


def test_a_mask_that_lies_in_the_brain_of_someone_who_moved_does_not_fit() -> None:
    """The template's own brain lies where it was: only the volume says that the head came forward."""
    brain = shifted(TEMPLATE.brain, 0)
    still = seen(volume_of(brain, "T1"), "T1")
    mask = mask_of(np.eye(4), ears=True, protected=guard_of(still))
    assert measure(still, mask).brain == 0
    moved = volume_of(brain, "T1")
    forward = moved.affine.copy()
    forward[:3, 3] += (0, -24, -16)
    assert measure(seen(Volume(moved.values, forward), "T1"), mask).brain > 0


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(ALIGNED))
def test_of_a_real_head_the_whole_face_goes_and_no_voxel_of_the_brain(shared_data: Path, name: str) -> None:
    """With the template's guard S05 kept 1.8 % of its face's surface, at the brow, and S16 lost a voxel of brain."""
    head, volume = session(read_head(shared_data / "heads" / "synthseg_labels", name), "CT", SEED)
    to_template = np.array(ALIGNED[name])
    found = see(halved(volume), to_template, hounsfield=True)
    mask = mask_of(to_template, ears=True, protected=guard_of(found))
    measured = measure(found, mask)
    assert measured.left < 0.01
    assert measured.brain == 0
    matrix = np.linalg.inv(TEMPLATE.affine) @ to_template @ head.affine
    order = matrix[:3, :3][::-1, ::-1], matrix[:3, 3][::-1]
    removed, spared = (
        ndimage.affine_transform(
            one.astype(np.float32), *order, output_shape=head.tissue.shape, order=1, mode="nearest", prefilter=False
        )
        for one in (mask.removed, mask.protected)
    )
    lost = (removed > 0.5) & ~(spared > 0.25)
    assert not (lost & head.brain).any()
    assert (lost & head.face).sum() > 0.99 * head.face.sum()
