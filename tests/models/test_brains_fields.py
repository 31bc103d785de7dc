"""Fields and diffeomorphisms: the exponential against closed forms, nothing folds, streams do not meet."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from models.cohorts.brains_fields import (
    NOISE,
    PERSON,
    Lattice,
    blurred,
    exponential,
    jacobian,
    smooth_noise,
    stream,
    widened,
)

CUBE = Lattice.over((-50, -50, -50), (50, 50, 50), 5.0)


def inner(field: torch.Tensor, margin: int = 6) -> torch.Tensor:
    return field[..., margin:-margin, margin:-margin, margin:-margin]


def test_a_constant_velocity_is_a_shift() -> None:
    velocity = torch.tensor([3.0, -2.0, 1.0])[None, :, None, None, None].expand(1, 3, *CUBE.shape)
    assert torch.allclose(exponential(velocity.contiguous(), CUBE), velocity, atol=1e-5)


@pytest.mark.parametrize("rate", [-0.15, 0.1, 0.2])
def test_a_linear_velocity_scales_exponentially(rate: float) -> None:
    """dx/dt = a x gives x(1) = e^a x, so the displacement is (e^a - 1) x, and the determinant e^3a."""
    points = CUBE.points()
    moved = exponential((rate * points).permute(3, 0, 1, 2)[None].contiguous(), CUBE)
    expected = (math.exp(rate) - 1) * points.permute(3, 0, 1, 2)[None]
    assert (inner(moved) - inner(expected)).abs().max() < 0.02 * inner(expected).abs().max()
    assert torch.allclose(inner(jacobian(moved, CUBE)), torch.tensor(math.exp(3 * rate)), rtol=0.02)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), amount=st.floats(0.5, 3.0))
def test_velocity_and_its_opposite_undo_each_other(seed: int, amount: float) -> None:
    velocity = amount * smooth_noise(np.random.default_rng(seed), CUBE, 12.0, 3)[None]
    there, back = exponential(velocity, CUBE), exponential(-velocity, CUBE)
    both = there + CUBE.sample(back, CUBE.points() + there.permute(0, 2, 3, 4, 1))
    assert inner(both).abs().mean() < 0.04 * amount  # of a lattice of 5 mm
    assert inner(both).abs().max() < 0.25 * amount
    assert inner(jacobian(there, CUBE)).min() > 0


def test_noise_has_variance_one_and_the_smoothness_asked_for() -> None:
    """White noise blurred by a Gaussian of sigma s correlates as exp(-d^2 / 4 s^2)."""
    lattice = Lattice.over((0, 0, 0), (160, 160, 160), 4.0)
    field = smooth_noise(np.random.default_rng(1), lattice, 8.0, 4)
    assert torch.allclose(field.std((1, 2, 3)), torch.ones(4), atol=1e-4)
    assert field.mean((1, 2, 3)).abs().max() < 1e-4
    apart_mm = 12.0
    correlation = (field[..., 3:] * field[..., :-3]).mean()
    assert abs(float(correlation) - math.exp(-(apart_mm**2) / (4 * 8.0**2))) < 0.06


def test_widening_is_linear_interpolation() -> None:
    field = torch.from_numpy(np.random.default_rng(0).random((2, 3, 4, 5, 6), np.float32))
    expected = functional.interpolate(field, size=(9, 8, 13), mode="trilinear", align_corners=True)
    assert torch.allclose(widened(field, (9, 8, 13)), expected, atol=1e-6)


def test_sampling_at_lattice_points_gives_the_values_there() -> None:
    lattice = Lattice((4, 5, 6), (2.0, 3.0, 1.5), (-7.0, 4.0, 1.0))
    field = torch.from_numpy(np.random.default_rng(0).random((1, 2, 4, 5, 6), np.float32))
    assert torch.allclose(lattice.sample(field, lattice.points()[None]), field, atol=1e-5)
    far = torch.tensor([[[[[-100.0, 4.0, 1.0]]]]])
    assert torch.allclose(lattice.sample(field, far).ravel(), field[0, :, 0, 0, 0])


def test_a_thinned_lattice_has_the_same_corners() -> None:
    lattice = Lattice((90, 114, 96), (2.0, 2.0, 2.0), (-95.0, -95.0, -67.0))
    thin = lattice.thinned(4.0)
    for corner in ((0, 0, 0), (-1, -1, -1)):
        assert torch.allclose(thin.points()[corner], lattice.points()[corner], atol=1e-4)


def test_blur_keeps_the_mean_and_has_the_width_asked_for() -> None:
    image = torch.zeros(1, 1, 1, 1, 81)
    image[..., 40] = 1
    out = blurred(image, (0.0, 0.0, 3.0)).ravel()
    at = torch.arange(81) - 40
    assert abs(float(out.sum()) - 1) < 1e-5
    assert abs(float((out * at.square()).sum()) ** 0.5 - 3) < 0.15  # the kernel ends at 2.5 sigma


def test_streams_of_other_purposes_and_keys_differ_and_the_same_agree() -> None:
    drawn = [
        stream(*key).random(4).tolist()
        for key in ((1, PERSON, 3), (1, NOISE, 3), (2, PERSON, 3), (1, PERSON, 3, 0), (1, PERSON, 3, 0, 0), (1, PERSON))
    ]
    assert len({tuple(one) for one in drawn}) == len(drawn)
    assert stream(1, PERSON, 3).random(4).tolist() == drawn[0]
