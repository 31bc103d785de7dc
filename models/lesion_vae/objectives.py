"""What the autoencoders are trained on (paper eq. 2-4, 13-14), with its slips mended.

The divergence is KL(q(z|x) ‖ N(0, I)); eq. 4 writes it between X and X̂. Both terms are means over elements: a summed
KL over 14,400 latents would drown α_v ≤ 16 and collapse the posterior. α_v steps once every ten epochs, not each
iteration.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from models.lesion_vae.networks import LesionVae, Posterior

EPOCHS_A_STEP = 10
FIRST_WEIGHT = 16.0


def reconstruction_weight(epoch: int) -> float:
    """α_v of an epoch, counted from 0: 16, 8, 4, 2, 1, a step each ten epochs (eq. 14)."""
    if epoch < 0:
        raise ValueError("epochs count from 0")
    return max(FIRST_WEIGHT * 0.5 ** (epoch // EPOCHS_A_STEP), 1.0)


def kl_divergence(posterior: Posterior, free_nats: float = 0.0) -> Tensor:
    """KL to N(0, I), a mean over elements; a channel pays nothing for its first `free_nats` (mean of its places)."""
    each = 0.5 * (posterior.mean**2 + posterior.log_variance.exp() - 1 - posterior.log_variance)
    by_channel = each.mean((0, 2, 3))
    return by_channel.clamp(min=free_nats).mean()


def active_units(posterior: Posterior, threshold: float = 0.01) -> float:
    """Share of latent channels whose mean varies (variance above the threshold): 0 = collapsed."""
    return float((posterior.mean.var((0, 2, 3)) > threshold).float().mean())


def vae_loss(
    model: LesionVae,
    x: Tensor,
    mask: Tensor,
    generator: torch.Generator,
    *,
    epoch: int,
    kl_weight: float = 1e-3,
    free_nats: float = 0.05,
    border_weight: float = 2.0,
    seen: Tensor | None = None,
    alone: int | None = None,
) -> dict[str, Tensor]:
    """All terms and their `total`. x (b, s, h, w), 0 to 1; mask (b, 1, h, w).

    `seen` (b, s), 1 or 0: sequences of the lesion that its encoder gets; what it does not see it need not give back.
    A study may lack a sequence, and its lesion must come out all the same.

    `alone`: slices of the batch, its first, by which the decoders of one latent learn, None = all. D3 learns from all.
    `kl_weight` 1 is literal; less keeps the detail that the paper's SSIM of 0.982 asks for. Pixels at the border of the
    lesion count `border_weight` times more in what D3 makes, because that is where a seam would show.
    """
    background, lesion = model.split(x, mask)
    counted = torch.ones_like(x)
    if seen is not None:
        there = seen.to(x.dtype)[:, :, None, None]
        lesion, counted = lesion * there, 1 - mask.to(x.dtype) * (1 - there)
    q_background, q_lesion = model.background_encoder(background), model.lesion_encoder(lesion)
    z_background, z_lesion = (q.sample(_normal(q.mean, generator)) for q in (q_background, q_lesion))
    alpha = reconstruction_weight(epoch)
    border = _border(mask.to(x.dtype))
    terms = {
        "background": functional.mse_loss(model.background_decoder(z_background[:alone]), background[:alone]),
        "lesion": functional.mse_loss(model.lesion_decoder(z_lesion[:alone]), lesion[:alone]),
        "joint": (counted * (1 + border_weight * border) * (model.join(z_background, z_lesion) - x) ** 2).mean(),
        "kl": kl_divergence(q_background, free_nats) + kl_divergence(q_lesion, free_nats),
    }
    reconstruction = terms["background"] + terms["lesion"] + terms["joint"]
    return {**terms, "total": alpha * reconstruction + kl_weight * terms["kl"]}


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator).to(like)


def _border(mask: Tensor, reach: int = 2) -> Tensor:
    """1 within `reach` pixels of the mask's edge."""
    size = 2 * reach + 1
    grown = functional.max_pool2d(mask, size, 1, reach)
    shrunk = -functional.max_pool2d(-mask, size, 1, reach)
    return grown - shrunk
