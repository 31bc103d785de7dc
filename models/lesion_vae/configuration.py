"""Two configurations of the same code: the paper's, and a small one that two CPU cores can train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SHRINKS = 8  # pixels of a slice to a side of the latent's


@dataclass(frozen=True, slots=True)
class VaeConfig:
    """`sequences`: channels of a slice (T1, T1c, T2, FLAIR of one study share one latent, so they get one anatomy).

    `side` pixels are padded to a multiple of 8 and cropped back. `widths` of the scales; between them strides of 2.
    `patch` pixels a side become channels before the first scale: 1 with four scales (the paper) or 2 with three, so
    the latent is an eighth either way, and the second spares the scale that costs most. `latent` channels of mean, as
    many again of log-variance (paper: 16 + 16 at 30 x 30). `norm: batch` is literal; `group` departs from the paper
    because running statistics of a batch carry one site's people into another's pictures, and DP-SGD refuses them.
    """

    sequences: int
    side: int
    widths: tuple[int, ...]
    latent: int
    norm: Literal["batch", "group"]
    activation: Literal["leaky_relu", "silu"]
    heads: int
    blocks: int  # residual blocks at each scale
    patch: int = 1

    def __post_init__(self) -> None:
        if any(width % 8 for width in self.widths) or self.widths[-1] % self.heads:
            raise ValueError("widths are multiples of 8, the last one also of the heads")
        if min(self.sequences, self.side, self.latent, self.blocks) < 1:
            raise ValueError("sequences, side, latent and blocks are positive")
        if self.patch * 2 ** (len(self.widths) - 1) != SHRINKS:
            raise ValueError(f"patch and the strides between widths make the latent 1/{SHRINKS} of the side")

    @property
    def padded(self) -> int:
        """Pixels of a side that the strides divide."""
        return -(-self.side // SHRINKS) * SHRINKS

    @property
    def latent_side(self) -> int:
        return self.padded // SHRINKS


# Tables 1 and 2 of the paper, which give its widths, are missing from what is published; these are ours.
PAPER = VaeConfig(
    sequences=1,
    side=240,
    widths=(64, 128, 256, 256),
    latent=16,
    norm="batch",
    activation="leaky_relu",
    heads=4,
    blocks=2,
)
SMALL = VaeConfig(
    sequences=4,
    side=80,
    widths=(32, 64, 96),
    latent=16,
    norm="group",
    activation="silu",
    heads=4,
    blocks=1,
    patch=2,
)
