"""Two configurations of the same network: the paper's size, and one that two CPU cores can train."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReidConfig:
    """`side` pixels that images are brought to, in `patch` pixels a place; grey is repeated to `channels`.

    `entries` of a codebook of low-rank adapters of `rank`, which the picture itself mixes: films of one person from two
    machines then go through two networks. 0 entries leave them out. `dimensions` of the identity. `around`: each pixel
    is set against a square of so many pixels a side, for photographs of which light and frame fill most; 0: as it is.
    """

    side: int
    patch: int
    channels: int
    width: int
    depth: int
    heads: int
    dimensions: int
    entries: int
    rank: int
    around: int = 0

    def __post_init__(self) -> None:
        if self.side % self.patch or self.width % self.heads:
            raise ValueError("the side is a multiple of the patch, the width one of the heads")
        if min(self.side, self.patch, self.channels, self.width, self.depth, self.heads, self.dimensions) < 1:
            raise ValueError("sizes are positive")
        if self.entries < 0 or (self.entries and self.rank < 1):
            raise ValueError("a codebook has 0 entries or more, of rank 1 or more")
        if self.around and (self.around % 2 == 0 or not 3 <= self.around <= self.side):
            raise ValueError("surroundings have an odd number of pixels a side, from 3 up to the picture's")

    @property
    def grid(self) -> int:
        """Places along a side of the similarity map."""
        return self.side // self.patch


# The paper gives no sizes. These are of its authors' published re-identification network (MaMI, CVPR 2025): ViT-B/16
# with a codebook of 16 low-rank adapters of rank 8; depth-wise convolutions between its blocks are left out.
PAPER = ReidConfig(side=224, patch=16, channels=3, width=768, depth=12, heads=12, dimensions=768, entries=16, rank=8)
SMALL = ReidConfig(side=64, patch=8, channels=1, width=96, depth=4, heads=4, dimensions=64, entries=4, rank=4)
