"""The network of MaMI: CLIP's ViT-B/16, with adapters, and low-rank layers that the image itself generates.

Written from the shapes and the order of operations of its authors' inference code, for one image at a time (a series of
one frame): the adapters' convolution over frames then sees its middle tap only.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, PATCH, GRID = 768, 12, 12, 16, 14
ADAPTER, CODES, SLOPE = 384, 16, 0.1
ATTENTION_GROUPS, MLP_GROUPS = 16, 32


class _Grouped(nn.Module):
    """A linear layer of `groups` independent blocks: weight (groups, in / groups, out / groups)."""

    def __init__(self, inside: int, outside: int, groups: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(groups, inside // groups, outside // groups))
        self.bias = nn.Parameter(torch.zeros(groups, outside // groups))

    def forward(self, x_bc: Tensor) -> Tensor:
        parts = x_bc.view(len(x_bc), self.weight.shape[0], -1)
        return (torch.einsum("bgi,gio->bgo", parts, self.weight) + self.bias).flatten(1)


class _Generator(nn.Module):
    """The image's context (B, 768) -> the numbers of a low-rank layer (B, outside)."""

    def __init__(self, outside: int, groups: int) -> None:
        super().__init__()
        self.l11 = _Grouped(WIDTH, WIDTH // 2, 1)
        self.l21 = _Grouped(WIDTH // 2, WIDTH // 4, 1)
        self.l31 = _Grouped(WIDTH // 4, outside, groups)

    def forward(self, context_bc: Tensor) -> Tensor:
        x = self.l21(functional.leaky_relu(self.l11(context_bc), SLOPE))
        return cast("Tensor", self.l31(functional.leaky_relu(x, SLOPE)))


class _Adapter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, ADAPTER)
        self.conv = nn.Conv3d(ADAPTER, ADAPTER, (3, 1, 1), padding=(1, 0, 0), groups=ADAPTER)
        self.fc2 = nn.Linear(ADAPTER, WIDTH)

    def forward(self, x_blc: Tensor) -> Tensor:
        """Adds to the patches, not to the class token."""
        patches = self.fc1(x_blc[:, 1:])
        maps = self.conv(patches.transpose(1, 2).unflatten(2, (1, GRID, GRID)))
        return torch.cat([x_blc[:, :1], x_blc[:, 1:] + self.fc2(maps.flatten(2).transpose(1, 2))], 1)


class _Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)


class _Block(nn.Module):
    """Its `c_proj` has low-rank layers in the file as well, which the authors' forward does not use."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank
        self.attn = nn.MultiheadAttention(WIDTH, HEADS)
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.mlp = _Mlp()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.adapter_pre_attn = _Adapter()
        sizes = {f"{name}_{side}": WIDTH for name in ("q", "k", "v") for side in "ab"}
        sizes |= {"c_fc_a": 4 * WIDTH, "c_fc_b": WIDTH, "c_proj_a": WIDTH, "c_proj_b": 4 * WIDTH}
        for name, size in sizes.items():
            groups = MLP_GROUPS if name.startswith("c_") else ATTENTION_GROUPS
            self.add_module(f"lora_mlp_{name}", _Generator(rank * size, groups))
            kind, side = name.rsplit("_", 1)
            self.register_parameter(f"linear_{side}_{kind}_static", nn.Parameter(torch.zeros(1, rank, size)))

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        x = self.adapter_pre_attn(x)
        x = x + self._attention(self.ln_1(x), context)
        return x + self._feed(self.ln_2(x), context)

    def _matrix(self, name: str, context: Tensor) -> Tensor:
        """(B, rank, size): generated from the image, plus a fixed part."""
        kind, side = name.rsplit("_", 1)
        made = self.get_submodule(f"lora_mlp_{name}")(context).unflatten(1, (self.rank, -1))
        return cast("Tensor", made + self.get_parameter(f"linear_{side}_{kind}_static"))

    def _low_rank(self, x: Tensor, inner: str, outer: str, context: Tensor) -> Tensor:
        """(B, L, in) through `inner` (B, rank, in) and `outer` (B, rank, out) -> (B, L, out)."""
        return x @ self._matrix(inner, context).transpose(1, 2) @ self._matrix(outer, context)

    def _attention(self, x: Tensor, context: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        qkv = functional.linear(x, self.attn.in_proj_weight, self.attn.in_proj_bias)
        qkv = qkv + torch.cat([self._low_rank(x, f"{one}_a", f"{one}_b", context) for one in ("q", "k", "v")], -1)
        q, k, v = qkv.view(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return cast("Tensor", self.attn.out_proj(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH)))

    def _feed(self, x: Tensor, context: Tensor) -> Tensor:
        inner = self.mlp.c_fc(x) + self._low_rank(x, "c_fc_b", "c_fc_a", context)
        return cast("Tensor", self.mlp.c_proj(inner * torch.sigmoid(1.702 * inner)))  # CLIP's QuickGELU


class _Transformer(nn.Module):
    def __init__(self, rank: int) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(_Block(rank) for _ in range(LAYERS))


class MaMI(nn.Module):
    """(B, 3, 224, 224) -> the global embedding (B, 768) and patch features (B, 768, 14, 14), in different spaces."""

    def __init__(self, lora_rank: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTH, PATCH, PATCH, bias=False)
        self.router_spatial_transform = nn.Sequential(
            nn.Conv2d(WIDTH, WIDTH, 1), nn.LeakyReLU(SLOPE), nn.Conv2d(WIDTH, WIDTH, 1)
        )
        self.router_MLP = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(SLOPE), nn.Linear(WIDTH, CODES))
        self.ft_comp_MLP = nn.Sequential(
            nn.LeakyReLU(SLOPE), nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(SLOPE), nn.Linear(WIDTH, WIDTH)
        )
        self.knowledge_pool = nn.Parameter(torch.zeros(1, CODES, WIDTH // CODES))
        self.class_embedding = nn.Parameter(torch.zeros(WIDTH))
        self.positional_embedding = nn.Parameter(torch.zeros(GRID * GRID + 1, WIDTH))
        self.ln_pre = nn.LayerNorm(WIDTH)
        self.transformer = _Transformer(lora_rank)
        self.last_mlp = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(SLOPE), nn.Linear(WIDTH, WIDTH))

    def forward(self, x_b3hw: Tensor) -> tuple[Tensor, Tensor]:
        maps = self.conv1(x_b3hw)
        root = self.router_spatial_transform(maps).mean((2, 3))
        codes = self.router_MLP(root).softmax(-1)  # which of the 16 codes this image is made of
        context = (self.knowledge_pool * codes[:, :, None]).flatten(1)
        patches = maps.flatten(2).transpose(1, 2) + self.ft_comp_MLP(root)[:, None]
        x = torch.cat([self.class_embedding.expand(len(patches), 1, -1), patches], 1)
        x = self.ln_pre(x + self.positional_embedding)
        for block in self.transformer.resblocks:
            x = block(x, context)
        local = x[:, 1:]
        return self.last_mlp(local.mean(1)), local.transpose(1, 2).unflatten(2, (GRID, GRID))
