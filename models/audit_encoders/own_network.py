"""Our own encoders: a small residual network trained by contrast, beside whitened gradients of the same planes.

The network has seen few people; gradients alone are not told what of a picture is the person. Each part is a vector of
length 1 times the root of its share, so the cosine of two embeddings is the mean of the parts' cosines by these shares.

Parameters of a card: `side` (pixels of a plane), `width` (channels of the first stage), `shift` (pixels by which the
nine takes of a plane are moved; what is found in them is averaged, in both parts, because people never stand in the
same place twice), `gradients` (their share, 0 to 1; 0.5 unless said). Tensors: `network.*`, and `gradients.mean` (f,),
`gradients.matrix` (f, k), which `models.train.whitening` fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models.audit_encoders.baselines import Pixels, Spacing
from models.audit_encoders.gradients import histograms
from models.audit_encoders.networks import loaded, number
from models.cards import Card, CardError

CELL_CHANNELS, GRID = 16, 4
Prepare = Callable[[Pixels, Spacing, int], Tensor]  # pixels, spacing, side -> (V, C, side, side)


class _Block(nn.Module):
    """Two 3 x 3 convolutions and a way around them (He et al. 2016, basic block)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.around = (
            nn.Identity()
            if stride == 1 and inside == outside
            else nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
        )

    def forward(self, x_bchw: Tensor) -> Tensor:
        y = functional.relu(self.first_norm(self.first(x_bchw)))
        return functional.relu(self.second_norm(self.second(y)) + self.around(x_bchw))


class IdentityNetwork(nn.Module):
    """(B, V, C, side, side), V planes of one scan at mean 0 and variance 1 -> (B, dimensions) of length 1; side >= 32.

    Identity is shape at a place (clavicles, heart, vessels), so the last map is not only averaged: its cells, at few
    channels, go into the embedding too. The planes share the network; their embeddings are averaged.
    """

    def __init__(self, channels: int, width: int, dimensions: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 5, 2, 2, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.stages = nn.Sequential(
            _Block(width, width, 1),
            _Block(width, 2 * width, 2),
            _Block(2 * width, 2 * width, 1),
            _Block(2 * width, 4 * width, 2),
            _Block(4 * width, 4 * width, 1),
            _Block(4 * width, 4 * width, 2),
        )
        self.cells = nn.Conv2d(4 * width, CELL_CHANNELS, 1)
        self.out = nn.Linear(4 * width + CELL_CHANNELS * GRID * GRID, dimensions)

    def forward(self, x_bvchw: Tensor) -> Tensor:
        planes = x_bvchw.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        maps = self.stages(self.stem(planes))
        places = functional.adaptive_avg_pool2d(self.cells(maps), GRID).flatten(1)
        found = self.out(torch.cat([maps.mean((2, 3)), places], 1))
        return functional.normalize(found.reshape(*x_bvchw.shape[:2], -1).mean(1), dim=1)


def takes(x_bvchw: Tensor, shift: int) -> list[Tensor]:
    """The planes as they are, and moved by `shift` pixels to each of the eight sides; the edge is repeated."""
    height, width = x_bvchw.shape[-2:]
    wide = functional.pad(x_bvchw.flatten(0, 1), (shift,) * 4, mode="replicate")
    wide = wide.reshape(*x_bvchw.shape[:3], *wide.shape[-2:])
    corners = [(shift * y, shift * x) for y, x in ((1, 1), *((y, x) for y in range(3) for x in range(3) if y * x != 1))]
    return [wide[..., y : y + height, x : x + width] for y, x in corners]


def embed_planes(network: nn.Module, x_bvchw: Tensor, shift: int) -> Tensor:
    """(B, dimensions) of length 1, averaged over the takes."""
    with torch.inference_mode():
        total = torch.stack([network(take) for take in takes(x_bvchw, shift)]).sum(0)
        return functional.normalize(total, dim=1)


def gradients_of(planes_vchw: Tensor, shift: int = 0) -> Pixels:
    """(V * 1764,): histograms of oriented gradients of the middle channel of every plane, in 8 x 8 cells.

    The baseline's, at the plane's own resolution (the side is a multiple of 8); with `shift` averaged over the takes.
    """
    middle = planes_vchw[None, :, planes_vchw.shape[1] // 2][:, :, None].float()
    wanted = takes(middle, shift) if shift else [middle]
    found = histograms(torch.cat(wanted)[:, :, 0].flatten(0, 1).numpy())
    return np.asarray(found.reshape(len(wanted), -1).mean(0), np.float32)


def unit(rows: NDArray[np.floating]) -> Pixels:
    """Length 1 along the last axis; zeros stay zeros."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(np.divide(rows, length, out=np.zeros_like(rows), where=length > 0), np.float32)


@dataclass(frozen=True, slots=True)
class OwnEncoder:
    """Pixels, 0 to 1 -> (dimensions of the network + k,) of length 1."""

    prepare: Prepare
    network: IdentityNetwork
    mean: Pixels
    matrix: Pixels
    side: int
    shift: int
    gradients: float  # their share

    def __call__(self, pixels: Pixels, spacing_mm: Spacing = None, /) -> Pixels:
        planes = self.prepare(np.asarray(pixels, np.float32), spacing_mm, self.side)
        learned = embed_planes(self.network, planes[None], self.shift)[0].numpy()
        whitened = unit((gradients_of(planes, self.shift) - self.mean) @ self.matrix)
        parts = [np.sqrt(1 - self.gradients) * learned, np.sqrt(self.gradients) * whitened]
        return np.asarray(np.concatenate(parts), np.float32)


def own_encoder(prepare: Prepare, channels: int, card: Card, tensors: Mapping[str, Tensor]) -> OwnEncoder:
    """Raises CardError for tensors that are not those of this encoder."""
    side, width, shift = (number(card, name, default) for name, default in (("side", 64), ("width", 32), ("shift", 3)))
    try:
        mean, matrix = (tensors[f"gradients.{name}"].float().numpy() for name in ("mean", "matrix"))
    except KeyError:
        raise CardError(f"the weights of {card.name} lack the whitening of gradients; train it again") from None
    learned = card.dimensions - matrix.shape[1]
    network = loaded(lambda _card: IdentityNetwork(channels, width, learned), card, part(tensors, "network"))
    return OwnEncoder(prepare, network, mean, matrix, side, shift, _share(card))


def _share(card: Card) -> float:
    share = card.parameters.get("gradients", 0.5)
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise CardError(f"the parameter gradients of {card.name} is the share of the gradients, 0 to 1")
    return float(share)


def part(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors called `name.*`, without it, in float32 (files carry float16)."""
    inside = {key.removeprefix(f"{name}."): one for key, one in tensors.items() if key.startswith(f"{name}.")}
    return {key: one.float() if one.is_floating_point() else one for key, one in inside.items()}
