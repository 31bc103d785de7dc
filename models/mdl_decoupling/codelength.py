"""How many bits an integer code costs: its negative log likelihood under a learned mixture of Gaussians.

p(q) = Σ_k π_k [ Φ((q + ½ − μ_k) / σ_k) − Φ((q − ½ − μ_k) / σ_k) ],   bits = −log2 p
(K = 3 components for each channel; Cheng et al. 2020 for learned image compression.)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

SMALLEST_SIGMA = 0.11  # below it a density is narrower than what rounding can resolve
FLOOR = 1e-9  # of a likelihood: 29.9 bits at most for one code


class GaussianMixtureCodelength(nn.Module):
    """One mixture for each channel. The numbers that it holds are part of the card."""

    def __init__(self, channels: int, components: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(channels, components))
        spread = torch.linspace(-2, 2, components) if components > 1 else torch.zeros(1)
        self.means = nn.Parameter(spread.repeat(channels, 1))
        self.scales = nn.Parameter(torch.full((channels, components), 1.0))  # before softplus

    def sigmas(self) -> Tensor:
        """(channels, components), at least SMALLEST_SIGMA."""
        return functional.softplus(self.scales) + SMALLEST_SIGMA

    def likelihood(self, q_bchw: Tensor) -> Tensor:
        """(b, c, h, w): the mass of the unit interval around each q, whole or (in training) not; FLOOR at least."""
        shape = (1, self.means.shape[0], 1, 1, self.means.shape[1])
        weights = self.logits.softmax(1).reshape(shape)
        away = (q_bchw[..., None] - self.means.reshape(shape)).abs()  # the mass is even, and small tails stay exact
        sigma = self.sigmas().reshape(shape)
        mass = torch.special.ndtr((0.5 - away) / sigma) - torch.special.ndtr((-0.5 - away) / sigma)
        found: Tensor = (weights * mass).sum(-1).clamp(min=FLOOR)
        return found

    def forward(self, q_bchw: Tensor) -> Tensor:
        """(b, c, h, w): bits of each code."""
        return -self.likelihood(q_bchw).log2()
