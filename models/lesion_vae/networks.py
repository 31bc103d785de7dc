"""Two autoencoders and the joint decoder D3 (paper section 4.4.1); the sequences of a study are channels of a slice."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.lesion_vae.blocks import Attention, Grow, ResidualBlock, Shrink, activation, norm
from models.lesion_vae.configuration import VaeConfig

LOG_VARIANCE = (-20.0, 10.0)  # kept finite, as in latent diffusion


@dataclass(frozen=True, slots=True)
class Posterior:
    """q(z|x): mean and log-variance, each (b, latent, h/8, w/8)."""

    mean: Tensor
    log_variance: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        """The reparameterised draw; `noise` is standard normal of the same shape."""
        return self.mean + (0.5 * self.log_variance).exp() * noise


def residual(config: VaeConfig, into: int, out: int) -> ResidualBlock:
    """A residual block in the configuration's norm and activation."""
    return ResidualBlock(into, out, kind=config.norm, act=config.activation)


class Encoder(nn.Module):
    """(b, sequences, side, side), 0 to 1 -> Posterior."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.config = config
        widths = config.widths
        self.begin = nn.Conv2d(config.sequences * config.patch**2, widths[0], 3, padding=1)
        layers: list[nn.Module] = []
        for level, width in enumerate(widths):
            before = widths[max(level - 1, 0)]
            layers += [residual(config, before if not i else width, width) for i in range(config.blocks)]
            if level < len(widths) - 1:
                layers.append(Shrink(width))
        last = widths[-1]
        layers += [Attention(last, config.heads, kind=config.norm), residual(config, last, last)]
        self.body = nn.Sequential(*layers)
        end = nn.Conv2d(last, 2 * config.latent, 3, padding=1)
        self.end = nn.Sequential(norm(config.norm, last), activation(config.activation), end)

    def forward(self, x: Tensor) -> Posterior:
        patches = functional.pixel_unshuffle(pad(x, self.config), self.config.patch)
        mean, log_variance = self.end(self.body(self.begin(patches))).chunk(2, 1)
        return Posterior(mean, log_variance.clamp(*LOG_VARIANCE))


class Decoder(nn.Module):
    """(b, channels, h/8, w/8) -> (b, sequences, side, side). D3 is one with the channels of both latents."""

    def __init__(self, config: VaeConfig, channels: int) -> None:
        super().__init__()
        self.config = config
        widths = config.widths[::-1]
        self.begin = nn.Conv2d(channels, widths[0], 3, padding=1)
        layers: list[nn.Module] = [
            residual(config, widths[0], widths[0]),
            Attention(widths[0], config.heads, kind=config.norm),
        ]
        for level, width in enumerate(widths):
            before = widths[max(level - 1, 0)]
            layers += [residual(config, before if not i else width, width) for i in range(config.blocks)]
            if level < len(widths) - 1:
                layers.append(Grow(width))
        self.body = nn.Sequential(*layers)
        end = nn.Conv2d(widths[-1], config.sequences * config.patch**2, 3, padding=1)
        self.end = nn.Sequential(norm(config.norm, widths[-1]), activation(config.activation), end)

    def forward(self, z: Tensor) -> Tensor:
        return crop(functional.pixel_shuffle(self.end(self.body(self.begin(z))), self.config.patch), self.config)


class LesionVae(nn.Module):
    """VAE of the background, VAE of the lesion, and the joint decoder that hides the border between them."""

    latent_mean: Tensor
    latent_std: Tensor

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.config = config
        self.background_encoder, self.lesion_encoder = Encoder(config), Encoder(config)
        self.background_decoder = Decoder(config, config.latent)
        self.lesion_decoder = Decoder(config, config.latent)
        self.joint_decoder = Decoder(config, 2 * config.latent)
        # Diffusion wants latents of unit spread; measured once on training data, part of the weights.
        self.register_buffer("latent_mean", torch.zeros(1, config.latent, 1, 1))
        self.register_buffer("latent_std", torch.ones(1, config.latent, 1, 1))

    @staticmethod
    def split(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Background and lesion of (b, s, h, w) by a mask (b, 1, h, w): each is 0 where the other is."""
        inside = mask.to(x.dtype)
        return x * (1 - inside), x * inside

    def join(self, background: Tensor, lesion: Tensor) -> Tensor:
        """D3: latents -> whole slices (paper eq. 12)."""
        out: Tensor = self.joint_decoder(torch.cat([lesion, background], 1))
        return out

    def scaled(self, background: Tensor) -> Tensor:
        """A background latent as diffusion sees it."""
        out: Tensor = (background - self.latent_mean) / self.latent_std
        return out

    def unscaled(self, background: Tensor) -> Tensor:
        out: Tensor = background * self.latent_std + self.latent_mean
        return out


def pad(x: Tensor, config: VaeConfig) -> Tensor:
    """To a side that the strides divide, evenly, with zeros. Raises ValueError for another size than `side`."""
    if x.shape[-2:] != (config.side, config.side):
        raise ValueError(f"slices are {config.side} x {config.side}, not {tuple(x.shape[-2:])}")
    extra = config.padded - config.side
    before = extra // 2
    return functional.pad(x, (before, extra - before, before, extra - before))


def crop(x: Tensor, config: VaeConfig) -> Tensor:
    """The inverse of `pad`."""
    before = (config.padded - config.side) // 2
    return x[..., before : before + config.side, before : before + config.side]
