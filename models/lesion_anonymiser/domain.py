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

from models.cards import Card, CardError
from models.lesion_anonymiser.generation import DECODED, batches
from models.lesion_anonymiser.parts import LesionParts
from models.lesion_anonymiser.preparation import Prepared
from models.lesion_anonymiser.study import NotAnonymised

BINS = 32
DOME_MM = 10.0
BRIGHT = 0.3  # of the card's scale
SLACK = 0.25  # by which limits are wider than the quantile: training studies are few
QUANTILE = 0.99
ONE_SIDED = ("histogram", "reconstruction", "spacing")  # only too much is wrong: fine voxels are averaged
AXES = ("z", "y", "x")
PREFIX, HISTOGRAMS = "domain ", "domain.histograms"


class OutOfDomain(NotAnonymised):
    """`outside`: name, value, low, high of every statistic that is out; the text names statistics and limits only."""

    def __init__(self, outside: Sequence[Outside]) -> None:
        said = "; ".join(f"{one.statistic} is not within {one.low:.4g} to {one.high:.4g}" for one in outside)
        super().__init__(f"the study is not of the kind that the card was trained on: {said}")
        self.outside = tuple(outside)


@dataclass(frozen=True, slots=True)
class Outside:
    statistic: str
    value: float
    low: float
    high: float


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
        if not measured or not 0.5 < quantile <= 1:
            raise ValueError("a domain needs studies, and a quantile above a half")
        limits = {}
        for name in measured[0]:
            values = np.array([one[name] for one in measured])
            if name.startswith(ONE_SIDED):
                limits[name] = (0.0, float(np.quantile(values, quantile)) * (1 + SLACK))
            else:
                low, high = np.quantile(values, [(1 - quantile) / 2, (1 + quantile) / 2])
                limits[name] = (float(low) / (1 + SLACK), float(high) * (1 + SLACK))
        return cls(limits, histograms, quantile, len(measured))

    def outside(self, measured: Mapping[str, float]) -> tuple[Outside, ...]:
        """Every statistic beyond its limits. One that cannot be a number is out."""
        return tuple(
            Outside(name, value, *self.limits[name])
            for name, value in measured.items()
            if name in self.limits and not self.limits[name][0] <= value <= self.limits[name][1]
        )

    def must_hold(self, measured: Mapping[str, float]) -> None:
        """Raises OutOfDomain."""
        if outside := self.outside(measured):
            raise OutOfDomain(outside)

    def parameters(self) -> dict[str, str | int | float | bool | tuple[float, ...]]:
        """For a card, beside the tensor HISTOGRAMS."""
        said: dict[str, str | int | float | bool | tuple[float, ...]] = {
            "domain_quantile": self.quantile,
            "domain_studies": self.studies,
        }
        return said | {PREFIX + name: pair for name, pair in self.limits.items()}


def domain_of(card: Card, tensors: Mapping[str, Tensor]) -> Domain:
    """Raises CardError for a card without a domain: it would take anything."""
    limits = {}
    for name, value in card.parameters.items():
        if name.startswith(PREFIX) and isinstance(value, tuple) and len(value) == 2:
            limits[name.removeprefix(PREFIX)] = (value[0], value[1])
    quantile, studies = card.parameters.get("domain_quantile"), card.parameters.get("domain_studies")
    if not limits or HISTOGRAMS not in tensors or quantile is None or studies is None:
        raise CardError(f"{card.name} does not say what it was trained on (domain): train it again")
    return Domain(limits, tensors[HISTOGRAMS].float(), float(quantile), int(studies))  # type: ignore[arg-type]


def histogram(mapped: np.ndarray[tuple[int, ...], np.dtype[np.float32]], prep: Prepared) -> Tensor:
    """(BINS,), sum 1: of one mapped sequence in the head outside the lesion."""
    values = mapped[prep.head & ~prep.study.lesion]
    counts = np.histogram(values, BINS, (0, 1))[0]
    return torch.from_numpy(counts / max(counts.sum(), 1)).float()


def measured(prep: Prepared, parts: LesionParts, histograms: Tensor) -> dict[str, float]:
    """Every statistic of a study. `reconstruction` only where the study has all sequences of the card.

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
    for index, name in enumerate(parts.sequences):
        if name not in prep.mapped:
            continue
        own = histogram(prep.mapped[name], prep)
        found[f"histogram {name}"] = float((own.cumsum(0) - histograms[index].cumsum(0)).abs().sum() / BINS)
        found[f"bright share {name}"] = float((prep.mapped[name][prep.head & ~study.lesion] > BRIGHT).mean())
    if all(name in prep.mapped for name in parts.sequences):
        found["reconstruction"] = reconstruction_error(prep, parts)
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
