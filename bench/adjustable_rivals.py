"""Other ways of taking identity out of films, each one network with its privacy knob: adversaries, feature noise, and
diffusion from a noised original.

ID-Adv: picture to picture, near the original and unnameable by an identity network trained along with a reversed
gradient. Privacy-Net (Kim et al. 2021): the same, kept useful by a network of findings instead of by likeness. The knob
λ weighs the adversary and is told to the network as a plane. Feat-Noise: noise on the latents of our autoencoder.
Image to image: our denoiser, from the original's own latent noised to t, under conditions that say nothing.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.adjustable_fitting import fitted_or_kept
from models.mdl_decoupling.partition import reversed_gradient
from models.reid_encoder.objectives import identity_loss
from models.resynthesis import AdjustableParts
from models.resynthesis.deidentify import left_over
from models.train.reid_material import Material
from models.train.trained import Tick

WEIGHTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # λ of the adversary
SPREADS = (0.3, 0.7, 1.5, 3.0, 6.0, 12.0)  # of noise on latents, which have unit spread
TIMES = (0.3, 0.6, 0.85, 0.93, 0.97, 1.0)  # of noise in the original's latent, image to image
LIKENESS = 0.1  # Privacy-Net's share of likeness: without any, its pictures are no films
IDENTITY = 64
TOGETHER = 48


def _step(into: int, out: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(into, out, 3, stride, 1), nn.GroupNorm(8, out), nn.SiLU())


class Adversarial(nn.Module):
    """(b, 1, side, side), 0 to 1, and λ -> (b, 1, side, side), 0 to 1, through 16 x 16 places without a way around."""

    def __init__(self, findings: int, width: int = 64) -> None:
        super().__init__()
        w = width
        self.body = nn.Sequential(
            _step(2, w, 2), _step(w, 2 * w, 2), _step(2 * w, 2 * w), _step(2 * w, 2 * w), nn.Conv2d(2 * w, 16, 3, 1, 1)
        )
        self.rival = _judge(IDENTITY, w)
        self.useful = _judge(max(findings, 1), w)

    def forward(self, x: Tensor, weight: float) -> Tensor:
        plane = torch.full_like(x, weight**0.5)
        out: Tensor = functional.pixel_shuffle(self.body(torch.cat([x, plane], 1)), 4).sigmoid()
        return out


def _judge(out: int, w: int) -> nn.Sequential:
    """Of a picture: what an adversary, or a network of findings, says."""
    return nn.Sequential(
        _step(1, w, 2), _step(w, 2 * w, 2), nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(128 * w, out)
    )


def trained_adversarial(
    fitted: Material, steps: int, people: int, keep: Path, tick: Tick, *, findings: bool
) -> Adversarial:
    """Kept under `keep`. `findings`: Privacy-Net; else ID-Adv."""
    torch.manual_seed(70 + findings)
    network = Adversarial(len(fitted.names))
    mated = fitted.mated()

    def loss(draw: torch.Generator) -> Tensor:
        rows = fitted.two_each(mated[torch.randperm(len(mated), generator=draw)[:people]], draw)
        x, who = fitted.x[rows].float(), fitted.who[rows]
        weight = WEIGHTS[int(torch.randint(len(WEIGHTS), (1,), generator=draw))]
        made = network(x, weight)
        seen = weight * reversed_gradient(made) + (1 - weight) * made.detach()  # the rival learns at full weight
        total = identity_loss(functional.normalize(network.rival(seen), dim=1), who)
        near = functional.l1_loss(made, x)
        if not findings:
            return total + near
        told = fitted.findings[rows]
        known = ~told.isnan()
        useful = functional.binary_cross_entropy_with_logits(network.useful(made)[known], told[known])
        return total + useful + LIKENESS * near

    name = "privacy-net" if findings else "id-adv"
    return fitted_or_kept(network, loss, steps, 1e-3, keep / f"{name}.pt", tick)


@torch.no_grad()
def adversarial(network: Adversarial, x: Tensor, weight: float) -> Tensor:
    return torch.cat([network(some, weight) for some in torch.split(x, TOGETHER)])


@torch.no_grad()
def feature_noised(parts: AdjustableParts, x: Tensor, spread: float) -> Tensor:
    """With white noise on the scaled latents."""
    draw = torch.Generator().manual_seed(int(1000 * spread))
    made = []
    for some in torch.split(x, TOGETHER):
        z = parts.resynthesis.encode(some)
        made.append(parts.resynthesis.decode(z + spread * torch.randn(z.shape, generator=draw)))
    return torch.cat(made).clamp(0, 1)


@torch.no_grad()
def image_to_image(parts: AdjustableParts, x: Tensor, time: float) -> Tensor:
    """From (1 - t) z + t noise back to a picture in the card's number of steps; all blocked, no semantics."""
    network, draw = parts.resynthesis, torch.Generator().manual_seed(int(1000 * time))
    config, last = network.config, network.schedule.steps
    if network.schedule.prediction != "flow":
        raise ValueError("image to image is measured with a network that estimates the flow")
    places = round(parts.foundation(x[:1]).shape[-1])
    made = []
    for some in torch.split(x, TOGETHER):
        noid, mask = left_over(some, torch.ones(len(some), 1, 1, dtype=torch.bool), config.side)
        told = network.conditions(noid, mask, torch.zeros(len(some), config.semantic, places, places))
        z = network.encode(some)
        z = (1 - time) * z + time * torch.randn(z.shape, generator=draw)
        for step in range(parts.steps):
            at = time * (1 - step / parts.steps)
            z = z - time / parts.steps * network.estimate(z, torch.full((len(z),), at * last - 1), told)
        made.append(network.decode(z).clamp(0, 1))
    return torch.cat(made)
