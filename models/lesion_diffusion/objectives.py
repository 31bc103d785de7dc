"""The training objective of the latent diffusion (paper eq. 18)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from models.lesion_diffusion.schedule import Schedule
from models.lesion_diffusion.unet import Conditions, LatentUNet

UNTOLD_SHARE = 0.1  # of the batch whose class is withheld, for guidance
ALONE_SHARE = 0.15  # of batches without the slice below: the lowest slice of a volume has none


def diffusion_loss(
    model: LatentUNet, z: Tensor, conditions: Conditions, schedule: Schedule, generator: torch.Generator
) -> Tensor:
    """Mean squared error of the estimate at random steps; z (b, latent, h, w) has unit spread."""
    count = len(z)
    step = torch.randint(schedule.steps, (count,), generator=generator).to(z.device)
    noise = torch.randn(z.shape, generator=generator).to(z)
    mixed, target = schedule.noised(z, noise, step)
    withheld = (torch.rand(count, generator=generator) < UNTOLD_SHARE).to(z.device)
    kind = torch.where(withheld, torch.full_like(conditions.kind, model.config.classes), conditions.kind)
    alone = bool(torch.rand(1, generator=generator) < ALONE_SHARE)
    told = replace(conditions, kind=kind, neighbour=None if alone else conditions.neighbour)
    return functional.mse_loss(model(mixed, step, told), target)
