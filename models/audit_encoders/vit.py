"""The vision transformer of DINO, MAE (RETFound) and MGCA, under its authors' names (papers/facts.md 1.4).

MONAI's and torchvision's have other names, another LayerNorm epsilon, or no position for the class token.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x_bnc: Tensor) -> Tensor:
        batch, tokens, width = x_bnc.shape
        qkv = self.qkv(x_bnc).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))  # type: ignore[no-any-return]


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(functional.gelu(self.fc1(x)))  # type: ignore[no-any-return]


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=EPSILON)
        self.attn = _Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=EPSILON)
        self.mlp = _Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class _PatchEmbed(nn.Module):
    def __init__(self, patch: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x)  # type: ignore[no-any-return]


class VisionTransformer(nn.Module):
    """(B, 3, h, w) -> tokens (B, 1 + patches, width): the class token first. `side`: pixels it was trained at."""

    def __init__(self, patch: int, width: int, depth: int, heads: int, side: int = 224) -> None:
        super().__init__()
        self.grid = side // patch
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + self.grid**2, width))
        self.patch_embed = _PatchEmbed(patch, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=EPSILON)

    def tokens(self, x_b3hw: Tensor) -> Tensor:
        """As they leave the last block, before `norm`."""
        patches = self.patch_embed(x_b3hw)
        rows, columns = patches.shape[-2:]
        x = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches.flatten(2).transpose(1, 2)], 1)
        x = x + self.positions(rows, columns)
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, x_b3hw: Tensor) -> Tensor:
        """After `norm`."""
        return self.norm(self.tokens(x_b3hw))  # type: ignore[no-any-return]

    def positions(self, rows: int, columns: int) -> Tensor:
        """(1, 1 + rows * columns, width): bicubic for another grid than the trained one.

        DINO hands the scale with 0.1 added to the size, against rounding; the scale, not the size, decides where it
        samples, so the 0.1 is part of its features.
        """
        if rows == columns == self.grid:
            return self.pos_embed
        width = self.pos_embed.shape[-1]
        patches = self.pos_embed[:, 1:].view(1, self.grid, self.grid, width).permute(0, 3, 1, 2)
        scale = ((rows + 0.1) / self.grid, (columns + 0.1) / self.grid)
        patches = functional.interpolate(patches, scale_factor=scale, mode="bicubic")
        return torch.cat([self.pos_embed[:, :1], patches.permute(0, 2, 3, 1).reshape(1, -1, width)], 1)
