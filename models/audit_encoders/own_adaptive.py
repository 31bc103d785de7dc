"""The encoder that an adaptive attacker fits: one way for originals, one for what an anonymiser made of them.

Both ways end in one space, so that a released scan is compared with originals. A scan does not say which it is: a
linear rule on its texture decides. Where the rule cannot tell the two apart, either way serves.

Each way is a network (`own_network`) beside a linear map of pixels and gradients. The linear map matters: a keyed
permutation or inversion of pixels blinds every network of convolutions, and leaves all linear relations as they were.

Parameters: `pixels` (films, eyes or brains), `side`, `width`, `shift`. Tensors, for WAY `original` and `released`:
`WAY.network.*`, `WAY.mean` (f,), `WAY.matrix` (f, k); `rule.mean` (t,) and
`rule.matrix` (t, 1), positive for what was released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.networks import choice, loaded, number
from models.audit_encoders.own_brains import CHANNELS as BRAIN_CHANNELS
from models.audit_encoders.own_brains import planes as brain_planes
from models.audit_encoders.own_eyes import CHANNELS as EYE_CHANNELS
from models.audit_encoders.own_eyes import eye
from models.audit_encoders.own_films import CHANNELS as FILM_CHANNELS
from models.audit_encoders.own_films import film
from models.audit_encoders.own_network import IdentityNetwork, Prepare, embed_planes, gradients_of, part, unit
from models.cards import Card, CardError

WAYS = ("original", "released")
PIXELS: dict[str, tuple[Prepare, int]] = {
    "films": (film, FILM_CHANNELS),
    "eyes": (eye, EYE_CHANNELS),
    "brains": (brain_planes, BRAIN_CHANNELS),
}
SCALES = 4  # of the texture


class TwoWays(nn.Module):
    """A network for originals and one for released scans, into one space."""

    def __init__(self, channels: int, width: int, dimensions: int) -> None:
        super().__init__()
        self.original = IdentityNetwork(channels, width, dimensions)
        self.released = IdentityNetwork(channels, width, dimensions)

    def forward(self, x_bvchw: Tensor, released_b: Tensor) -> Tensor:
        """(B, dimensions); each row by its own way."""
        ways = ((~released_b, self.original), (released_b, self.released))
        parts = [network(x_bvchw[rows]) for rows, network in ways if rows.any()]
        order = torch.cat([torch.nonzero(rows).flatten() for rows, _ in ways])
        return torch.cat(parts)[torch.argsort(order)]


def linear_features(planes_vchw: Tensor) -> Pixels:
    """(f,): all pixels and all gradients, each part of length 1."""
    return np.concatenate([unit(planes_vchw.flatten().numpy()), unit(gradients_of(planes_vchw))])


def texture(planes_vchw: Tensor) -> Pixels:
    """(t,): how rough each channel is at four scales, how skewed and heavy-tailed: not who, but how it was made.

    Roughness is log10 of the mean squared difference of neighbours over the variance.
    """
    x = planes_vchw.flatten(0, 1)[:, None].float()
    x = (x - x.mean((2, 3), keepdim=True)) / x.std((2, 3), keepdim=True).clamp_min(1e-6)
    found = [x.pow(3).mean((1, 2, 3)), x.pow(4).mean((1, 2, 3)).log10()]
    for _ in range(SCALES):
        down, right = x.diff(dim=2), x.diff(dim=3)
        found += [one.square().mean((1, 2, 3)).clamp_min(1e-6).log10() for one in (down, right)]
        x = functional.avg_pool2d(x, 2)
    return np.asarray(torch.stack(found, 1).flatten().numpy(), np.float32)


@dataclass(frozen=True, slots=True)
class AdaptiveEncoder:
    """Pixels, 0 to 1 -> (dimensions of the network + k,) of length 1."""

    prepare: Prepare
    networks: Mapping[str, IdentityNetwork]
    maps: Mapping[str, tuple[Pixels, Pixels]]
    side: int
    shift: int

    def way(self, planes_vchw: Tensor) -> str:
        mean, matrix = self.maps["rule"]
        return WAYS[int(float(((texture(planes_vchw) - mean) @ matrix)[0]) > 0)]

    def __call__(self, pixels: Pixels, spacing_mm: Spacing = None, /) -> Pixels:
        planes = self.prepare(np.asarray(pixels, np.float32), spacing_mm, self.side)
        way = self.way(planes)
        learned = embed_planes(self.networks[way], planes[None], self.shift)[0].numpy()
        mean, matrix = self.maps[way]
        linear = unit((linear_features(planes) - mean) @ matrix)
        return np.asarray(np.concatenate([learned, linear]) / np.sqrt(2), np.float32)


def encoder(card: Card, tensors: Mapping[str, Tensor]) -> Encoder:
    """Raises CardError for tensors that are not those of this encoder."""
    prepare, channels = PIXELS[choice(card, "pixels", tuple(PIXELS), "films")]
    side, width, shift = (number(card, name, default) for name, default in (("side", 64), ("width", 32), ("shift", 3)))
    maps = {}
    for name in (*WAYS, "rule"):
        inside = part(tensors, name)
        if not {"mean", "matrix"} <= set(inside):
            raise CardError(f"the weights of {card.name} lack the linear map {name}; fit the attacker again")
        maps[name] = (inside["mean"].numpy(), inside["matrix"].numpy())
    learned = card.dimensions - maps["original"][1].shape[1]
    networks = {
        way: loaded(lambda _card: IdentityNetwork(channels, width, learned), card, part(tensors, f"{way}.network"))
        for way in WAYS
    }
    return AdaptiveEncoder(prepare, networks, maps, side, shift)
