"""Cohorts as slices for the training of the lesion segmenter, and how slices vary while it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.lesion_anonymiser.study import NotAnonymised
from models.lesion_segmenter import SegmenterParts
from models.lesion_segmenter.network import SEEN
from models.lesion_segmenter.segment import unmarked
from models.train.lesion_material import Visit, usable
from models.train.trained import Tick

GAIN, OFFSET = 0.1, 0.03  # spreads of what varies in each sequence, on the card's scale


@dataclass(frozen=True, slots=True)
class Slices:
    """`x` (n, s, side, side) float16 0 to 1, `mask` (n, 1, side, side) bool, `near` (n, 3) rows of the slices that are
    seen with each. `smallest_ml`: volume of the smallest lesion, 0 when there is none.
    """

    x: Tensor
    mask: Tensor
    near: Tensor
    smallest_ml: float

    def __len__(self) -> int:
        return len(self.x)

    def seen(self, rows: Tensor) -> Tensor:
        """(b, 3 s, side, side) float32, as `with_neighbours` orders them."""
        return self.x[self.near[rows]].flatten(1, 2).float()


def slices_of(visits: Sequence[Visit], parts: SegmenterParts, tick: Tick) -> Slices:
    """Every usable study, loaded once; of each the slices that show head. Raises ValueError when none is."""
    x, mask, near, volumes_ml, rows = [], [], [], [], 0
    for _, study in usable(visits, parts.sequences, tick):
        try:
            prep = unmarked(study, parts)
        except NotAnonymised:
            continue  # without a head or contrast there is nothing to learn
        slices, marked = prep.slices(parts.sequences).half(), prep.mask_slices(study.lesion)[:, None] > 0
        shown = torch.nonzero(prep.mask_slices(prep.head).flatten(1).any(1)).flatten()
        low, high = int(shown[0]), int(shown[-1]) + 1
        x.append(slices[low:high])
        mask.append(marked[low:high])
        index = torch.arange(high - low)
        near.append(torch.stack([(index + step).clamp(0, high - low - 1) for step in SEEN], 1) + rows)
        rows += high - low
        if study.lesion.any():
            volumes_ml.append(float(study.lesion.sum()) * float(np.prod(study.spacing_mm)) / 1000)
    if not rows:
        raise ValueError("no study is usable: aligned sequences, known spacing and a lesion's mask (or healthy)")
    return Slices(torch.cat(x), torch.cat(mask), torch.cat(near), min(volumes_ml, default=0.0))


def varied(x: Tensor, mask: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Half of them mirrored left to right, each sequence a little brighter or darker, the same in all slices seen.

    `x` (b, 3 s, side, side), `mask` (b, 1, side, side).
    """
    mirrored = torch.rand(len(x), 1, 1, 1, generator=generator) < 0.5
    x, mask = torch.where(mirrored, x.flip(3), x), torch.where(mirrored, mask.flip(3), mask)
    shape = (len(x), 1, x.shape[1] // len(SEEN), 1, 1)
    gain, offset = (torch.randn(shape, generator=generator) for _ in range(2))
    by_slice = x.reshape(len(x), len(SEEN), -1, *x.shape[2:])
    there = (by_slice > 0).float()  # air stays air
    made = by_slice * torch.exp(GAIN * gain) + OFFSET * offset * there
    return made.clamp(0, 1).flatten(1, 2), mask
