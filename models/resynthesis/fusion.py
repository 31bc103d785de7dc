"""Two conditions become one row of tokens: what was left of the picture, and what was meant by it.

A = FeatNet(VAE(X_noID)),  B = W f̂_sem
A' = A + attention(A asks B),  B' = B + attention(B asks A),  tokens = P [A'; B']
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

LONGEST_PERIOD = 10_000.0


def positions(rows: int, columns: int, width: int) -> Tensor:
    """(rows · columns, width): sines and cosines of the relative place, so that maps of two sizes meet.

    A quarter of the channels each for sine and cosine of row and column; 0 to 100 along a side.
    """
    quarter = width // 4
    rates = LONGEST_PERIOD ** (-torch.arange(quarter) / quarter)
    y, x = (100 * (torch.arange(n) + 0.5) / n for n in (rows, columns))
    down = (y[:, None] * rates)[:, None].expand(rows, columns, quarter)
    right = (x[:, None] * rates)[None].expand(rows, columns, quarter)
    return torch.cat([down.sin(), down.cos(), right.sin(), right.cos()], 2).reshape(rows * columns, width)


class FeatNet(nn.Module):
    """Latent of X_noID and the share of each place that is blocked (b, latent + 1, h, w) -> (b, width, h/s, w/s)."""

    def __init__(self, latent: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(latent + 1, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, stride, stride),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x)
        return out


class _Cross(nn.Module):
    """Residual cross-attention: every token asks all of the other row."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ask_norm, self.told_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ask, self.told, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, a_bnc: Tensor, b_bmc: Tensor) -> Tensor:
        batch, n, c = a_bnc.shape

        def heads(x: Tensor) -> Tensor:
            return x.reshape(batch, -1, self.heads, c // self.heads).transpose(1, 2)

        key, value = self.told(self.told_norm(b_bmc)).chunk(2, 2)
        found = functional.scaled_dot_product_attention(heads(self.ask(self.ask_norm(a_bnc))), heads(key), heads(value))
        out: Tensor = a_bnc + self.out(found.transpose(1, 2).reshape(batch, n, c))
        return out


class Fusion(nn.Module):
    """(b, width, h, w) of Feat-Net and (b, semantic, h', w') -> tokens (b, h w + h' w', cross)."""

    def __init__(self, width: int, semantic: int, cross: int, heads: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(semantic, width, 1)
        self.left_asks, self.meant_asks = _Cross(width, heads), _Cross(width, heads)
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, cross))

    def forward(self, left: Tensor, semantics: Tensor) -> Tensor:
        a, b = _tokens(left), _tokens(self.enter(semantics))
        both = torch.cat([self.left_asks(a, b), self.meant_asks(b, a)], 1)
        out: Tensor = self.out(both)
        return out


def _tokens(x_bchw: Tensor) -> Tensor:
    rows, columns = x_bchw.shape[-2:]
    where = positions(rows, columns, x_bchw.shape[1]).to(x_bchw)
    return x_bchw.flatten(2).transpose(1, 2) + where
