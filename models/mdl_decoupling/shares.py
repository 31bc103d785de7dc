"""How many bits a place costs and which part of them is identity: the paper reads 44 % for X-ray, 55 % for fundus."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from models.mdl_decoupling.network import Decoupler

TOGETHER = 64
DENSITY = (0.05, 0.95)  # of the mask; outside it the partition is a trivial one


@dataclass(frozen=True, slots=True)
class Shares:
    """At inference. `identity` = bits of M ⊗ Q over bits of Q; `density` = share of codes that M takes."""

    bits_per_place: float
    identity: float
    density: float
    distortion: float


@torch.no_grad()
def measured_shares(model: Decoupler, features: Tensor) -> Shares:
    """Of maps (n, features, h, w). Raises ValueError for none."""
    if not len(features):
        raise ValueError("shares are measured on features of somebody")
    total = torch.zeros(4, dtype=torch.float64)
    places = features.shape[0] * features.shape[2] * features.shape[3]
    for some in torch.split(features, TOGETHER):
        coded = model.code(some)
        error = (model.decode(coded.q) - model.standardised(some)) ** 2
        sums = (coded.bits.sum(), (coded.mask * coded.bits).sum(), coded.mask.sum(), error.sum())
        total += torch.tensor([float(one) for one in sums], dtype=torch.float64)
    bits, of_identity, masked, error_sum = total.tolist()
    return Shares(
        bits_per_place=bits / places,
        identity=of_identity / bits if bits else 0.0,
        density=masked / (places * model.config.codes),
        distortion=error_sum / (places * model.config.features),
    )


def degenerate(shares: Shares, limits: tuple[float, float] = DENSITY) -> str:
    """Why a partition may not ship; empty when it may. M ≡ 0 removes nobody, M ≡ 1 leaves no semantics."""
    low, high = limits
    if low <= shares.density <= high:
        return ""
    side = "next to nothing: identity stays" if shares.density < low else "next to everything: no semantics are left"
    return (
        f"the mask takes {shares.density:.1%} of the codes, {side}; change the weights of the losses, or train longer"
    )
