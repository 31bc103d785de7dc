"""The feature codec: bits by an independent oracle, integer codes, a mask that partitions exactly, losses by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from torch import nn

from models.mdl_decoupling import (
    PAPER,
    SMALL,
    Decoupler,
    GaussianMixtureCodelength,
    OwnSemantics,
    Shares,
    decoupling_losses,
    degenerate,
    foundation_of,
    gumbel_sigmoid,
    measured_shares,
    temperature_at,
)
from models.mdl_decoupling.codelength import FLOOR, SMALLEST_SIGMA
from models.mdl_decoupling.foundation import MgcaResNet, RetFound, middle, squared
from models.mdl_decoupling.partition import reversed_gradient
from models.train.reid import rank1

TINY = replace(SMALL, features=6, codes=4, width=8, identity=8)


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def mixture(channels: int = 3) -> GaussianMixtureCodelength:
    made = GaussianMixtureCodelength(channels, 3)
    for one in made.parameters():
        nn.init.normal_(one)
    return made.double()


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_a_likelihood_is_the_mixtures_mass_of_the_unit_interval(seed: int) -> None:
    torch.manual_seed(seed)
    made = mixture()
    q = torch.randint(-6, 7, (2, 3, 2, 2)).double()
    weights = made.logits.softmax(1).detach().numpy()
    means, sigmas = made.means.detach().numpy(), made.sigmas().detach().numpy()
    for c in range(3):
        values = q[:, c].numpy()[..., None]
        mass = norm.cdf(values + 0.5, means[c], sigmas[c]) - norm.cdf(values - 0.5, means[c], sigmas[c])
        oracle = np.maximum((weights[c] * mass).sum(-1), FLOOR)
        np.testing.assert_allclose(made.likelihood(q)[:, c].detach(), oracle, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(made(q)[:, c].detach(), -np.log2(oracle), rtol=1e-6)


def test_all_integers_together_have_the_mass_of_one() -> None:
    q = torch.arange(-200, 201).double().reshape(1, 1, -1, 1).expand(1, 3, -1, 1)
    torch.testing.assert_close(mixture().likelihood(q).sum((0, 2, 3)), torch.ones(3).double(), atol=1e-5, rtol=0)


def test_bits_by_hand_and_their_ceiling() -> None:
    made = GaussianMixtureCodelength(1, 3)
    with torch.no_grad():
        made.means.zero_()
        made.scales.fill_(-50.0)  # as narrow as a component may be
    assert made.sigmas().detach().numpy() == pytest.approx(SMALLEST_SIGMA)
    q = torch.tensor([0.0, 5.0]).reshape(1, 1, 2, 1)
    bits = made(q).flatten().tolist()
    assert bits[0] == pytest.approx(-math.log2(2 * norm.cdf(0.5 / 0.11) - 1), abs=1e-5)
    assert bits[1] == pytest.approx(-math.log2(1e-9), rel=1e-4)
    made(torch.full((1, 1, 1, 1), 300.0)).backward()  # far away it still has a finite gradient
    assert all(bool(torch.isfinite(one.grad).all()) for one in made.parameters() if one.grad is not None)


def test_a_drawn_mask_is_exactly_binary_with_the_probability_of_its_logit_at_any_temperature() -> None:
    uniform = torch.rand(200_000, generator=seeded())
    for logit in (-2.0, 0.0, 1.5):
        shares = set()
        for temperature in (1.0, 0.1):
            drawn = gumbel_sigmoid(torch.full_like(uniform, logit), temperature, uniform)
            torch.testing.assert_close(drawn, drawn.round(), atol=1e-6, rtol=0)
            shares.add(round(float(drawn.mean()), 5))
        assert len(shares) == 1
        assert shares.pop() == pytest.approx(1 / (1 + math.exp(-logit)), abs=0.005)


def test_the_gradient_of_a_drawn_mask_is_that_of_the_soft_one() -> None:
    logits, uniform = torch.randn(50, requires_grad=True), torch.rand(50)
    gumbel_sigmoid(logits, 0.5, uniform).sum().backward()
    soft = torch.sigmoid((logits.detach() + uniform.log() - (1 - uniform).log()) / 0.5)
    torch.testing.assert_close(logits.grad, soft * (1 - soft) / 0.5, atol=1e-5, rtol=1e-4)
    assert bool(torch.isfinite(gumbel_sigmoid(logits, 0.1, torch.tensor([0.0] * 25 + [1.0] * 25))).all())


def test_the_temperature_falls_from_one_to_a_tenth() -> None:
    assert [temperature_at(p) for p in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 10**-0.5, 0.1])
    with pytest.raises(ValueError, match="between 0 and 1"):
        temperature_at(1.1)


def test_at_inference_codes_are_whole_and_the_mask_splits_them_without_rest() -> None:
    model = Decoupler(TINY)
    features = 3 * torch.randn(3, 6, 5, 7)
    coded = model.code(features)
    assert coded.q.shape == (3, 4, 5, 7)
    assert torch.equal(coded.q, coded.q.round())
    assert set(coded.mask.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(coded.q_id + coded.q_sem, coded.q)
    assert bool((coded.q_id * coded.q_sem == 0).all())
    assert torch.equal(model.code(features).q, coded.q)
    torch.testing.assert_close(model.semantics(features), model.decode(coded.q_sem))


def test_what_the_mask_takes_does_not_reach_the_semantics() -> None:
    model = Decoupler(TINY)
    coded = model.code(torch.randn(2, 6, 4, 4))
    other = replace(coded, q=coded.q + 7 * coded.mask)
    assert bool(coded.mask.any())
    torch.testing.assert_close(model.decode(other.q_sem), model.decode(coded.q_sem))


def test_noise_in_training_is_uniform_within_half_and_only_of_the_given_generator() -> None:
    model = Decoupler(TINY)
    features = torch.randn(8, 6, 6, 6)
    y = model.encoder(model.standardised(features))
    noise = (model.noisy_code(features, 0.5, seeded(3)).q - y).detach()
    assert noise.abs().max() <= 0.5 + 1e-5
    assert noise.var().item() == pytest.approx(1 / 12, rel=0.15)
    torch.manual_seed(77)
    again = model.noisy_code(features, 0.5, seeded(3))
    torch.testing.assert_close(again.q - y, noise)


def test_the_losses_are_bits_a_place_and_squares_and_a_masked_code_is_free() -> None:
    model = Decoupler(TINY)
    features, who = torch.randn(6, 6, 3, 3), torch.tensor([0, 0, 1, 1, 2, 2])
    terms, coded = decoupling_losses(model, features, who, 0.5, seeded(1), keep=10.0, name=3.0)
    bits = model.codelength(coded.q)
    assert terms["rate"].item() == pytest.approx(bits.sum().item() / (6 * 9), rel=1e-5)
    assert terms["identity rate"].item() == pytest.approx((bits * coded.mask).sum().item() / (6 * 9), rel=1e-5)
    error = ((model.decode(coded.q) - features) ** 2).mean()
    assert terms["code-all"].item() == pytest.approx((terms["rate"] + 10 * error).item(), rel=1e-4)
    assert terms["code-id"].item() == pytest.approx((terms["identity rate"] + 3 * terms["identity"]).item(), rel=1e-5)
    with torch.no_grad():
        model.partition[-1].bias.fill_(-100.0)
    nothing, _ = decoupling_losses(model, features, who, 0.5, seeded(1))
    assert nothing["identity rate"].item() == pytest.approx(0, abs=1e-4)


def test_one_batch_is_learnt_and_identity_is_named_by_few_codes() -> None:
    model = Decoupler(TINY)
    features, who = torch.randn(8, 6, 4, 4), torch.arange(8) // 2
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    totals = []
    for step in range(150):
        adam.zero_grad()
        terms, _ = decoupling_losses(model, features, who, temperature_at(step / 149), seeded(step))
        loss = terms["code-all"] + terms["code-id"]
        loss.backward()
        adam.step()
        totals.append(loss.item())
    assert np.mean(totals[-10:]) < 0.6 * np.mean(totals[:10])
    shares = measured_shares(model, features)
    assert 0 < shares.identity < 1


def named_share(codes: torch.Tensor) -> float:
    """Rank-1 of 24 people with two pictures each, by untrained cosine."""
    who = torch.arange(24).repeat(2)
    return float(rank1(torch.nn.functional.normalize(codes.mean((2, 3)), dim=1), who)["rank-1, held out"])


@pytest.mark.parametrize("confuse", [0.0, 20.0])
def test_an_opponent_takes_identity_out_of_the_semantics_of_new_people_and_the_literal_objective_does_not(
    confuse: float,
) -> None:
    """Half of the features is the person's, half the picture's: 24 people to learn from, 24 others to judge."""
    draw = seeded(1)
    own = torch.randn(48, 3, 1, 1, generator=draw)

    def pictures(who: torch.Tensor) -> torch.Tensor:
        theirs = own[who].expand(-1, -1, 4, 4)
        shown = torch.randn(len(who), 3, 1, 1, generator=draw).expand(-1, -1, 4, 4)
        return torch.cat([theirs, shown], 1) + 0.1 * torch.randn(len(who), 6, 4, 4, generator=draw)

    model = Decoupler(replace(SMALL, features=6, codes=8, width=16, identity=16))
    adam = torch.optim.Adam(model.parameters(), 5e-3)
    for step in range(250):
        who = torch.randint(24, (24,), generator=draw).repeat(2)
        terms, _ = decoupling_losses(model, pictures(who), who, temperature_at(step / 249), draw, confuse=confuse)
        adam.zero_grad()
        (terms["code-all"] + terms["code-id"]).backward()
        adam.step()
    judged = pictures(torch.arange(24, 48).repeat(2))
    with torch.no_grad():
        coded = model.code(judged)
        kept = ((model.decode(coded.q_sem) - model.standardised(judged)) ** 2).mean((0, 2, 3))
    assert named_share(coded.q_id) > 0.5
    assert kept[3:].mean() < 0.3  # what is the picture's is still there
    if confuse:
        assert named_share(coded.q_sem) < 0.15
        assert kept[:3].mean() > 0.8  # and what is the person's is not
    else:
        assert named_share(coded.q_sem) > 0.25


def test_the_opponent_learns_and_what_it_reads_from_is_pushed_the_other_way() -> None:
    x = torch.randn(5, requires_grad=True)
    weight = torch.randn(5, requires_grad=True)
    (weight * reversed_gradient(x)).sum().backward()
    torch.testing.assert_close(x.grad, -weight.detach())
    torch.testing.assert_close(weight.grad, x.detach())
    model, features, who = Decoupler(TINY), torch.randn(4, 6, 4, 4), torch.tensor([0, 0, 1, 1])
    plain, _ = decoupling_losses(model, features, who, 0.5, seeded(2), name=3.0)
    more, _ = decoupling_losses(model, features, who, 0.5, seeded(2), name=3.0, confuse=2.0)
    assert "leak" not in plain
    assert (more["code-id"] - plain["code-id"]).item() == pytest.approx(2 * more["leak"].item(), rel=1e-4)
    cheap, _ = decoupling_losses(model, features, who, 0.5, seeded(2), name=3.0, price=0.2)
    saved = (plain["code-id"] - cheap["code-id"]).item()
    assert saved == pytest.approx(0.8 * plain["identity rate"].item(), rel=1e-4)


def test_what_the_frozen_network_reads_of_findings_is_kept_in_the_semantics() -> None:
    model, features, who = Decoupler(TINY), torch.randn(4, 6, 4, 4), torch.tensor([0, 0, 1, 1])
    model.measure(features)
    reads = lambda given: given.mean((2, 3))[:, :2]  # noqa: E731
    plain, coded = decoupling_losses(model, features, who, 0.5, seeded(2), reads=reads)
    more, _ = decoupling_losses(model, features, who, 0.5, seeded(2), useful=5.0, reads=reads)
    again = model.decode(coded.q_sem) * model.feature_std + model.feature_mean
    told = torch.sigmoid(reads(features))
    expected = -(told * torch.sigmoid(reads(again)).log() + (1 - told) * torch.sigmoid(-reads(again)).log()).mean()
    assert more["meaning"].item() == pytest.approx(expected.item(), rel=1e-4)
    assert (more["code-id"] - plain["code-id"]).item() == pytest.approx(5 * expected.item(), rel=1e-3)
    assert "meaning" not in plain
    nothing, _ = decoupling_losses(model, features, who, 0.5, seeded(2), useful=5.0)  # a network without such a head
    assert nothing["code-id"].item() == plain["code-id"].item()


def test_shares_are_counted_over_all_maps() -> None:
    model = Decoupler(TINY)
    features = torch.randn(70, 6, 2, 3)
    coded = model.code(features)
    found = measured_shares(model, features)
    assert found.bits_per_place == pytest.approx(coded.bits.sum().item() / (70 * 6), rel=1e-4)
    assert found.identity == pytest.approx(((coded.bits * coded.mask).sum() / coded.bits.sum()).item(), rel=1e-4)
    assert found.density == pytest.approx(coded.mask.mean().item(), rel=1e-4)
    with pytest.raises(ValueError, match="somebody"):
        measured_shares(model, features[:0])


def test_a_trivial_partition_is_named() -> None:
    def shares(density: float) -> Shares:
        return Shares(10.0, 0.4, density, 0.1)

    assert degenerate(shares(0.4)) == degenerate(shares(0.05)) == degenerate(shares(0.95)) == ""
    assert "identity stays" in degenerate(shares(0.049))
    assert "no semantics" in degenerate(shares(0.951))


def test_published_foundations_give_the_maps_that_the_codec_takes() -> None:
    with torch.device("meta"):
        mgca, retfound = MgcaResNet(), RetFound()
        assert mgca(torch.empty(2, 1, 256, 200)).shape == (2, 1024, 19, 19)
        assert len(mgca.state_dict()) == 318
        assert len(retfound.state_dict()) == 294
    assert mgca.features == retfound.features == PAPER.features
    with torch.device("meta"):
        codec = Decoupler(PAPER)
        q = codec.encoder(torch.empty(2, 1024, 14, 14))
        assert q.shape == (2, 32, 14, 14)
        assert codec.decode(q).shape == (2, 1024, 14, 14)


def test_pictures_are_squared_on_black_and_cut_in_the_middle() -> None:
    wide = torch.ones(1, 1, 4, 7)
    found = squared(wide)
    assert found.shape == (1, 1, 7, 7)
    assert found[0, 0, :, 3].tolist() == [0, 1, 1, 1, 1, 0, 0]
    assert torch.equal(middle(torch.arange(256.0).expand(1, 1, 256, 256))[0, 0, 0], torch.arange(16.0, 240.0))


def test_a_foundation_comes_from_exactly_its_own_tensors_and_is_frozen() -> None:
    made = OwnSemantics(3).eval()
    state = {name: one.half() for name, one in made.state_dict().items()}
    again = foundation_of("own", state)
    x = torch.rand(2, 1, 70, 64)
    torch.testing.assert_close(again(x), made(x), atol=2e-2, rtol=2e-2)
    assert again(x).shape == (2, 64, 8, 8)
    assert not any(one.requires_grad for one in again.parameters())
    logits, picture = made.said(made(x))
    assert logits.shape == (2, 3)
    assert picture.shape == (2, 1, 32, 32)
    with pytest.raises(ValueError, match="not those of own"):
        foundation_of("own", {name: one for name, one in state.items() if "body.0" not in name})
    with pytest.raises(ValueError, match="one of mgca_resnet, retfound, own"):
        foundation_of("clip", state)


def test_features_are_brought_to_unit_spread_of_training_people() -> None:
    model = Decoupler(TINY)
    features = 5 * torch.randn(40, 6, 3, 3) + torch.arange(6.0)[None, :, None, None]
    model.measure(features)
    found = model.standardised(features)
    torch.testing.assert_close(found.mean((0, 2, 3)), torch.zeros(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.std((0, 2, 3)), torch.ones(6), atol=1e-4, rtol=0)
