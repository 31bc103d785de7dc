"""Networks of the lesion-preserving anonymiser: the paper's sizes, its schedule, samplers that give what was learnt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from models.lesion_diffusion import PAPER as UNET_PAPER
from models.lesion_diffusion import SMALL as UNET_SMALL
from models.lesion_diffusion import Conditions, LatentUNet, Schedule, diffusion_loss, sample
from models.lesion_vae import (
    PAPER,
    SMALL,
    Decoder,
    Encoder,
    LesionVae,
    Posterior,
    VaeConfig,
    active_units,
    kl_divergence,
    reconstruction_weight,
    vae_loss,
)

TINY = replace(SMALL, side=20, widths=(8, 8, 16, 16), latent=4, sequences=2, patch=1)
PATCHED = replace(TINY, widths=(8, 16, 16), patch=2)
TINY_UNET = replace(UNET_SMALL, latent=4, widths=(8, 8, 16, 16), embedded=16)


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def test_the_papers_encoder_gives_sixteen_means_and_variances_at_thirty_by_thirty() -> None:
    with torch.device("meta"):
        found = Encoder(PAPER)(torch.empty(2, 1, 240, 240))
        joined = Decoder(PAPER, 32)(torch.empty(2, 32, 30, 30))
    assert found.mean.shape == found.log_variance.shape == (2, 16, 30, 30)
    assert joined.shape == (2, 1, 240, 240)
    kinds = {type(module) for module in Encoder(TINY).modules()}
    assert nn.BatchNorm2d not in kinds
    with torch.device("meta"):
        literal = list(LesionVae(PAPER).modules())
    assert any(isinstance(module, nn.BatchNorm2d) for module in literal)
    assert not any(isinstance(module, nn.GroupNorm | nn.SiLU) for module in literal)


def test_the_papers_unet_takes_thirty_by_thirty_and_gives_it_back() -> None:
    with torch.device("meta"):
        model = LatentUNet(UNET_PAPER)
        conditions = Conditions(torch.zeros(2, dtype=torch.long), torch.empty(2, 1, 240, 240), torch.empty(2))
        said = model(torch.empty(2, 16, 30, 30), torch.empty(2), conditions)
    assert said.shape == (2, 16, 30, 30)
    strides = [module for module in model.modules() if isinstance(module, nn.Conv2d) and module.stride == (2, 2)]
    assert len(strides) == 3
    assert len(model.attend_down) == len(model.attend_up) == 3
    assert {attend.heads for attend in (*model.attend_down, *model.attend_up)} == {4}


def test_the_weight_of_reconstruction_halves_every_ten_epochs_down_to_one() -> None:
    assert [reconstruction_weight(epoch) for epoch in (0, 9, 10, 19, 20, 30, 40, 50, 10_000)] == [
        16, 16, 8, 8, 4, 2, 1, 1, 1,
    ]  # fmt: skip


def test_the_divergence_is_to_the_standard_normal() -> None:
    mean, log_variance = torch.randn(3, 4, 5, 5), torch.randn(3, 4, 5, 5)
    q = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    oracle = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).mean()
    assert kl_divergence(Posterior(mean, log_variance)).item() == pytest.approx(oracle.item(), rel=1e-5)
    collapsed = Posterior(torch.zeros(2, 4, 3, 3), torch.zeros(2, 4, 3, 3))
    assert kl_divergence(collapsed).item() == 0
    assert active_units(collapsed) == 0
    assert active_units(Posterior(mean, log_variance)) == 1


@pytest.mark.parametrize("config", [TINY, PATCHED])
def test_sides_that_the_strides_do_not_divide_are_padded_and_come_back(config: VaeConfig) -> None:
    model = LesionVae(config).eval()
    x, mask = torch.rand(2, 2, 20, 20), torch.zeros(2, 1, 20, 20)
    mask[..., 8:12, 8:12] = 1
    background, lesion = model.split(x, mask)
    assert torch.equal(background + lesion, x)
    made = model.join(model.background_encoder(background).mean, model.lesion_encoder(lesion).mean)
    assert model.background_encoder(background).mean.shape == (2, 4, 3, 3)
    assert made.shape == x.shape
    with pytest.raises(ValueError, match="20 x 20"):
        model.background_encoder(torch.rand(1, 2, 24, 24))


@pytest.mark.parametrize("wrong", [{"patch": 2}, {"widths": (8, 16, 16)}, {"widths": (8, 8), "patch": 2}])
def test_the_latent_is_an_eighth_however_it_is_reached(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="1/8"):
        replace(TINY, **wrong)


def test_decoders_of_one_latent_may_learn_from_a_part_of_the_batch() -> None:
    model = LesionVae(TINY).eval()
    x, mask = torch.rand(4, 2, 20, 20), (torch.rand(4, 1, 20, 20) > 0.9).float()
    other = torch.cat([x[:1], torch.rand(3, 2, 20, 20)])
    told, elsewhere = (vae_loss(model, one, mask, seeded(), epoch=0, alone=1) for one in (x, other))
    for name in ("background", "lesion"):
        torch.testing.assert_close(told[name], elsewhere[name])
    assert told["joint"] != elsewhere["joint"]
    whole = vae_loss(model, x, mask, seeded(), epoch=0)
    torch.testing.assert_close(whole["joint"], told["joint"])
    assert whole["background"] != told["background"]


def test_with_group_norm_a_slice_does_not_depend_on_who_else_is_in_the_batch() -> None:
    model = LesionVae(TINY).train()
    x = torch.rand(3, 2, 20, 20)
    alone = model.background_encoder(x[:1]).mean
    torch.testing.assert_close(model.background_encoder(x).mean[:1], alone, atol=1e-5, rtol=1e-4)


def test_one_batch_is_learnt_and_a_resumed_run_ends_at_the_same_weights() -> None:
    x, mask = torch.rand(4, 2, 20, 20), (torch.rand(4, 1, 20, 20) > 0.9).float()

    def steps(model: LesionVae, optimiser: torch.optim.Optimizer, numbers: range) -> list[float]:
        losses = []
        for number in numbers:
            optimiser.zero_grad()
            loss = vae_loss(model, x, mask, seeded(number), epoch=0)["total"]
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    torch.manual_seed(1)
    whole = LesionVae(TINY)
    begun = LesionVae(TINY)
    begun.load_state_dict(whole.state_dict())
    adam = torch.optim.Adam(whole.parameters(), 3e-3)
    losses = steps(whole, adam, range(40))
    assert losses[-1] < 0.5 * losses[0]
    first = torch.optim.Adam(begun.parameters(), 3e-3)
    steps(begun, first, range(20))
    resumed = LesionVae(TINY)
    resumed.load_state_dict(begun.state_dict())
    second = torch.optim.Adam(resumed.parameters(), 3e-3)
    second.load_state_dict(first.state_dict())
    steps(resumed, second, range(20, 40))
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction"])
def test_noise_and_target_are_those_of_the_library(prediction: str) -> None:
    from diffusers import DDPMScheduler

    schedule = Schedule(prediction)  # type: ignore[arg-type]
    library = DDPMScheduler(**schedule.options(), clip_sample=False)
    z, noise, step = torch.randn(3, 4, 3, 3), torch.randn(3, 4, 3, 3), torch.tensor([0, 500, 999])
    mixed, target = schedule.noised(z, noise, step)
    torch.testing.assert_close(mixed, library.add_noise(z, noise, step), atol=1e-5, rtol=1e-4)
    oracle = noise if prediction == "epsilon" else library.get_velocity(z, noise, step)
    torch.testing.assert_close(target, oracle, atol=1e-5, rtol=1e-4)
    assert schedule.alphas_bar[-1].item() == pytest.approx(4.0e-5, rel=0.02)  # starts from noise, not from an original


class Known(nn.Module):
    """The best estimate there is when latents are N(mean, std²): its samples must have that mean and spread."""

    config = TINY_UNET
    mean, std = 2.0, 0.5

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self.schedule = schedule

    def forward(self, z: Tensor, step: Tensor, _: Conditions) -> Tensor:
        if self.schedule.prediction == "flow":
            s = ((step + 1) / self.schedule.steps)[:, None, None, None]
            a, b = 1 - s, s
        else:
            alpha = self.schedule.alphas_bar[step.long()].float()[:, None, None, None]
            a, b = alpha.sqrt(), (1 - alpha).sqrt()
        gain = a * self.std**2 / (a**2 * self.std**2 + b**2)
        clean = self.mean + gain * (z - a * self.mean)
        noise = (z - a * clean) / b.clamp(min=1e-6)
        if self.schedule.prediction == "epsilon":
            return noise
        return noise - clean if self.schedule.prediction == "flow" else a * noise - b * clean


@pytest.mark.parametrize(
    ("prediction", "sampler", "steps"),
    [
        ("epsilon", "ddim", 250),
        ("v_prediction", "ddim", 250),
        ("epsilon", "dpm", 20),
        ("v_prediction", "dpm", 20),
        ("epsilon", "ancestral", 200),
        ("flow", "flow", 50),
    ],
)
def test_every_sampler_gives_the_distribution_that_was_learnt(prediction: str, sampler: str, steps: int) -> None:
    schedule = Schedule(prediction)  # type: ignore[arg-type]
    noise = torch.randn(64, 4, 4, 4, generator=seeded(2))
    conditions = Conditions(torch.zeros(64, dtype=torch.long), torch.zeros(64, 1, 8, 8), torch.zeros(64))

    def run() -> Tensor:
        return sample(
            Known(schedule),  # type: ignore[arg-type]
            noise,
            conditions,
            schedule,
            sampler=sampler,
            steps=steps,
            step_noise=lambda i: torch.randn(noise.shape, generator=seeded(100 + i)),
        )

    made = run()
    assert made.mean().item() == pytest.approx(2.0, abs=0.03)
    assert made.std().item() == pytest.approx(0.5, rel=0.06)
    torch.manual_seed(99)  # nothing is drawn but what the caller gives
    assert torch.equal(run(), made)


def test_samplers_refuse_what_they_were_not_trained_for() -> None:
    schedule = Schedule("epsilon")
    conditions = Conditions(torch.zeros(1, dtype=torch.long), torch.zeros(1, 1, 8, 8), torch.zeros(1))
    for sampler in ("flow", "ancestral"):
        with pytest.raises(ValueError, match=r"not sampled|noise of each step"):
            sample(Known(schedule), torch.zeros(1, 4, 4, 4), conditions, schedule, sampler=sampler, steps=2)  # type: ignore[arg-type]


def test_class_mask_depth_and_the_slice_below_all_reach_the_estimate() -> None:
    model = LatentUNet(TINY_UNET).eval()
    nn.init.normal_(model.end[-1].weight)  # it begins at 0, so that training begins calmly
    z = torch.randn(1, 4, 6, 6)
    base = Conditions(torch.zeros(1, dtype=torch.long), torch.zeros(1, 1, 48, 48), torch.full((1,), 0.5))
    step = torch.tensor([300.0])
    said = model(z, step, base)
    small = torch.zeros(1, 1, 48, 48)
    small[..., 20, 20] = 1  # a lesion of one pixel still counts
    for other in (
        replace(base, kind=torch.ones(1, dtype=torch.long)),
        replace(base, mask=small),
        replace(base, depth=torch.full((1,), 0.6)),
        replace(base, neighbour=torch.zeros(1, 4, 6, 6)),
        base.untold(TINY_UNET),
    ):
        assert not torch.allclose(model(z, step, other), said)


def test_one_batch_of_latents_is_learnt() -> None:
    model = LatentUNet(TINY_UNET)
    z = torch.randn(2, 4, 6, 6)
    conditions = Conditions(torch.tensor([0, 1]), torch.zeros(2, 1, 48, 48), torch.rand(2), torch.randn(2, 4, 6, 6))
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for number in range(120):
        adam.zero_grad()
        loss = diffusion_loss(model, z, conditions, Schedule("v_prediction"), seeded(number))
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert sum(losses[-20:]) < 0.7 * sum(losses[:20])
