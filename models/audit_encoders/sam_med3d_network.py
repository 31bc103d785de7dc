"""SAM-Med3D's image encoder, with the quirks of the published code that its weights were trained with (facts.md 1.5).

1. The relative-position bias of query (d, h, w) and key (kd, kh, kw) is bd[d,h,w,kw] + bh[d,h,kd,kw] + bw[d,h,kh,kw],
   where b?[d,h,w,k] is the query at (d, h, w) times that axis's table: the w axis of bh is read at kd, of bw at kh.
2. Windows (14) are larger than the grid (8): tokens are padded with zeros after the norm, so that a pad's query, key
   and value are the biases, and pads take part in attention unmasked.

What pads look at is thrown away, so only the 512 real queries are computed, against all 2744 keys. The bias still needs
the padded queries along w, because of 1.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6


class _Attention(nn.Module):
    """(B, n, n, n, C) -> the same, in one window of `window` >= n tokens a side."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        for axis in "dhw":
            table = nn.Parameter(torch.zeros(2 * window - 1, width // heads))
            self.register_parameter(f"rel_pos_{axis}", table)

    def forward(self, x: Tensor) -> Tensor:
        batch, n, *_ = x.shape
        m, window, channels = self.heads, self.window, x.shape[-1] // self.heads
        real = self.qkv(x).view(batch, n, n, n, 3, m, channels)
        # Quirk 2: everywhere else the input is 0, so that what is left of the projection is its bias.
        whole = self.qkv.bias.view(3, m, channels).expand(batch, window, window, window, 3, m, channels).clone()
        whole[:, :n, :n, :n] = real
        q = real[..., 0, :, :].permute(0, 4, 1, 2, 3, 5)  # b m d h w c
        q_row = whole[:, :n, :n, :, 0].permute(0, 4, 1, 2, 3, 5)  # w runs over the pads as well
        k, v = (whole[..., i, :, :].reshape(batch, window**3, m, channels).transpose(1, 2) for i in (1, 2))
        bias = self._bias(q, q_row).reshape(batch, m, n**3, window**3)
        mixed = functional.scaled_dot_product_attention(q.reshape(batch, m, n**3, channels), k, v, attn_mask=bias)
        return cast("Tensor", self.proj(mixed.transpose(1, 2).reshape(batch, n, n, n, m * channels)))

    def _bias(self, q: Tensor, q_row: Tensor) -> Tensor:
        """Quirk 1: (b, m, d, h, w, kd, kh, kw)."""
        n = q.shape[2]
        bd = torch.einsum("bmdhwc,dkc->bmdhwk", q, self._table("d")[:n])
        bh = torch.einsum("bmdhwc,hkc->bmdhwk", q_row, self._table("h")[:n])
        bw = torch.einsum("bmdhwc,wkc->bmdhwk", q_row, self._table("w"))
        by_key = bh[:, :, :, :, :, None, :] + bw[:, :, :, :, None, :, :]  # b m d h | kd kh kw
        return bd[:, :, :, :, :, None, None, :] + by_key[:, :, :, :, None]

    def _table(self, axis: str) -> Tensor:
        """(query, key, channels): the table's row for each distance."""
        place = torch.arange(self.window)
        return cast("Tensor", getattr(self, f"rel_pos_{axis}"))[place[:, None] - place[None] + self.window - 1]


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lin1 = nn.Linear(width, 4 * width)
        self.lin2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return cast("Tensor", self.lin2(functional.gelu(self.lin1(x))))


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=EPSILON)
        self.attn = _Attention(width, heads, window)
        self.norm2 = nn.LayerNorm(width, eps=EPSILON)
        self.mlp = _Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return cast("Tensor", x + self.mlp(self.norm2(x)))


class _ChannelNorm(nn.Module):
    """LayerNorm over the channels of (B, C, D, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        last = functional.layer_norm(x.movedim(1, -1), (x.shape[1],), self.weight, self.bias, EPSILON)
        return last.movedim(-1, 1)


class _PatchEmbed(nn.Module):
    def __init__(self, patch: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv3d(1, width, patch, patch)

    def forward(self, x: Tensor) -> Tensor:
        return cast("Tensor", self.proj(x)).movedim(1, -1)


class ImageEncoder3D(nn.Module):
    """(B, 1, 128, 128, 128) -> (B, 384, 8, 8, 8). The defaults are `vit_b_ori`; others are for tests."""

    def __init__(
        self,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        *,
        patch: int = 16,
        grid: int = 8,
        window: int = 14,
        whole_grid: tuple[int, ...] = (2, 5, 8, 11),
        outside: int = 384,
    ) -> None:
        super().__init__()
        self.patch_embed = _PatchEmbed(patch, width)
        self.pos_embed = nn.Parameter(torch.zeros(1, grid, grid, grid, width))
        self.blocks = nn.ModuleList(_Block(width, heads, grid if i in whole_grid else window) for i in range(depth))
        self.neck = nn.Sequential(
            nn.Conv3d(width, outside, 1, bias=False),
            _ChannelNorm(outside),
            nn.Conv3d(outside, outside, 3, padding=1, bias=False),
            _ChannelNorm(outside),
        )

    def tokens(self, x: Tensor) -> Tensor:
        """(B, 8, 8, 8, 768), before the neck."""
        x = self.patch_embed(x) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return x

    def to_map(self, tokens: Tensor) -> Tensor:
        """(B, 384, 8, 8, 8)."""
        return cast("Tensor", self.neck(tokens.movedim(-1, 1)))

    def forward(self, x: Tensor) -> Tensor:
        return self.to_map(self.tokens(x))
