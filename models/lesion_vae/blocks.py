"""Building blocks of both networks: residual block, attention over places, strided and nearest resizing."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUPS = 8
SLOPE = 0.2  # of LeakyReLU


def norm(kind: Literal["batch", "group"], width: int) -> nn.Module:
    """Normalisation over a batch (the paper) or over groups of channels of one image."""
    return nn.BatchNorm2d(width) if kind == "batch" else nn.GroupNorm(min(GROUPS, width), width)


def activation(kind: Literal["leaky_relu", "silu"]) -> nn.Module:
    return nn.LeakyReLU(SLOPE) if kind == "leaky_relu" else nn.SiLU()


class ResidualBlock(nn.Module):
    """norm, activation, convolution, twice; `embedded` (b, e) is added between them where there is one."""

    def __init__(
        self,
        into: int,
        out: int,
        *,
        kind: Literal["batch", "group"],
        act: Literal["leaky_relu", "silu"],
        embedded: int = 0,
    ) -> None:
        super().__init__()
        self.first = nn.Sequential(norm(kind, into), activation(act), nn.Conv2d(into, out, 3, padding=1))
        self.second = nn.Sequential(norm(kind, out), activation(act), nn.Conv2d(out, out, 3, padding=1))
        self.embed = nn.Linear(embedded, out) if embedded else None
        self.skip = nn.Conv2d(into, out, 1) if into != out else nn.Identity()

    def forward(self, x: Tensor, embedded: Tensor | None = None) -> Tensor:
        y = self.first(x)
        if self.embed is not None and embedded is not None:
            y = y + self.embed(embedded)[:, :, None, None]
        out: Tensor = self.skip(x) + self.second(y)
        return out


class Attention(nn.Module):
    """Multi-head self-attention over all places of (b, c, h, w), residual."""

    def __init__(self, width: int, heads: int, *, kind: Literal["batch", "group"]) -> None:
        super().__init__()
        self.norm = norm(kind, width)
        self.heads = heads
        self.qkv = nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        parts = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).transpose(-1, -2)
        attended = functional.scaled_dot_product_attention(parts[:, 0], parts[:, 1], parts[:, 2])
        out: Tensor = x + self.out(attended.transpose(-1, -2).reshape(b, c, h, w))
        return out


class Shrink(nn.Module):
    """A convolution with stride 2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x)
        return out


class Grow(nn.Module):
    """Nearest enlargement to `size` (twice, or what the skip has: 8 -> 15), then a convolution."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor, size: torch.Size | None = None) -> Tensor:
        wanted = size if size is not None else torch.Size((2 * x.shape[-2], 2 * x.shape[-1]))
        out: Tensor = self.conv(functional.interpolate(x, size=wanted, mode="nearest"))
        return out
