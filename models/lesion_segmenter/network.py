"""The network: a two-dimensional U-Net (Ronneberger 2015; MONAI's) that sees a slice and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from monai.networks.nets.unet import UNet
from torch import Tensor, nn

GROUPS = 4
SEEN = (-1, 0, 1)  # slices that are seen at once, by their distance


@dataclass(frozen=True, slots=True)
class SegmenterConfig:
    """`side`: pixels of a slice, `widths` of the levels, each half as fine as the one before. Raises ValueError."""

    sequences: int
    side: int = 80
    widths: tuple[float, ...] = (24, 32, 48, 64)

    def __post_init__(self) -> None:
        if self.sequences < 1 or len(self.widths) < 2:
            raise ValueError("a segmenter takes a sequence and more, and two levels and more")
        if any(width < GROUPS or width % GROUPS for width in self.widths):
            raise ValueError(f"widths are multiples of {GROUPS}")
        if self.side < 1 or self.side % 2 ** (len(self.widths) - 1):
            raise ValueError("the side is halved at each level: a multiple of 2 to the number of levels less one")


class LesionUNet(nn.Module):
    """(b, sequences * 3, side, side) -> logits (b, 1, side, side). Sequences of the slice below come first."""

    def __init__(self, config: SegmenterConfig) -> None:
        super().__init__()
        self.config = config
        self.unet = UNet(
            2,
            config.sequences * len(SEEN),
            1,
            channels=[int(one) for one in config.widths],
            strides=[2] * (len(config.widths) - 1),
            norm=("group", {"num_groups": GROUPS}),
        )

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.unet(x)
        return made


def with_neighbours(slices: Tensor) -> Tensor:
    """(n, s, side, side) of one study, feet to head -> (n, 3 s, side, side); end slices are their own neighbour."""
    index = torch.arange(len(slices))
    return torch.cat([slices[(index + step).clamp(0, len(slices) - 1)] for step in SEEN], 1)
