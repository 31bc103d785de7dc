"""What the network learns of identity labels: pictures of one person near each other, those of others far away.

L = Σ_i −1/|P(i)| Σ_{p∈P(i)} log( exp(z_i·z_p/τ) / Σ_{a≠i} exp(z_i·z_a/τ) )      (SupCon, Khosla et al. 2020, eq. 2)
"""

from __future__ import annotations

import torch
from torch import Tensor

TEMPERATURE = 0.1


def identity_loss(z_bd: Tensor, who_b: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """The mean over pictures that have a mate in the batch. Raises ValueError when none has."""
    eye = torch.eye(len(z_bd), dtype=torch.bool, device=z_bd.device)
    same = (who_b[:, None] == who_b[None]) & ~eye
    mated = same.any(1)
    if not bool(mated.any()):
        raise ValueError("nobody in the batch has two pictures")
    logits = (z_bd @ z_bd.T / temperature).masked_fill(eye, float("-inf"))
    share = logits - logits.logsumexp(1, keepdim=True)
    each = -share.masked_fill(~same, 0).sum(1)[mated] / same.sum(1)[mated]
    return each.mean()
