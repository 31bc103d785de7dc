"""A background latent for every slice of a volume, from the lowest up, each knowing the one below (paper 4.4.3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from models.lesion_anonymiser.parts import LesionParts
from models.lesion_anonymiser.study import Noise
from models.lesion_diffusion import Conditions, sample

DECODED = 16  # slices at a time


def batches(x: Tensor, size: int) -> list[Tensor]:
    """Pieces of x along its first axis, in order."""
    return [x[begin : begin + size] for begin in range(0, len(x), size)]


def shared_noise(noise: Tensor, shared: float) -> Tensor:
    """(slices, ...) of independent standard normal numbers -> the same, neighbours correlated by `shared`.

    n_k = shared · n_{k−1} + √(1 − shared²) · e_k: every slice stays standard normal, as the network was trained on.
    """
    own = math.sqrt(1 - shared**2)
    out = [noise[0]]
    for one in noise[1:]:
        out.append(shared * out[-1] + own * one)
    return torch.stack(out)


@torch.no_grad()
def background_latents(
    parts: LesionParts,
    mask_zhw: Tensor,
    depth_z: Tensor,
    kind: int,
    noise: Noise,
    *,
    sampler: str,
    steps: int,
    guidance: float,
    shared: float,
) -> Tensor:
    """(z, latent, h, w), not scaled. `mask_zhw` of the lesion in the card's pixels, `depth_z` 0 to 1.

    Purposes "background", and "ancestral SLICE STEP" for the sampler `ancestral`. Nothing of the original enters but
    class, mask and depth.
    """
    network, schedule = parts.network(sampler)
    config = parts.vae.config
    one_slice = (config.latent, config.latent_side, config.latent_side)
    drawn = shared_noise(noise((len(mask_zhw), *one_slice), "background").float(), shared).to(parts.device)
    below: Tensor | None = None
    made = []
    for index in range(len(mask_zhw)):
        conditions = Conditions(
            kind=torch.tensor([kind], device=parts.device),
            mask=mask_zhw[index][None, None].to(parts.device),
            depth=depth_z[index : index + 1].to(parts.device),
            neighbour=below if network.config.neighbour else None,
        )

        def of_step(step: int, number: int = index) -> Tensor:
            return noise((1, *one_slice), f"ancestral {number} {step}").float().to(parts.device)

        below = sample(
            network,
            drawn[index][None],
            conditions,
            schedule,
            sampler=sampler,
            steps=steps,
            guidance=guidance,
            step_noise=of_step if sampler == "ancestral" else None,
        )
        made.append(below)
    return parts.vae.unscaled(torch.cat(made))


@torch.no_grad()
def lesion_latents(parts: LesionParts, lesion_zshw: Tensor) -> Tensor:
    """(z, latent, h, w): means of the posterior of the lesion alone, 0 elsewhere (L₂ of the paper)."""
    pieces = [parts.vae.lesion_encoder(one.to(parts.device)).mean for one in batches(lesion_zshw, DECODED)]
    return torch.cat(pieces)


@torch.no_grad()
def decoded(parts: LesionParts, background: Tensor, lesion: Tensor) -> Tensor:
    """D3: (z, sequences, side, side), 0 to 1, on the CPU."""
    pieces = [
        parts.vae.join(one, other).clamp(0, 1).float().cpu()
        for one, other in zip(batches(background, DECODED), batches(lesion, DECODED), strict=True)
    ]
    return torch.cat(pieces)
