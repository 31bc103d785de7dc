"""What the adjustable anonymiser is compared with: each takes films (n, 1, side, side), 0 to 1, and a level.

Pixel-Blur (Gaussian), pixel noise, and an MAE: a transformer of the size of our re-identification network that fills
patches masked at random (He et al. 2022), trained on the same people for as many steps as our joint stage.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.reid_encoder import SMALL, VisionTransformer
from models.train.reid_material import Material
from models.train.stages import Stage, run_stage
from models.train.trained import Tick

PATCH = SMALL.patch
BLURS = (1.0, 2.0, 4.0, 8.0, 16.0, 40.0)
NOISES = (0.1, 0.3, 0.6, 1.2, 2.4, 5.0)
RATIOS = (0.05, 0.3, 0.6, 0.8, 0.92, 0.97)


def blurred(x: Tensor, pixels: float) -> Tensor:
    """By a Gaussian of that standard deviation, the edge repeated."""
    reach = min(int(3 * pixels), x.shape[-1] - 1)
    weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1) / pixels) ** 2)
    weights = (weights / weights.sum())[None, None]
    wide = functional.pad(x, (reach,) * 4, mode="replicate")
    return functional.conv2d(functional.conv2d(wide, weights[..., None]), weights[:, :, None])


def noised(x: Tensor, spread: float, seed: int) -> Tensor:
    """With white noise, clipped to 0 to 1."""
    generator = torch.Generator().manual_seed(seed)
    return (x + spread * torch.randn(x.shape, generator=generator)).clamp(0, 1)


class Mae(nn.Module):
    """(b, 1, side, side) and a mask of patches (b, grid, grid), True where hidden -> the hidden patches filled."""

    def __init__(self, width: int = SMALL.width, depth: int = SMALL.depth) -> None:
        super().__init__()
        s = SMALL
        self.vit = VisionTransformer(side=s.side, patch=s.patch, channels=2, width=width, depth=depth, heads=s.heads)
        self.out = nn.Linear(width, s.patch**2)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        mask = hidden.repeat_interleave(PATCH, 1).repeat_interleave(PATCH, 2)[:, None]
        left = torch.where(mask, torch.zeros_like(x), x)
        tokens = self.out(self.vit(torch.cat([left, mask.to(x)], 1))[:, 1:])
        grid = SMALL.grid
        patches = tokens.reshape(len(x), grid, grid, PATCH, PATCH).permute(0, 1, 3, 2, 4).reshape(x.shape)
        return torch.where(mask, patches, left)


def random_patches(count: int, ratio: float, generator: torch.Generator) -> Tensor:
    """(count, grid, grid), True for `ratio` of the patches of each."""
    places = SMALL.grid**2
    order = torch.rand(count, places, generator=generator).argsort(1).argsort(1)
    return (order < round(ratio * places)).reshape(count, SMALL.grid, SMALL.grid)


def trained_mae(fitted: Material, held: Material, steps: int, batch: int, checkpoint: Path, tick: Tick) -> Mae:
    """Resumed from its checkpoint."""
    torch.manual_seed(50)
    network = Mae()

    def loss_of(material: Material) -> object:
        def loss(net: nn.Module, rows: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
            x = material.x[rows].float()
            ratio = float(0.1 + 0.8 * torch.rand(1, generator=generator))
            hidden = random_patches(len(x), ratio, generator)
            made = net(x, hidden)
            return functional.mse_loss(made, x) * hidden.numel() / max(int(hidden.sum()), 1)

        return loss

    def held_loss(net: nn.Module) -> float:
        return float(loss_of(held)(net, torch.arange(len(held)), torch.Generator().manual_seed(7), 0))  # type: ignore[operator]

    rows = torch.arange(len(fitted))
    average = max(1 - 20 / max(steps, 1), 0.0)
    every = max(steps // 5, 1)
    stage = Stage("mae", steps, rows, loss_of(fitted), held_loss, batch, 1e-3, average, every, 8, 0)  # type: ignore[arg-type]
    run_stage(network, stage, checkpoint, tick)
    return network.requires_grad_(requires_grad=False)


@torch.no_grad()
def filled(mae: Mae, x: Tensor, ratio: float) -> Tensor:
    """With that share of patches hidden at random and filled again."""
    generator = torch.Generator().manual_seed(int(1000 * ratio))
    made = [mae(some, random_patches(len(some), ratio, generator)) for some in torch.split(x, 48)]
    return torch.cat(made).clamp(0, 1)
