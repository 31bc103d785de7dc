"""A vision transformer under the names of DINO, MAE and RETFound, so that published weights fit (facts: ViT-L/16 of
RETFound has 294 tensors); with an optional codebook of low-rank adapters, mixed by each picture for itself.

The attackers have a transformer of their own: an anonymiser shares no code with what judges it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6  # of every LayerNorm, as its authors trained it


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x_bnc: Tensor) -> Tensor:
        b, n, c = x_bnc.shape
        q, k, v = self.qkv(x_bnc).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(attended.transpose(1, 2).reshape(b, n, c))
        return out


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc2(functional.gelu(self.fc1(x)))
        return out


class _Adapters(nn.Module):
    """A codebook of matrices B A of low rank; begins as nothing, since every B is 0."""

    def __init__(self, width: int, entries: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(entries, rank, width) * width**-0.5)
        self.up = nn.Parameter(torch.zeros(entries, width, rank))

    def forward(self, x_bnc: Tensor, mix_be: Tensor) -> Tensor:
        down, up = (torch.einsum("be,eij->bij", mix_be, one) for one in (self.down, self.up))
        return x_bnc @ down.transpose(1, 2) @ up.transpose(1, 2)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, entries: int, rank: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=EPSILON)
        self.attn = _Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=EPSILON)
        self.mlp = _Mlp(width)
        self.adapters = _Adapters(width, entries, rank) if entries else None

    def forward(self, x: Tensor, mix_be: Tensor | None) -> Tensor:
        x = x + self.attn(self.norm1(x))
        inner = self.norm2(x)
        out: Tensor = x + self.mlp(inner)
        if self.adapters is not None and mix_be is not None:
            out = out + self.adapters(inner, mix_be)
        return out


class _PatchEmbed(nn.Module):
    def __init__(self, patch: int, channels: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.proj(x)
        return out


class VisionTransformer(nn.Module):
    """(B, channels, side, side) -> tokens (B, 1 + patches, width), the class token first, after the last norm."""

    def __init__(
        self,
        *,
        side: int,
        patch: int,
        channels: int,
        width: int,
        depth: int,
        heads: int,
        entries: int = 0,
        rank: int = 0,
    ) -> None:
        super().__init__()
        self.side, self.grid = side, side // patch
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + self.grid**2, width))
        self.patch_embed = _PatchEmbed(patch, channels, width)
        self.mix = nn.Linear(2 * width, entries) if entries else None
        self.blocks = nn.ModuleList(_Block(width, heads, entries, rank) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=EPSILON)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def tokens(self, x_bchw: Tensor) -> Tensor:
        """As they leave the last block, before `norm`. Raises ValueError for another size."""
        if x_bchw.shape[-2:] != (self.side, self.side):
            raise ValueError(f"images are {self.side} x {self.side}, not {tuple(x_bchw.shape[-2:])}")
        patches = self.patch_embed(x_bchw).flatten(2).transpose(1, 2)
        mix = None
        if self.mix is not None:  # how the picture was taken: mean and spread over its places
            looks = torch.cat([patches.mean(1), patches.std(1)], 1)
            mix = self.mix(looks).softmax(1)
        x = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x, mix)
        return x

    def forward(self, x_bchw: Tensor) -> Tensor:
        out: Tensor = self.norm(self.tokens(x_bchw))
        return out
