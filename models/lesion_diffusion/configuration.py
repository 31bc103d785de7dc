"""The paper's U-Net and a small one, of the same code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class UNetConfig:
    """`latent` channels of the background; `widths` of the three scales and the bottom.

    `classes` of lesions; one more stands for "not told" (guidance needs it). `neighbour`: the latent of the slice below
    is an input as well, so that slices of a volume fit together. `prediction`: what the network estimates, the noise
    (the paper, eq. 18) or the velocity (Salimans and Ho 2022), or the straight flow from noise to latent.
    """

    latent: int
    widths: tuple[int, int, int, int]
    classes: int
    embedded: int
    heads: int
    norm: Literal["batch", "group"]
    activation: Literal["leaky_relu", "silu"]
    prediction: Literal["epsilon", "v_prediction", "flow"]
    neighbour: bool

    def __post_init__(self) -> None:
        if any(width % 8 or width % self.heads for width in self.widths) or self.embedded % 2:
            raise ValueError("widths are multiples of 8 and of the heads, embedded is even")


PAPER = UNetConfig(
    latent=16,
    widths=(128, 256, 256, 512),
    classes=2,
    embedded=256,
    heads=4,
    norm="batch",
    activation="leaky_relu",
    prediction="epsilon",
    neighbour=False,
)
SMALL = UNetConfig(
    latent=16,
    widths=(64, 96, 128, 128),
    classes=3,
    embedded=128,
    heads=4,
    norm="group",
    activation="silu",
    prediction="v_prediction",
    neighbour=True,
)
