"""What is still read off released films by models of originals that are never adapted: findings, outlines, reports.

AUROC of findings by one logistic regression each on gradients; the mean Dice of outlines (consolidation, effusion,
nodule; a large heart is no outline of its own) over films that have one, by a small network; BLEU-4 of reports. Every
figure comes with its value in each of `DRAWS` resamplings of people, the same ones for every method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional

from bench.adjustable_films import Films
from bench.adjustable_fitting import fitted_or_kept
from bench.adjustable_reports import BleuCounts, Captioner, report
from models.audit_encoders.own_adaptive import linear_features
from models.train.augmentations import standard
from models.train.reid_material import Material
from models.train.trained import Tick

Floats = NDArray[np.float64]
HOGS = 1764  # of a film
LEAST = 10  # films with a finding, and without it, for its AUROC
DRAWS = 200  # resamplings of people
BATCH, RATE = 24, 2e-3


@dataclass(frozen=True, slots=True)
class Read:
    """One figure, and the same in each resampling of people."""

    value: float
    draws: Floats
    more: dict[str, Any] = field(default_factory=dict)

    def told(self, name: str) -> dict[str, Any]:
        """With its 95 % interval."""
        low, high = np.percentile(self.draws, [2.5, 97.5])
        return {name: round(self.value, 4), "low": round(float(low), 4), "high": round(float(high), 4), **self.more}


def over_people(figure: Callable[[NDArray[np.int64]], float], who: NDArray[np.int64], **more: Any) -> Read:
    """`figure` of all rows, and of those of people drawn with repetition."""
    rows_of = [np.flatnonzero(who == one) for one in np.unique(who)]
    draw = np.random.default_rng(0)
    draws = [
        figure(np.concatenate([rows_of[i] for i in draw.integers(len(rows_of), size=len(rows_of))]))
        for _ in range(DRAWS)
    ]
    return Read(figure(np.arange(len(who))), np.array(draws), more)


def linear_of(films: Tensor) -> NDArray[np.float32]:
    """(n, f): pixels and gradients of standardised films."""
    return np.stack([linear_features(one[None]) for one in standard(films)])


def auroc_of(told: NDArray[np.bool_], scores: Floats) -> float:
    """Of some that have it and some that lack it; ties count half."""
    have = int(told.sum())
    ranks = float(rankdata(scores)[told].sum())
    return (ranks - have * (have + 1) / 2) / (have * (len(told) - have))


class Reader:
    """Findings by logistic regression on what it was fitted on; never adapted to released films."""

    def __init__(self, known: NDArray[np.float32], fitted: Material) -> None:
        self.scaler = StandardScaler()
        x = self.scaler.fit_transform(known)
        self.names = fitted.names
        self.models = {}
        for column, name in enumerate(fitted.names):
            told = fitted.findings[:, column].numpy()
            self.models[name] = LogisticRegression(C=1e-3, max_iter=500, class_weight="balanced").fit(x, told > 0.5)

    def auroc(self, seen: NDArray[np.float32], judged: Material) -> Read:
        """Mean over findings that enough films have and enough lack."""
        x = self.scaler.transform(seen)
        scores = {name: model.decision_function(x) for name, model in self.models.items()}
        labels = {name: judged.findings[:, self.names.index(name)].numpy() > 0.5 for name in self.names}
        usable = [name for name in self.names if LEAST <= labels[name].sum() <= len(seen) - LEAST]
        each = {name: round(float(auroc_of(labels[name], scores[name])), 3) for name in usable}

        def mean(rows: NDArray[np.int64]) -> float:
            some = [name for name in usable if 0 < labels[name][rows].sum() < len(rows)]
            return float(np.mean([auroc_of(labels[name][rows], scores[name][rows]) for name in some]))

        return over_people(mean, judged.who.numpy(), findings=each)


class Segmenter(nn.Module):
    """(b, 1, side, side), 0 to 1 -> logits of the finding's mask, of the same size."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        w = width
        self.down = nn.Sequential(nn.Conv2d(1, w, 3, 1, 1), nn.GroupNorm(4, w), nn.SiLU())
        self.finer = nn.Sequential(nn.Conv2d(w, 2 * w, 3, 2, 1), nn.GroupNorm(4, 2 * w), nn.SiLU())
        self.coarse = nn.Sequential(
            nn.Conv2d(2 * w, 3 * w, 3, 2, 1), nn.GroupNorm(4, 3 * w), nn.SiLU(), nn.Conv2d(3 * w, 2 * w, 3, 1, 1)
        )
        self.join = nn.Sequential(nn.Conv2d(4 * w, w, 3, 1, 1), nn.GroupNorm(4, w), nn.SiLU())
        self.out = nn.Conv2d(2 * w, 1, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        full = self.down(x)
        finer = self.finer(full)
        joined = self.join(torch.cat([finer, functional.interpolate(self.coarse(finer), scale_factor=2.0)], 1))
        out: Tensor = self.out(torch.cat([full, functional.interpolate(joined, scale_factor=2.0)], 1))
        return out


def fitted_segmenter(x: Tensor, outlines: Tensor, steps: int, keep: Path, tick: Tick) -> Segmenter:
    """On original films (n, 1, side, side) and their masks of the same shape; half of every batch shows something."""
    torch.manual_seed(60)
    network = Segmenter()
    shown = torch.nonzero(outlines.flatten(1).any(1)).flatten()

    def loss(draw: torch.Generator) -> Tensor:
        some = torch.randint(len(x), (BATCH // 2,), generator=draw)
        more = shown[torch.randint(len(shown), (BATCH // 2,), generator=draw)]
        rows = torch.cat([some, more])
        told, said = outlines[rows].float(), network(x[rows].float())
        overlap = 2 * (said.sigmoid() * told).sum() / (said.sigmoid() + told).sum()
        found: Tensor = functional.binary_cross_entropy_with_logits(said, told) + 1 - overlap
        return found

    return fitted_or_kept(network, loss, steps, RATE, keep / "segmenter.pt", tick)


def dice(said: NDArray[np.bool_], told: NDArray[np.bool_]) -> Floats:
    """(n,) of masks (n, ...): 2 |A n B| / (|A| + |B|); NaN where nothing is told."""
    a, b = (one.reshape(len(one), -1) for one in (said, told))
    whole = a.sum(1) + b.sum(1)
    return np.where(b.any(1), 2 * (a & b).sum(1) / np.maximum(whole, 1), np.nan)


@dataclass(frozen=True, slots=True)
class Readers:
    """All that reads; a cohort without outlines or reports has no segmenter and no captioner."""

    findings: Reader
    segmenter: Segmenter | None
    captioner: Captioner | None

    @classmethod
    def of(cls, known: Films, steps: int, keep: Path, tick: Tick) -> Readers:
        """Learnt on *original* films."""
        features = linear_of(known.x)[:, -HOGS:]
        captioner = Captioner(features, known.slots) if known.slots else None
        segmenter = fitted_segmenter(known.x, known.outlines, steps, keep, tick) if len(known.outlines) else None
        return cls(Reader(features, known.material), segmenter, captioner)

    def read(self, released: Tensor, features: NDArray[np.float32], judged: Films) -> dict[str, Read]:
        """`released` (n, 1, side, side) and its linear features (n, f)."""
        who = judged.material.who.numpy()
        found = {"auroc": self.findings.auroc(features[:, -HOGS:], judged.material)}
        if self.segmenter is not None:
            said = torch.cat([self.segmenter(some) for some in torch.split(released, 64)]) > 0
            each = dice(said.numpy(), judged.outlines.numpy())
            films = int(np.isfinite(each).sum())
            found["dice"] = over_people(lambda rows: float(np.nanmean(each[rows])), who, films=films)
        if self.captioner is not None:
            counts = BleuCounts.of(self.captioner(features[:, -HOGS:]), [report(one) for one in judged.slots])
            found["bleu"] = over_people(counts.bleu, who)
        return found
