"""What the autoencoder and the denoiser are trained on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from models.resynthesis.networks import Conditioned, Resynthesis

KL_WEIGHT = 1e-4  # on means over elements: enough to bound the latent, too little to lose detail
EDGES = 0.5  # of the gradients' error: means alone blur ribs and vessels


def vae_loss(model: Resynthesis, x_bchw: Tensor, generator: torch.Generator) -> Tensor:
    """Absolute error of pixels and of their differences, and the divergence to N(0, I); means over elements."""
    posterior = model.posterior(x_bchw)
    noise = torch.randn(posterior.mean.shape, generator=generator).to(posterior.mean)
    z = posterior.mean + posterior.std * noise
    made = model.shown(model.vae.decode(z).sample, x_bchw.shape[1])
    error = functional.l1_loss(made, x_bchw)
    edges = sum(functional.l1_loss(made.diff(dim=axis), x_bchw.diff(dim=axis)) for axis in (2, 3))
    divergence = 0.5 * (posterior.mean**2 + posterior.var - 1 - posterior.logvar).mean()
    total: Tensor = error + EDGES * edges + KL_WEIGHT * divergence
    return total


def diffusion_loss(model: Resynthesis, z: Tensor, conditioned: Conditioned, generator: torch.Generator) -> Tensor:
    """L_diffuse: mean squared error of the estimate at random steps; z are scaled latents (b, latent, h, w)."""
    schedule = model.schedule
    step = torch.randint(schedule.steps, (len(z),), generator=generator).to(z.device)
    noise = torch.randn(z.shape, generator=generator).to(z)
    mixed, target = schedule.noised(z, noise, step)
    return functional.mse_loss(model.estimate(mixed, step, conditioned), target)
