"""Is a study of the kind that the card was trained on? Statistics of its training studies, each with limits.

Field of view and spacing, size of the head and the dome at its top, the share of it that is bright, how far the
histogram of each sequence lies from the mean one, how well the autoencoders give the study back. Limits are a stated
quantile of the training studies, widened by SLACK; a study that lies outside any of them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.cards import Card, CardError, DomainLimits, Outside
from models.lesion_anonymiser.generation import DECODED, batches
from models.lesion_anonymiser.parts import LesionParts
from models.lesion_anonymiser.preparation import Prepared
from models.lesion_anonymiser.study import NotAnonymised

BINS = 32
DOME_MM = 10.0
BRIGHT = 0.3  # of the card's scale
QUANTILE = 0.99
ONE_SIDED = ("histogram", "reconstruction", "spacing")  # only too much is wrong: fine voxels are averaged
AXES = ("z", "y", "x")
HISTOGRAMS = "domain.histograms"


class OutOfDomain(NotAnonymised):
    """`outside`: name, value, low, high of every statistic that is out; the text names statistics and limits only."""

    def __init__(self, outside: Sequence[Outside]) -> None:
        said = "; ".join(f"{one.statistic} is not within {one.low:.4g} to {one.high:.4g}" for one in outside)
        super().__init__(f"the study is not of the kind that the card was trained on: {said}")
        self.outside = tuple(outside)


@dataclass(frozen=True, slots=True)
class Domain:
    """`limits` by statistic; `histograms` (sequences, BINS) are the mean ones of the head, in the card's order."""

    limits: Mapping[str, tuple[float, float]]
    histograms: Tensor
    quantile: float
    studies: int

    @classmethod
    def fitted(cls, measured: Sequence[Mapping[str, float]], histograms: Tensor, quantile: float = QUANTILE) -> Domain:
        """From the statistics of training studies. Raises ValueError for none."""
        found = DomainLimits.fitted(measured, ONE_SIDED, quantile)
        return cls(found.limits, histograms, quantile, found.studies)

    def outside(self, measured: Mapping[str, float]) -> tuple[Outside, ...]:
        """Every statistic beyond its limits. One that cannot be a number is out."""
        return self._limits().outside(measured)

    def must_hold(self, measured: Mapping[str, float]) -> None:
        """Raises OutOfDomain."""
        if outside := self.outside(measured):
            raise OutOfDomain(outside)

    def parameters(self) -> dict[str, str | int | float | bool | tuple[float, ...]]:
        """For a card, beside the tensor HISTOGRAMS."""
        return self._limits().parameters()

    def _limits(self) -> DomainLimits:
        return DomainLimits(self.limits, self.quantile, self.studies)


def domain_of(card: Card, tensors: Mapping[str, Tensor]) -> Domain:
    """Raises CardError for a card without a domain: it would take anything."""
    found = DomainLimits.of(card)
    if HISTOGRAMS not in tensors:
        raise CardError(f"{card.name} does not say what it was trained on (domain): train it again")
    return Domain(found.limits, tensors[HISTOGRAMS].float(), found.quantile, found.studies)


def histogram(mapped: np.ndarray[tuple[int, ...], np.dtype[np.float32]], prep: Prepared) -> Tensor:
    """(BINS,), sum 1: of one mapped sequence in the head outside the lesion."""
    values = mapped[prep.head & ~prep.study.lesion]
    counts = np.histogram(values, BINS, (0, 1))[0]
    return torch.from_numpy(counts / max(counts.sum(), 1)).float()


def measured(prep: Prepared, parts: LesionParts, histograms: Tensor) -> dict[str, float]:
    """Every statistic of a study. `reconstruction` only where the study has all sequences of the card."""
    found = statistics(prep, parts.sequences, histograms)
    if all(name in prep.mapped for name in parts.sequences):
        found["reconstruction"] = reconstruction_error(prep, parts)
    return found


def statistics(prep: Prepared, sequences: Sequence[str], histograms: Tensor) -> dict[str, float]:
    """Those that need no network. `histograms` (sequences, BINS) are the mean ones, in the order of `sequences`.

    Distances of histograms are Wasserstein-1 on the card's scale (0 to 1).
    """
    study, found = prep.study, {}
    for axis, name in enumerate(AXES):
        mm = study.spacing_mm[axis]
        filled = np.flatnonzero(prep.head.any(tuple(one for one in range(3) if one != axis)))
        found[f"spacing {name} (mm)"] = mm
        found[f"field of view {name} (mm)"] = mm * study.shape[axis]
        found[f"head {name} (mm)"] = mm * float(filled[-1] - filled[0] + 1)
    found["share of the field that is head"] = float(prep.head.mean())
    found["dome"] = _dome(prep)
    for index, name in enumerate(sequences):
        if name not in prep.mapped:
            continue
        own = histogram(prep.mapped[name], prep)
        found[f"histogram {name}"] = float((own.cumsum(0) - histograms[index].cumsum(0)).abs().sum() / BINS)
        found[f"bright share {name}"] = float((prep.mapped[name][prep.head & ~study.lesion] > BRIGHT).mean())
    return found


def _dome(prep: Prepared) -> float:
    """Area of the head DOME_MM below its top over that of its widest slice: a stack from head to feet has no dome."""
    areas = prep.head.sum((1, 2))
    top = int(np.flatnonzero(areas)[-1])
    below = max(top - round(DOME_MM / prep.study.spacing_mm[0]), 0)
    return float(areas[below] / areas.max())


@torch.no_grad()
def reconstruction_error(prep: Prepared, parts: LesionParts) -> float:
    """Root mean square of D3(E(background), E(lesion)) − x over the head's slices, over the spread of x there."""
    x, mask = prep.slices(parts.sequences), prep.mask_slices(prep.study.lesion)[:, None]
    filled = (x > 0).flatten(1).any(1)
    x, mask = x[filled].to(parts.device), mask[filled].to(parts.device)
    if not len(x):
        return float("nan")
    wrong = 0.0
    for one, inside in zip(batches(x, DECODED), batches(mask, DECODED), strict=True):
        background, lesion = parts.vae.split(one, inside)
        made = parts.vae.join(parts.vae.background_encoder(background).mean, parts.vae.lesion_encoder(lesion).mean)
        wrong += float(((made - one) ** 2).sum())
    return float((wrong / x.numel()) ** 0.5 / max(float(x.std()), 1e-6))
