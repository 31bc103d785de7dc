"""Features -> 32 integer codes a place -> the mask -> what is not the identity's -> features again (paper, stage 2).

Q = round(E(f)),  M = 1[m(Q) > 0],  Q_id = M ⊗ Q,  Q_sem = (1 − M) ⊗ Q,  f̂_sem = D(Q_sem)
In training Q is E(f) + U(−½, ½), and M a straight-through draw. Nothing but Q_sem may leave for re-synthesis.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.mdl_decoupling.codelength import GaussianMixtureCodelength
from models.mdl_decoupling.configuration import DecouplingConfig
from models.mdl_decoupling.partition import gumbel_sigmoid, reversed_gradient

POOLED = 4  # places a side that the identity head looks at


@dataclass(frozen=True, slots=True)
class Coded:
    """Each (b, codes, h, w): `q`; `mask`, 1 where a code is the identity's; `bits` of every code, masked or not."""

    q: Tensor
    mask: Tensor
    bits: Tensor

    @property
    def q_id(self) -> Tensor:
        return self.mask * self.q

    @property
    def q_sem(self) -> Tensor:
        return (1 - self.mask) * self.q


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.GroupNorm(8, width),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.GroupNorm(8, width),
            nn.SiLU(),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.body(x)
        return out


class Decoupler(nn.Module):
    """Feature maps (b, features, h, w) of any size, as the frozen network gives them."""

    feature_mean: Tensor
    feature_std: Tensor

    def __init__(self, config: DecouplingConfig) -> None:
        super().__init__()
        self.config = config
        c = config
        # Measured once on training people, part of the weights: one λ then fits every foundation model.
        self.register_buffer("feature_mean", torch.zeros(1, c.features, 1, 1))
        self.register_buffer("feature_std", torch.ones(1, c.features, 1, 1))
        self.encoder = nn.Sequential(
            nn.Conv2d(c.features, c.width, 1), _Residual(c.width), _Residual(c.width), nn.Conv2d(c.width, c.codes, 1)
        )
        self.decoder = nn.Sequential(
            nn.Conv2d(c.codes, c.width, 1), _Residual(c.width), _Residual(c.width), nn.Conv2d(c.width, c.features, 1)
        )
        self.codelength = GaussianMixtureCodelength(c.codes, c.components)
        self.partition = nn.Sequential(
            nn.Conv2d(c.codes, c.width, 3, padding=1), nn.SiLU(), nn.Conv2d(c.width, c.codes, 1)
        )
        self.identity, self.leak = _named(c), _named(c)

    def measure(self, features: Tensor) -> None:
        """Mean and spread of every channel, of the training people's maps (n, features, h, w)."""
        self.feature_mean.copy_(features.mean((0, 2, 3), keepdim=True))
        self.feature_std.copy_(features.std((0, 2, 3), keepdim=True).clamp(min=1e-4))

    def standardised(self, features: Tensor) -> Tensor:
        return (features - self.feature_mean) / self.feature_std

    def features_of(self, standardised: Tensor) -> Tensor:
        """Features in the network's own scale again."""
        return standardised * self.feature_std + self.feature_mean

    def code(self, features: Tensor) -> Coded:
        """As it is used: rounded, the mask without noise. The same input gives the same code."""
        q = self.encoder(self.standardised(features)).float().round()
        mask = (self.partition(q) > 0).to(q)
        return Coded(q, mask, self.codelength(q))

    def noisy_code(self, features: Tensor, temperature: float, generator: torch.Generator) -> Coded:
        """As it is trained: uniform noise for rounding, a drawn mask. All draws are from the (CPU) generator."""
        y: Tensor = self.encoder(self.standardised(features)).float()  # bfloat16 has no fractions above 128
        noise, uniform = (torch.rand(y.shape, generator=generator).to(y) for _ in range(2))
        q = y + noise - 0.5
        return Coded(q, gumbel_sigmoid(self.partition(q), temperature, uniform), self.codelength(q))

    def decode(self, q: Tensor) -> Tensor:
        """Standardised features (b, features, h, w) from codes."""
        out: Tensor = self.decoder(q)
        return out

    def semantics(self, features: Tensor) -> Tensor:
        """f̂_sem: standardised features without the identity's codes."""
        return self.decode(self.code(features).q_sem)

    def identity_of(self, q_id: Tensor) -> Tensor:
        """(b, identity) of length 1, from the identity's codes alone."""
        return functional.normalize(self.identity(q_id), dim=1)

    def leak_of(self, q_sem: Tensor) -> Tensor:
        """(b, identity) of length 1: what an opponent, trained along, makes of the semantic codes."""
        return functional.normalize(self.leak(reversed_gradient(q_sem)), dim=1)


def _named(c: DecouplingConfig) -> nn.Sequential:
    """Codes -> an identity, of POOLED x POOLED places."""
    return nn.Sequential(
        nn.Conv2d(c.codes, c.width, 1),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(POOLED),
        nn.Flatten(),
        nn.Linear(c.width * POOLED**2, c.identity),
    )
