"""The paper's latent diffusion (Stable Diffusion's U-Net and autoencoder) and a small one, of the same code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Prediction = Literal["epsilon", "v_prediction", "flow"]


@dataclass(frozen=True, slots=True)
class ResynthesisConfig:
    """`side` pixels, `channels` of the autoencoder (grey is repeated, and averaged back; 3 take colour as it is),
    `latent` its latent's.

    `vae_widths`, `unet_widths` of their scales; `attention` says which of the U-Net's scales see the conditions.
    `heads` of its attention at each scale, `cross` channels of a condition's token. `semantic` channels of f̂_sem,
    `fused` those of fusion, with `fusion_heads`; `stride` of Feat-Net on the latent. `scaling` of latents: 0 is
    measured on training people. `spacing` of β and what the network estimates, as in `NoiseSchedule`.
    """

    side: int
    channels: int
    latent: int
    vae_widths: tuple[int, ...]
    vae_layers: int
    unet_widths: tuple[int, ...]
    unet_layers: int
    attention: tuple[bool, ...]
    heads: tuple[int, ...]
    linear: bool
    cross: int
    groups: int
    semantic: int
    fused: int
    fusion_heads: int
    stride: int
    scaling: float
    spacing: Literal["linear", "scaled_linear"]
    prediction: Prediction

    def __post_init__(self) -> None:
        if not len(self.unet_widths) == len(self.attention) == len(self.heads):
            raise ValueError("every scale of the U-Net has a width, heads, and attention or none")
        if self.side % self.factor or self.latent_side % 2 ** (len(self.unet_widths) - 1):
            raise ValueError("the side is divided by every stride of autoencoder and U-Net")
        if self.latent_side % self.stride or self.fused % self.fusion_heads or self.fused % 4:
            raise ValueError("Feat-Net's stride divides the latent, fusion's heads and 4 its channels")
        if any(width % self.groups for width in (*self.vae_widths, *self.unet_widths)):
            raise ValueError("widths are multiples of the groups of their norm")

    @property
    def factor(self) -> int:
        """Pixels of a side for each of the latent."""
        return int(2 ** (len(self.vae_widths) - 1))

    @property
    def latent_side(self) -> int:
        return self.side // self.factor

    @property
    def planes(self) -> int:
        """Channels into the U-Net: the noised latent, that of X_noID, and the share of each place that is blocked."""
        return 2 * self.latent + 1


# Stable Diffusion 1.x at 512 pixels, 2.x at the same size. The paper says "Stable Diffusion UNet" and no more.
PAPER = ResynthesisConfig(
    side=512,
    channels=3,
    latent=4,
    vae_widths=(128, 256, 512, 512),
    vae_layers=2,
    unet_widths=(320, 640, 1280, 1280),
    unet_layers=2,
    attention=(True, True, True, False),
    heads=(8, 8, 8, 8),
    linear=False,
    cross=768,
    groups=32,
    semantic=1024,
    fused=768,
    fusion_heads=8,
    stride=4,
    scaling=0.18215,
    spacing="scaled_linear",
    prediction="epsilon",
)
PAPER_SD2 = ResynthesisConfig(
    side=512,
    channels=3,
    latent=4,
    vae_widths=(128, 256, 512, 512),
    vae_layers=2,
    unet_widths=(320, 640, 1280, 1280),
    unet_layers=2,
    attention=(True, True, True, False),
    heads=(5, 10, 20, 20),
    linear=True,
    cross=1024,
    groups=32,
    semantic=1024,
    fused=1024,
    fusion_heads=8,
    stride=4,
    scaling=0.18215,
    spacing="scaled_linear",
    prediction="epsilon",
)
SMALL = ResynthesisConfig(
    side=64,
    channels=1,
    latent=8,
    vae_widths=(8, 16, 32, 48),
    vae_layers=1,
    unet_widths=(48, 96),
    unet_layers=1,
    attention=(True, True),
    heads=(4, 4),
    linear=True,
    cross=64,
    groups=8,
    semantic=64,
    fused=64,
    fusion_heads=4,
    stride=1,
    scaling=0.0,
    spacing="linear",
    prediction="flow",
)
