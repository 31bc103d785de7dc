"""The learned binary mask M: which codes are the identity's. Straight-through Gumbel-sigmoid while it is trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

HOT, COLD = 1.0, 0.1  # τ at the start and at the end of training


def temperature_at(progress: float) -> float:
    """τ, falling geometrically from 1 to 0.1. Raises ValueError for a progress outside [0, 1]."""
    if not 0 <= progress <= 1:
        raise ValueError("progress lies between 0 and 1")
    return float(HOT * (COLD / HOT) ** progress)


class _Reversed(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        return -grad


def reversed_gradient(x: Tensor) -> Tensor:
    """The same, whose gradient comes back with the other sign (Ganin and Lempitsky 2015)."""
    out: Tensor = _Reversed.apply(x)  # type: ignore[no-untyped-call]
    return out


def gumbel_sigmoid(logits: Tensor, temperature: float, uniform: Tensor) -> Tensor:
    """Exactly 0 or 1, with the gradient of the soft draw (Jang et al. 2017, for two classes).

    `uniform` in (0, 1), of the shape of `logits`: the difference of two Gumbel draws is log u − log(1 − u), and M is 1
    with probability σ(logit), whatever the temperature.
    """
    u = uniform.clamp(1e-6, 1 - 1e-6)
    soft = ((logits + u.log() - (-u).log1p()) / temperature).sigmoid()
    hard = (soft > 0.5).to(soft)
    return hard + soft - soft.detach()
