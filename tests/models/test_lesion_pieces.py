"""The pieces of the lesion anonymiser: warp, shape, seam, intensities, grid, noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from models.lesion_anonymiser import Anonymised, Domain, NotAnonymised, Settings, carried, moved, seeded_noise
from models.lesion_anonymiser.fusion import dilated, fused, must_be_kept, seam
from models.lesion_anonymiser.generation import shared_noise
from models.lesion_anonymiser.grid import REACH_MM, Grid
from models.lesion_anonymiser.intensity import Scale, head_of
from models.lesion_anonymiser.outline import draw_outline
from models.lesion_anonymiser.shape import convexity, regularised


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 12.0), st.integers(0, 2))
def test_a_warp_does_not_fold_moves_nothing_that_is_kept_and_carries_contours(
    seed: int, amplitude_mm: float, lesions: int
) -> None:
    kept = np.zeros((14, 20, 18), np.bool_)
    random = np.random.default_rng(seed)
    for _ in range(lesions):
        z, y, x = (int(random.integers(2, n - 4)) for n in kept.shape)
        kept[z : z + 2, y : y + 2, x : x + 2] = True
    spacing = (8.0, 6.0, 7.0)
    outline = draw_outline(kept, spacing, amplitude_mm, seeded_noise(seed))
    assert outline.jacobian_min > 0.2
    assert not outline.displacement_mm[:, kept].any()
    assert np.sqrt((outline.displacement_mm**2).sum(0)).max() <= amplitude_mm * (1 + 1e-5)
    volume = random.random(kept.shape).astype(np.float32)
    np.testing.assert_array_equal(outline.volume(volume)[kept], volume[kept])
    np.testing.assert_array_equal(outline.mask(kept), kept)
    points = random.uniform(0.25, 0.75, (20, 3)) * np.multiply(kept.shape, spacing)
    moved = outline.points(points)
    places = (moved / spacing).T
    back = moved + np.stack([ndimage.map_coordinates(u, places, order=1) for u in outline.displacement_mm], 1)
    np.testing.assert_allclose(back, points, atol=0.05)


def test_a_mask_outside_the_lesion_follows_the_warp() -> None:
    outline = draw_outline(np.zeros((24, 24, 24), np.bool_), (4.0, 4.0, 4.0), 10.0, seeded_noise(5))
    ball = np.zeros((24, 24, 24), np.bool_)
    ball[8:15, 8:15, 8:15] = True
    moved = outline.mask(ball)
    centre, now = (np.argwhere(one).mean(0) * 4.0 for one in (ball, moved))
    np.testing.assert_allclose(outline.points(centre[None])[0], now, atol=3.0)
    assert np.linalg.norm(now - centre) > 0.5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 1), st.sampled_from([(1.0, 1.0, 1.0), (3.0, 1.0, 1.0)]))
def test_regularising_keeps_volume_place_and_convexity(
    seed: int, strength: float, mm: tuple[float, float, float]
) -> None:
    random = np.random.default_rng(seed)
    field = ndimage.gaussian_filter(random.standard_normal((14, 20, 20)), 2.2)
    lesion = ndimage.binary_dilation(field > np.quantile(field, 0.97), iterations=1)
    lesion[[0, -1]] = lesion[:, [0, -1]] = lesion[:, :, [0, -1]] = False
    labels, count = ndimage.label(lesion, np.ones((3, 3, 3)))
    lesion = labels == 1 if count else lesion
    found = regularised(lesion, mm, strength, 0.25, np.ones_like(lesion))
    assert found.lesion.sum() == lesion.sum()
    assert found.convexity_change <= 0.25
    assert abs(convexity(found.lesion, mm) - convexity(lesion, mm)) == pytest.approx(found.convexity_change, abs=1e-9)
    if lesion.any():
        shift = (np.argwhere(found.lesion).mean(0) - np.argwhere(lesion).mean(0)) * mm
        radius = (3 * lesion.sum() * np.prod(mm) / (4 * np.pi)) ** (1 / 3)
        assert np.linalg.norm(shift) < 0.5 * radius + 1


def test_a_spiky_lesion_becomes_rounder_and_a_box_is_convex() -> None:
    box = np.zeros((9, 9, 9), np.bool_)
    box[2:7, 2:7, 2:7] = True
    assert convexity(box, (1.0, 1.0, 1.0)) == pytest.approx(1)
    star = box.copy()
    star[4, 4, :] = star[4, :, 4] = star[:, 4, 4] = True
    assert convexity(star, (2.0, 1.0, 1.0)) < 0.8
    rounder = regularised(np.pad(star, 4), (1.0, 1.0, 1.0), 1.0, 0.6, np.ones((17, 17, 17), np.bool_))
    assert convexity(rounder.lesion, (1.0, 1.0, 1.0)) > convexity(star, (1.0, 1.0, 1.0)) + 0.1


def test_a_seam_is_seen_and_fusing_hides_it() -> None:
    z, y, x = np.meshgrid(*(np.arange(24),) * 3, indexing="ij")  # wide enough for the border on all sides
    original = (0.5 + 0.01 * x).astype(np.float32)
    new = (0.9 - 0.01 * y).astype(np.float32)
    kept = (z - 12) ** 2 + (y - 12) ** 2 + (x - 12) ** 2 < 25
    pasted = np.where(kept, original, new)
    assert seam(original, pasted, kept, 6.0, (1.0, 1.0, 1.0)) > 10
    result = fused(original, new, kept, 6.0, (1.0, 1.0, 1.0))
    assert seam(original, result, kept, 6.0, (1.0, 1.0, 1.0)) < 1.5
    must_be_kept(original, result, kept)
    far = ndimage.distance_transform_edt(~kept) > 6
    np.testing.assert_array_equal(result[far], new[far])
    result[12, 12, 12] = np.nextafter(result[12, 12, 12], np.float32(2))
    with pytest.raises(NotAnonymised, match="1 of"):
        must_be_kept(original, result, kept)


def test_outside_the_lesion_no_texture_of_the_original_is_left() -> None:
    """The border's offset is smooth: it does not correlate with the original's texture beyond the rim."""
    random = np.random.default_rng(3)
    original = random.random((20, 20, 20)).astype(np.float32)
    kept = np.zeros(original.shape, np.bool_)
    kept[7:13, 7:13, 7:13] = True
    new = np.full_like(original, 0.5)
    result = fused(original, new, kept, 6.0, (1.0, 1.0, 1.0))
    ring = dilated(kept, 5.0, (1.0, 1.0, 1.0)) & ~kept
    correlation = np.corrcoef(original[ring], result[ring])[0, 1]
    assert abs(correlation) < 0.1


def test_intensities_go_there_and_back_and_noisy_air_stays_noisy_air() -> None:
    random = np.random.default_rng(4)
    head = np.zeros((12, 30, 30), np.bool_)
    head[2:10, 6:24, 6:24] = True
    none = np.zeros_like(head)
    magnitude = np.hypot(*random.standard_normal((2, *head.shape))) * 7
    volume = np.where(head, 500 + 100 * random.random(head.shape), magnitude).astype(np.float32)
    scale = Scale.of(volume, head, none)
    np.testing.assert_allclose(scale.back(scale.forward(volume)), volume, atol=0.01)
    around = scale.around(head.shape, seeded_noise(1), "T1")
    assert np.median(around) == pytest.approx(np.median(magnitude[~head]), rel=0.05)
    assert around.std() == pytest.approx(magnitude[~head].std(), rel=0.1)
    quiet = Scale.of(np.where(head, volume, -40).astype(np.float32), head, none)
    assert set(quiet.around(head.shape, seeded_noise(1), "T1").ravel()) == {-40.0}
    with pytest.raises(NotAnonymised, match="empty"):
        Scale.of(np.zeros_like(volume), head, none)


@pytest.mark.parametrize("mm", [(10.0, 8.0, 8.0), (3.0, 1.5, 1.2), (6.0, 2.0, 2.5)])
def test_volumes_come_back_from_the_cards_grid_where_they_were(mm: tuple[float, float, float]) -> None:
    shape = tuple(int(160 / one) for one in mm)
    grids: list[NDArray[np.float64]] = np.meshgrid(
        *(np.arange(n) * one for n, one in zip(shape, mm, strict=True)), indexing="ij"
    )
    radius = np.sqrt(sum((one - centre) ** 2 for one, centre in zip(grids, (70, 85, 75), strict=True)))
    volume = np.clip(1 - radius / 60, 0, 1).astype(np.float32)
    head = volume > 0.05
    grid = Grid.of(head, mm, 40, (4.0, 4.0, 4.0))
    back = grid.to_study(grid.to_card(volume))
    inside = radius < 45
    np.testing.assert_allclose(back[inside], volume[inside], atol=0.08)
    depth = grid.depth_of(4.0)
    top = np.flatnonzero(head.any((1, 2)))[-1]
    slice_of_top = (top - grid.start[0]) / grid.step[0]
    assert depth[round(slice_of_top)] == 1
    assert np.diff(depth)[:-2] == pytest.approx(np.full(len(depth) - 3, 4.0 / REACH_MM), abs=1e-6)
    with pytest.raises(NotAnonymised, match="larger"):
        Grid.of(head, mm, 16, (4.0, 4.0, 4.0))


def test_shared_noise_stays_standard_normal_and_neighbours_agree() -> None:
    drawn = shared_noise(torch.randn(400, 8, 12, 12, generator=torch.Generator().manual_seed(0)), 0.8)
    assert drawn.std().item() == pytest.approx(1, abs=0.02)
    assert (drawn[1:] * drawn[:-1]).mean().item() == pytest.approx(0.8, abs=0.02)


def test_the_head_is_the_largest_part_and_filled() -> None:
    volume = np.zeros((6, 40, 40), np.float32)
    volume[:, 5:30, 5:30], volume[:, 12:20, 12:20], volume[:, 36:38, 36:38] = 1, 0, 1
    head = head_of(volume, (5.0, 1.0, 1.0))
    assert head[:, 12:20, 12:20].all()
    assert not head[:, 35:, 35:].any()
    with pytest.raises(NotAnonymised, match="no head"):
        head_of(np.zeros_like(volume), (5.0, 1.0, 1.0))


def test_a_small_lesion_in_a_large_volume_is_treated_as_in_a_small_one() -> None:
    random = np.random.default_rng(6)
    original, new = random.random((2, 40, 40, 40)).astype(np.float32)
    kept = np.zeros(original.shape, np.bool_)
    kept[18:22, 17:23, 19:24] = True
    mm = (2.0, 1.0, 1.0)
    oracle = ndimage.distance_transform_edt(~kept, sampling=mm) <= 5.0
    np.testing.assert_array_equal(dilated(kept, 5.0, mm), oracle)
    inner = (slice(3, 37),) * 3
    whole = fused(original, new, kept, 4.0, mm)
    np.testing.assert_array_equal(whole[inner], fused(original[inner], new[inner], kept[inner], 4.0, mm))
    assert seam(original, whole, kept, 4.0, mm) == pytest.approx(
        seam(original[inner], whole[inner], kept[inner], 4.0, mm)
    )


def test_the_warp_is_a_cubic_spline_through_the_noise_and_fine_grids_do_not_fold_either() -> None:
    shape, mm = (30, 40, 36), (3.0, 2.0, 2.5)
    none = np.zeros(shape, np.bool_)
    found = draw_outline(none, mm, 6.0, seeded_noise(9)).displacement_mm
    nodes = [int(np.ceil(n * one / 45)) + 3 for n, one in zip(shape, mm, strict=True)]
    lattice = seeded_noise(9)((3, *nodes), "outline").double().numpy()
    grids = np.meshgrid(*(np.arange(n) * one / 45 + 1 for n, one in zip(shape, mm, strict=True)), indexing="ij")
    oracle = np.stack([ndimage.map_coordinates(one, grids, order=3, mode="nearest") for one in lattice])
    oracle *= 6.0 / np.sqrt((oracle**2).sum(0)).max()
    ratio = np.linalg.norm(found) / np.linalg.norm(oracle)  # below 1 where it had to shrink
    assert 0.1 < ratio <= 1 + 1e-5
    np.testing.assert_allclose(found, oracle * ratio, atol=1e-4)
    kept = none.copy()
    kept[12:18, 15:20, 10:20] = True
    u = draw_outline(kept, mm, 6.0, seeded_noise(9)).displacement_mm.astype(np.float64)
    jacobian = np.stack([np.stack(np.gradient(one, *mm)) for one in u]) + np.eye(3)[:, :, None, None, None]
    assert np.linalg.det(np.moveaxis(jacobian, (0, 1), (-2, -1))).min() > 0.1


def test_finer_voxels_than_those_of_training_are_of_its_kind_and_coarser_ones_are_not() -> None:
    domain = Domain.fitted([{"spacing z (mm)": 3.0, "head z (mm)": 150.0}], torch.zeros(1, 32))
    assert not domain.outside({"spacing z (mm)": 0.5, "head z (mm)": 150.0})
    (outside,) = domain.outside({"spacing z (mm)": 5.0, "head z (mm)": 150.0})
    assert outside.statistic == "spacing z (mm)"
    (outside,) = domain.outside({"spacing z (mm)": 3.0, "head z (mm)": 50.0})
    assert outside.statistic == "head z (mm)"


def test_new_anatomy_is_carried_to_a_grid_of_its_own_with_its_own_lesion() -> None:
    """A ramp along x, read at twice the distance and half a voxel on: known values; the lesion's are the original's."""
    ramp = np.broadcast_to(np.arange(24, dtype=np.float32) * 10, (20, 22, 24)).copy()
    matrix = np.diag([2.0, 2.0, 2.0, 1.0])
    matrix[:3, 3] = 0.5
    there = moved(ramp, matrix, (9, 10, 11), -1.0)
    np.testing.assert_allclose(there[4, 4, 1:-1], np.arange(1, 10) * 20.0 + 5, atol=5.1)  # pairs are averaged
    original = np.full((9, 10, 11), 100.0, np.float32)
    original[0, 0, 0], original[8, 9, 10] = 0.0, 300.0
    lesion = np.zeros(original.shape, np.bool_)
    lesion[4, 5, 5] = True
    original[lesion] = 123.0
    head = np.ones(ramp.shape, np.bool_)
    still = draw_outline(np.zeros(ramp.shape, np.bool_), (1.0, 1.0, 1.0), 0.0, seeded_noise(1))
    done = Anonymised({}, lesion, lesion, head, still)
    how = Settings(margin_mm=0.0, border_mm=5.0)
    out = carried(original, lesion, (2.0, 2.0, 2.0), ramp, done, matrix, how)
    assert out[4, 5, 5] == 123.0
    assert abs(out[4, 5, 6] - 123.0) < 40  # it meets the lesion
    np.testing.assert_allclose(out[0, 0, :], there[0, 0, :])  # far from it nothing but the new anatomy
    with pytest.raises(NotAnonymised, match="seam"):
        carried(original * 50, lesion, (2.0, 2.0, 2.0), ramp, done, matrix, Settings(margin_mm=0.0, seam=1e-6))
    latent = carried(original, lesion, (2.0, 2.0, 2.0), ramp, done, matrix, Settings(mode="latent"))
    np.testing.assert_array_equal(latent, there.clip(0, 300))
