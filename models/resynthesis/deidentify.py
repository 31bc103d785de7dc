"""The flow of the paper, whole: block what identifies, take what is meant without the identity, make a picture anew."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from models.id_blocking import Blocking, enlarged
from models.mdl_decoupling import evidence, prototypes_at
from models.reid_encoder import identity_map
from models.resynthesis.parts import AdjustableParts
from models.resynthesis.sampling import sample


@dataclass(frozen=True, slots=True)
class Deidentified:
    """`picture` (b, c, h, w), 0 to 1; `noid` (b, c, side, side), `mask` (b, 1, side, side; True where blocked) at the
    card's size.
    """

    picture: Tensor
    noid: Tensor
    mask: Tensor


def left_over(x_bchw: Tensor, grid_mask_bhw: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """(X_noID, mask) at side x side, of pictures of any size and masks on the map's grid.

    Blocked before it is shrunk and again after: shrinking mixes neighbours, and nothing of what is blocked may get
    into a pixel that is not.
    """
    size = (x_bchw.shape[-2], x_bchw.shape[-1])
    x = torch.where(enlarged(grid_mask_bhw, size)[:, None], torch.zeros_like(x_bchw), x_bchw)
    if size != (side, side):
        x = functional.interpolate(x, (side, side), mode="bilinear", antialias=True, align_corners=False)
    mask = enlarged(grid_mask_bhw, (side, side))[:, None]
    return torch.where(mask, torch.zeros_like(x), x), mask


@torch.no_grad()
def told_at(
    parts: AdjustableParts, x_bchw: Tensor, semantics: Tensor, blocking: Blocking
) -> tuple[Tensor, Tensor, Tensor]:
    """What re-synthesis hears at a level: X_noID, its mask (both at the card's size) and semantics (b, features, h, w).

    Below the level from which on semantics are whole, and where the card has a code book, nothing of the picture is
    left, and its semantics are the nearest of few (`models.mdl_decoupling.codebook`).
    """
    grid_mask = blocking.mask(identity_map(parts.reid, x_bchw))
    count = 0 if parts.codebook is None else prototypes_at(blocking.r)
    if parts.codebook is not None and count:
        seen = evidence(parts.decoupler.features_of(semantics), parts.foundation.findings_of)
        grid_mask, semantics = torch.ones_like(grid_mask), parts.codebook.nearest(seen, count)
    return *left_over(x_bchw, grid_mask, parts.resynthesis.config.side), semantics


@torch.no_grad()
def deidentified(
    parts: AdjustableParts,
    x_bchw: Tensor,
    blocking: Blocking,
    noise: Tensor,
    *,
    sampler: str | None = None,
    steps: int | None = None,
) -> Deidentified:
    """Pictures of any size and of the card's channels, 0 to 1; `noise` standard normal (b, latent, h/f, w/f), new for
    each picture.

    `sampler` and `steps`: the card's unless said. Raises ValueError for noise of another shape, other channels, or
    numbers outside 0..1.
    """
    config = parts.resynthesis.config
    wanted = (len(x_bchw), config.latent, config.latent_side, config.latent_side)
    if tuple(noise.shape) != wanted:
        raise ValueError(f"the noise is {wanted}, not {tuple(noise.shape)}")
    if x_bchw.shape[1] != parts.channels:
        raise ValueError(f"pictures have {parts.channels} channels, not {x_bchw.shape[1]}")
    if not bool(((x_bchw >= 0) & (x_bchw <= 1)).all()):
        raise ValueError("pictures have numbers from 0 to 1")
    x = x_bchw.to(parts.device)
    noid, mask, semantics = told_at(parts, x, parts.decoupler.semantics(parts.foundation(x)), blocking)
    conditioned = parts.resynthesis.conditions(noid, mask, semantics)
    z = sample(
        parts.resynthesis,
        noise.to(x),
        conditioned,
        sampler=sampler or parts.sampler,
        steps=steps or parts.steps,
    )
    made = parts.resynthesis.decode(z, parts.channels)
    if made.shape[-2:] != x.shape[-2:]:
        made = functional.interpolate(made, x.shape[-2:], mode="bicubic", antialias=True, align_corners=False)
    return Deidentified(made.clamp(0, 1), noid, mask)
