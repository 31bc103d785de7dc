"""ID-blocking: exactly how much is blocked, that ties and constant maps go the safe way, and that nothing is left."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage
from torch import Tensor

from models.id_blocking import (
    LEVELS,
    Blocking,
    blocked,
    blocked_volume,
    coarsened,
    dilated,
    enlarged,
    identity_mask,
)
from models.reid_encoder import SMALL, ReidEncoder

TINY = replace(SMALL, side=16, patch=4, width=16, depth=1, heads=2, dimensions=8, entries=0)
MAPS = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=3, max_dims=4, min_side=1, max_side=6),
    elements=st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0]),
)
R = st.floats(0.01, 0.99)


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def test_the_papers_levels_block_the_highest_share_of_a_hundred_places() -> None:
    similarity = torch.randperm(100).reshape(1, 10, 10).float()
    for r, blocked_places in zip(LEVELS, (5, 30, 60, 80), strict=True):
        mask = identity_mask(similarity, r)
        assert int(mask.sum()) == blocked_places
        assert bool((similarity[mask] >= 100 - blocked_places).all())


def test_by_hand() -> None:
    similarity = torch.tensor([[[0.1, 0.9], [0.5, 0.3]], [[0.4, 0.2], [0.3, 0.1]]])
    assert identity_mask(similarity, 0.5).tolist() == [[[False, True], [True, False]], [[True, False], [True, False]]]
    assert identity_mask(similarity, 0.75).tolist() == [
        [[False, True], [False, False]],
        [[True, False], [False, False]],
    ]


def test_ties_at_the_threshold_are_all_blocked_and_a_constant_map_whole() -> None:
    tied = torch.tensor([[[0.9, 0.5, 0.5, 0.1]]])
    assert identity_mask(tied, 0.5).tolist() == [[[True, True, True, False]]]
    assert bool(identity_mask(torch.full((2, 3, 3), 0.7), 0.95).all())
    assert identity_mask(torch.tensor([[[0.3]]]), 0.99).all()  # one place, and at least one is blocked


@given(MAPS, R)
@settings(deadline=None, max_examples=60)
def test_at_least_the_promised_share_is_blocked_and_never_a_lower_place_before_a_higher(
    values: np.ndarray, r: float
) -> None:
    similarity = torch.from_numpy(values)
    mask = identity_mask(similarity, r)
    for one, chosen in zip(similarity.flatten(1), mask.flatten(1), strict=True):
        places = len(one)
        wanted = max(1, math.ceil((1 - r) * places - 1e-9))
        assert int(chosen.sum()) >= wanted
        strictly = int((one > one[chosen].min()).sum())
        assert strictly < wanted  # without ties there are no more than promised
        if bool((~chosen).any()):
            assert one[~chosen].max() < one[chosen].min()


@given(MAPS, R, R, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_a_lower_level_blocks_all_that_a_higher_does_and_order_does_not_matter(
    values: np.ndarray, a: float, b: float, shuffle: object
) -> None:
    similarity = torch.from_numpy(values)
    low, high = sorted((a, b))
    assert bool((identity_mask(similarity, high) <= identity_mask(similarity, low)).all())
    flat = similarity.flatten(1)
    order = torch.randperm(flat.shape[1])
    shuffled = identity_mask(flat[:, order][:, None], a)[:, 0]
    assert torch.equal(shuffled, identity_mask(similarity, a).flatten(1)[:, order])


@pytest.mark.parametrize("r", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_levels_outside_zero_to_one_are_refused(r: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        identity_mask(torch.rand(1, 2, 2), r)


def test_maps_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="none"):
        identity_mask(torch.tensor([[[0.1, math.nan]]]), 0.5)
    with pytest.raises(ValueError, match="one place"):
        identity_mask(torch.empty(1, 0, 3), 0.5)


@pytest.mark.parametrize("shape", [(2, 7, 5), (1, 4, 6, 5)])
@pytest.mark.parametrize("places", [0, 1, 2])
def test_growing_is_a_binary_dilation_by_a_cube(shape: tuple[int, ...], places: int) -> None:
    mask = torch.rand(shape) > 0.9
    block = np.ones((2 * places + 1,) * (len(shape) - 1), bool)
    oracle = np.stack([ndimage.binary_dilation(one, block) for one in mask.numpy()])
    assert torch.equal(dilated(mask, places), torch.from_numpy(oracle))
    with pytest.raises(ValueError, match="0 places"):
        dilated(mask, -1)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 11), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_a_coarse_outline_covers_the_fine_one_in_whole_cells(rows: int, columns: int, cell: int, seed: int) -> None:
    mask = torch.rand((2, rows, columns), generator=torch.Generator().manual_seed(seed)) > 0.8
    coarse = coarsened(mask, cell)
    assert bool((mask <= coarse).all())
    for b in range(2):
        for y in range(0, rows, cell):
            for x in range(0, columns, cell):
                inside = coarse[b, y : y + cell, x : x + cell]
                assert bool((inside == mask[b, y : y + cell, x : x + cell].any()).all())
    with pytest.raises(ValueError, match="one place"):
        coarsened(mask, 0)


@given(st.integers(1, 9), st.integers(1, 40))
@settings(deadline=None, max_examples=60)
def test_a_pixel_is_blocked_when_any_place_that_it_touches_is(places: int, pixels: int) -> None:
    for place in range(places):
        mask = torch.zeros(1, places, 1, dtype=torch.bool)
        mask[0, place] = True
        found = enlarged(mask, (pixels, 1))[0, :, 0]
        touches = [
            pixel * places < (place + 1) * pixels and (pixel + 1) * places > place * pixels for pixel in range(pixels)
        ]
        assert found.tolist() == touches
    assert enlarged(torch.ones(1, 2, 3, dtype=torch.bool), (5, 7)).all()
    with pytest.raises(ValueError, match="as many"):
        enlarged(torch.ones(1, 2, 3, dtype=torch.bool), (5,))


def hidden_pixels(x: Tensor, noid: Tensor, mask: Tensor) -> None:
    assert bool((noid[mask.expand_as(noid)] == 0).all())
    assert torch.equal(noid[~mask.expand_as(noid)], x[~mask.expand_as(x)])


@pytest.mark.parametrize("size", [(16, 16), (37, 50), (5, 3)])
def test_what_is_blocked_is_zero_and_what_is_not_is_as_it_was(size: tuple[int, int]) -> None:
    encoder = ReidEncoder(TINY)
    x = 0.1 + 0.9 * torch.rand(3, 1, *size)
    noid, mask = blocked(encoder, x, Blocking(0.7))
    assert mask.shape == (3, 1, *size)
    hidden_pixels(x, noid, mask)
    for row in range(3):  # a batch gives what each picture gives alone
        alone, _ = blocked(encoder, x[row : row + 1], Blocking(0.7))
        assert torch.equal(alone, noid[row : row + 1])
    _, more = blocked(encoder, x, Blocking(0.7, grow=1, cell=2))
    assert bool((mask <= more).all())


def test_a_coarse_outline_of_a_volume_is_of_whole_cubes() -> None:
    mask = torch.zeros(1, 3, 4, 5, dtype=torch.bool)
    mask[0, 2, 1, 4] = True
    found = coarsened(mask, 2)
    assert torch.nonzero(found[0]).tolist() == [[2, 0, 4], [2, 1, 4]]


def test_a_volume_has_one_quantile_over_all_slices() -> None:
    encoder = ReidEncoder(TINY)
    volume = 0.1 + 0.9 * torch.rand(6, 20, 16)
    volume[0] = 0.0
    noid, mask = blocked_volume(encoder, volume, Blocking(0.7))
    assert mask.shape == volume.shape
    hidden_pixels(volume, noid, mask)
    places = mask.reshape(6, 4, 5, 4, 4).any(4).any(2)
    assert int(places.sum()) == math.ceil(0.3 * 6 * 16)
    assert len(set(places.sum((1, 2)).tolist())) > 1  # not the same number in each slice
