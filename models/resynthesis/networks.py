"""Autoencoder, Feat-Net, fusion and U-Net in one module; the U-Net and the autoencoder are diffusers'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.resynthesis.configuration import ResynthesisConfig
from models.resynthesis.fusion import FeatNet, Fusion
from models.resynthesis.schedule import NoiseSchedule


@dataclass(frozen=True, slots=True)
class Conditioned:
    """`tokens` (b, n, cross), `planes` (b, latent + 1, h, w): all that the U-Net hears of a picture."""

    tokens: Tensor
    planes: Tensor


class Resynthesis(nn.Module):
    """Never gets a picture, only X_noID, its mask and f̂_sem; `encode` of whole pictures is for training."""

    scale: Tensor
    shift: Tensor

    def __init__(self, config: ResynthesisConfig) -> None:
        super().__init__()
        self.config = config
        self.vae, self.unet = _vae(config), _unet(config)
        self.featnet = FeatNet(config.latent, config.fused, config.stride)
        self.fusion = Fusion(config.fused, config.semantic, config.cross, config.fusion_heads)
        # z = (mean of the posterior − shift) · scale has unit spread: Stable Diffusion's 0.18215, or measured.
        self.register_buffer("scale", torch.full((1, config.latent, 1, 1), config.scaling or 1.0))
        self.register_buffer("shift", torch.zeros(1, config.latent, 1, 1))

    @property
    def schedule(self) -> NoiseSchedule:
        return NoiseSchedule.of(self.config.prediction, self.config.spacing)

    def posterior(self, x_bchw: Tensor) -> Any:
        """q(z | x) of grey pictures, or of `channels`, 0 to 1; the autoencoder sees −1 to 1. Raises ValueError for
        another size.
        """
        side, channels = self.config.side, self.config.channels
        if x_bchw.shape[1:] not in ((1, side, side), (channels, side, side)):
            raise ValueError(f"pictures are 1 or {channels} x {side} x {side}, not {tuple(x_bchw.shape[1:])}")
        return self.vae.encode((2 * x_bchw - 1).expand(-1, channels, -1, -1)).latent_dist

    def measure(self, means: Tensor) -> None:
        """Sets shift and scale from posterior means of training people (n, latent, h, w)."""
        self.shift.copy_(means.mean((0, 2, 3), keepdim=True))
        self.scale.copy_(1 / means.std((0, 2, 3), keepdim=True).clamp(min=1e-4))

    def encode(self, x_bchw: Tensor) -> Tensor:
        """Scaled latents (b, latent, h, w): means, without a draw."""
        out: Tensor = (self.posterior(x_bchw).mean - self.shift) * self.scale
        return out

    def decode(self, z: Tensor, channels: int = 1) -> Tensor:
        """Scaled latents -> (b, channels, side, side), not clipped. One channel is the mean of all."""
        return self.shown(self.vae.decode(z / self.scale + self.shift).sample, channels)

    @staticmethod
    def shown(made: Tensor, channels: int) -> Tensor:
        """What the autoencoder gives, −1 to 1, as pictures of 0 to 1."""
        return (made if channels > 1 else made.mean(1, keepdim=True)) / 2 + 0.5

    def conditions(self, noid_bchw: Tensor, mask_b1hw: Tensor, semantics: Tensor) -> Conditioned:
        """X_noID, True where it was blocked, and f̂_sem (b, semantic, ...).

        Pixels under the mask are set to 0 once more: what the mask covers cannot come in here. Gradients flow into
        `semantics`, and not into the autoencoder.
        """
        hidden = mask_b1hw.to(noid_bchw)
        with torch.no_grad():
            latent = self.encode(torch.where(mask_b1hw, torch.zeros_like(noid_bchw), noid_bchw))
        size = (self.config.latent_side, self.config.latent_side)
        planes = torch.cat([latent, functional.adaptive_avg_pool2d(hidden, size)], 1)
        return Conditioned(self.fusion(self.featnet(planes), semantics), planes)

    def estimate(self, z: Tensor, step: Tensor, conditioned: Conditioned) -> Tensor:
        """What `config.prediction` says, of noised scaled latents at steps (b,)."""
        said: Tensor = self.unet(
            torch.cat([z, conditioned.planes], 1), step, encoder_hidden_states=conditioned.tokens
        ).sample
        return said

    def generator_parameters(self) -> list[nn.Parameter]:
        """Of what diffusion trains: all but the autoencoder."""
        return [one for name, one in self.named_parameters() if not name.startswith("vae.")]


def _vae(config: ResynthesisConfig) -> Any:
    from diffusers import AutoencoderKL

    kind: Any = AutoencoderKL
    scales = len(config.vae_widths)
    return kind(
        in_channels=config.channels,
        out_channels=config.channels,
        down_block_types=("DownEncoderBlock2D",) * scales,
        up_block_types=("UpDecoderBlock2D",) * scales,
        block_out_channels=config.vae_widths,
        layers_per_block=config.vae_layers,
        latent_channels=config.latent,
        norm_num_groups=config.groups,
        sample_size=config.side,
        scaling_factor=config.scaling or 1.0,
    )


def _unet(config: ResynthesisConfig) -> Any:
    from diffusers import UNet2DConditionModel

    kinds = [
        ("CrossAttnDownBlock2D", "CrossAttnUpBlock2D") if one else ("DownBlock2D", "UpBlock2D")
        for one in config.attention
    ]
    made: Any = UNet2DConditionModel
    return made(
        sample_size=config.latent_side,
        in_channels=config.planes,
        out_channels=config.latent,
        down_block_types=tuple(down for down, _ in kinds),
        up_block_types=tuple(up for _, up in kinds[::-1]),
        block_out_channels=config.unet_widths,
        layers_per_block=config.unet_layers,
        cross_attention_dim=config.cross,
        attention_head_dim=config.heads,  # diffusers' name; it is the number of heads
        use_linear_projection=config.linear,
        norm_num_groups=config.groups,
    )
