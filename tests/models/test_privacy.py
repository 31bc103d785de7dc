"""The mechanism of differential privacy: bounds that hold for each person, noise of the right size, opacus's ε."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import RDPAccountant
from scipy import stats
from torch import Tensor, nn

from models.train.lesion import train_lesion
from models.train.privacy import PatientMechanism, PatientSteps, SecretDraws, clipped, epsilon_of, noise_multiplier
from models.train.trained import Options, Privacy
from tests.lesion_studies import PLAN, cohort

ASKED = Privacy(8.0, 1e-3, 0.7, key=b"a key of a test")
QUICK = replace(PLAN, vae_steps=4, diffusion_steps=4, student_steps=3, pairs=8, evaluate_every=2, batch=3)


def quiet(_what: str, _done: int, _total: int) -> None:
    return


searched = cache(noise_multiplier)  # a second of opacus each time, and the same few questions


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    monkeypatch.setattr("models.train.privacy.noise_multiplier", searched)


@given(
    values=st.lists(st.floats(-(2.0**66), 2.0**66, width=32, allow_subnormal=False), min_size=1, max_size=40),
    clip=st.floats(1e-6, 1e6),
    cut=st.integers(0, 40),
)
@settings(deadline=None, max_examples=200)
def test_nobody_gives_more_than_the_norm_and_a_small_gradient_is_left_alone(
    values: list[float], clip: float, cut: int
) -> None:
    gradients = [torch.tensor(one, dtype=torch.float32) for one in (values[:cut], values[cut:])]
    out = clipped(gradients, clip)
    norm = math.sqrt(math.fsum(float(one) ** 2 for part in out for one in part))
    assert norm <= clip
    before = math.sqrt(math.fsum(float(one) ** 2 for part in gradients for one in part))
    for one, was in zip(out, gradients, strict=True):
        expected = was.double().numpy() * (1.0 if before <= clip else clip / before)
        np.testing.assert_allclose(one.numpy(), expected, rtol=1e-8)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_gradient_that_is_no_number_gives_nothing(wrong: float) -> None:
    out = clipped([torch.tensor([1.0, wrong]), torch.ones(3)], 1.0)
    assert [one.tolist() for one in out] == [[0, 0], [0, 0, 0]]


def test_the_draws_are_uniform_and_normal_and_never_the_same() -> None:
    draws = SecretDraws(b"key")
    assert stats.kstest(draws.uniform(20_000), "uniform").pvalue > 0.001
    normal = draws.normal(torch.Size((101, 99)))
    assert normal.shape == (101, 99)
    assert stats.kstest(normal.flatten().numpy(), "norm").pvalue > 0.001
    assert abs(float(np.corrcoef(normal.flatten()[:-1], normal.flatten()[1:])[0, 1])) < 0.05
    assert not np.isin(draws.uniform(100), draws.uniform(100)).any()
    assert not np.isin(SecretDraws(b"kez").uniform(100), SecretDraws(b"key").uniform(100)).any()
    rows = torch.arange(10, 20)
    chosen = draws.some(rows, 4)
    assert len(chosen.unique()) == 4
    assert set(chosen.tolist()) <= set(rows.tolist())
    assert sorted(draws.some(rows, 40).tolist()) == rows.tolist()


def test_without_a_key_every_run_has_its_own() -> None:
    people = torch.arange(20)
    first, second = (PatientMechanism(Privacy(8.0, 1e-3), people, 4, 10) for _ in range(2))
    assert len(first.draws.key) == 32
    assert first.draws.key != second.draws.key
    assert "key" not in repr(Privacy(1.0, key=b"secret"))


def test_epsilon_is_opacus_own_and_under_no_sampling_that_of_the_gaussian() -> None:
    mechanism = PatientMechanism(ASKED, torch.arange(40), 4, 25)
    assert mechanism.rate == 0.1
    own = RDPAccountant()
    for _ in range(25):
        mechanism.spend()
        own.step(noise_multiplier=mechanism.sigma, sample_rate=0.1)
    assert mechanism.accountant.get_epsilon(1e-3) == own.get_epsilon(1e-3)
    card = mechanism.carded(3)
    assert card.epsilon == own.get_epsilon(1e-3)
    assert 8 * 0.99 < card.epsilon <= 8  # as little noise as the promise allows
    assert (card.steps, card.steps_taken, card.people, card.people_unprotected) == (25, 25, 40, 3)
    assert (card.unit, card.sampling_rate, card.delta, card.clip) == ("patient", 0.1, 1e-3, 0.7)
    assert card.accountant.startswith("opacus 1.")
    with pytest.raises(ValueError, match="are taken"):
        mechanism.spend()
    # Mironov 2017, corollary 3; Canonne, Kamath and Steinke 2020, proposition 12: for the Gaussian, k times, q = 1.
    sigma, steps, delta = 5.0, 30, 1e-5
    by_hand = min(
        steps * a / (2 * sigma**2) + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)
        for a in (*(1 + one / 10 for one in range(1, 100)), *range(12, 64))
    )
    assert epsilon_of(delta, 1.0, sigma, steps) == pytest.approx(by_hand, rel=1e-9)


def test_what_cannot_be_promised_is_refused() -> None:
    people = torch.arange(50)
    with pytest.raises(ValueError, match="delta must be below 1 / 50"):
        PatientMechanism(Privacy(1.0, 0.02), people, 4, 10)
    with pytest.raises(ValueError, match="no noise keeps epsilon"):
        PatientMechanism(Privacy(0.001, 1e-3), people, 4, 10_000)
    for wrong in ({"epsilon": 0}, {"epsilon": math.inf}, {"epsilon": math.nan}, {"delta": 0.0}, {"clip": -1.0}):
        with pytest.raises(ValueError, match="above 0"):
            Privacy(**{"epsilon": 1.0, **wrong})


def test_without_opacus_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus.accountants", None)
    with pytest.raises(ValueError, match=r"pip install 'deid-gateway\[dp\]'"):
        train_lesion("tiny", QUICK, [cohort(3)], Options(privacy=ASKED), quiet)


X = torch.linspace(-3, 3, 60)[:, None]


class Summed(PatientMechanism):
    """Without noise or mean: what the clipped people sum to. Everybody takes part."""

    def noised(self, summed: Tensor) -> Tensor:
        return summed


def summed(people: list[int], who: Tensor, loss: Callable[..., Tensor]) -> Tensor:
    """The sum of a step over these people; q is 1, and a loss without draws."""
    chosen = torch.tensor(people)
    mechanism = Summed(ASKED, chosen, 1000, 5)
    rows = torch.nonzero(torch.isin(who, chosen)).flatten()
    network = nn.Linear(1, 1).double()
    nn.init.constant_(network.weight, 0.2)
    nn.init.zeros_(network.bias)
    PatientSteps(mechanism, rows, who[rows]).gradients(network, 0, lambda *told: loss(*told, network))
    assert network.weight.grad is not None
    assert network.bias.grad is not None
    return torch.cat([network.weight.grad.flatten(), network.bias.grad])


def test_one_person_more_or_less_moves_the_sum_by_the_norm_at_most() -> None:
    who = torch.arange(60) % 20  # three rows of each, fewer than a step takes

    def still(rows: Tensor, _generator: torch.Generator, _epoch: int, net: nn.Module) -> Tensor:
        return 5 * ((net(X[rows].double()) - 3 * X[rows]) ** 2).mean()

    everybody = summed(list(range(20)), who, still)
    moved = []
    for person in range(20):
        without = summed([one for one in range(20) if one != person], who, still)
        moved.append(float((everybody - without).norm()))
        alone = summed([person], who, still)
        torch.testing.assert_close(everybody - without, alone, rtol=0, atol=1e-9)
    assert max(moved) <= 0.7
    assert max(moved) == pytest.approx(0.7)  # and somebody uses all of it


def test_a_person_with_many_pictures_gives_no_more_than_one_with_one() -> None:
    loud = lambda rows, *_: 1e6 * _[-1](X[rows].double()).sum()  # noqa: E731
    many, one = torch.zeros(60, dtype=torch.long), torch.where(torch.arange(60) == 7, 0, 1)
    for who in (many, one):
        assert float(summed([0], who, loud).norm()) == pytest.approx(0.7)


def test_noise_is_sigma_times_the_norm_over_the_expected_people() -> None:
    mechanism = PatientMechanism(ASKED, torch.arange(50), 5, 30)
    out = mechanism.noised(torch.full((200, 200), 3.0, dtype=torch.float64))
    spread = mechanism.sigma * 0.7 / 5
    assert float(out.mean()) == pytest.approx(3 / 5, abs=4 * spread / 200)
    assert float(out.std()) == pytest.approx(spread, rel=0.02)
    again = mechanism.noised(torch.full((200, 200), 3.0, dtype=torch.float64))
    assert not torch.isclose(out, again, rtol=0, atol=1e-6 * spread).any()


def test_everybody_is_drawn_alone_with_the_rate() -> None:
    mechanism = PatientMechanism(ASKED, torch.arange(40), 10, 5)
    seen, counts = torch.zeros(40), []

    def seeing(rows: Tensor, _generator: torch.Generator, _epoch: int) -> Tensor:
        assert len(set((rows // 10).tolist())) == 1  # one person, ...
        assert len(rows.unique()) == 4  # ... and a few of the slices
        seen[rows[0] // 10] += 1
        return network.weight.sum()

    network = nn.Linear(1, 1)
    steps = PatientSteps(mechanism, torch.arange(400), torch.arange(400) // 10)
    mechanism.steps = 400
    for _ in range(400):
        before = float(seen.sum())
        steps.gradients(network, 0, seeing)
        counts.append(float(seen.sum()) - before)
    assert stats.chisquare(seen.numpy()).pvalue > 0.001
    assert np.mean(counts) == pytest.approx(10, abs=4 * math.sqrt(7.5 / 400))
    assert np.var(counts) == pytest.approx(40 * 0.25 * 0.75, rel=0.3)  # binomial: no fixed number of people


def test_a_step_with_nobody_in_it_is_noise_and_counts() -> None:
    mechanism = PatientMechanism(ASKED, torch.arange(40), 4, 5)
    network = nn.Linear(2, 1)
    PatientSteps(mechanism, torch.empty(0, dtype=torch.long), torch.empty(0)).gradients(
        network, 0, lambda *_: pytest.fail("nobody has rows")
    )
    assert network.weight.grad is not None
    assert bool(network.weight.grad.abs().min() > 0)
    assert mechanism.taken == 1


def test_a_network_that_keeps_statistics_of_people_is_refused() -> None:
    network = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4))
    steps = PatientSteps(PatientMechanism(ASKED, torch.arange(3), 3, 5), torch.arange(60), torch.arange(60) % 3)
    with pytest.raises(ValueError, match="norm group"):
        steps.gradients(network, 0, lambda rows, *_: network(X[rows]).sum())
