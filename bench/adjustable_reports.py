"""Templated reports of drawn films, a small captioner of originals, and BLEU-4 (Papineni et al. 2002), unsmoothed.

A report says what the film was drawn with: view, heart, finding, side, size. The captioner fills these slots by one
regression each, on features of original films, and is never adapted to released ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from models.cohorts import Scan

Floats = NDArray[np.float64]
ORDER = 4  # words of the longest row that BLEU counts
LARGE = 0.02  # of the film: a finding of that share and more


def slots_of(scan: Scan, outline: NDArray[np.bool_]) -> tuple[str, ...]:
    """View, heart, finding, side, size: what a report says."""
    finding = scan.attributes["finding"]
    heart = "enlarged" if finding == "cardiomegaly" else "normal"
    if not outline.any():
        return (scan.attributes["view"], heart, "none", "none", "none")
    columns = np.nonzero(outline)[1]
    side = "right" if columns.mean() < outline.shape[1] / 2 else "left"  # of the person, who faces the reader
    return (scan.attributes["view"], heart, finding, side, "large" if outline.mean() >= LARGE else "small")


def report(slots: Sequence[str]) -> tuple[str, ...]:
    """Words of the templated report."""
    view, heart, finding, side, size = slots
    lungs = "the lungs are clear"
    if "none" not in (finding, side, size):
        lungs = f"there is a {size} {finding} in the {side} lung"
    return tuple(f"frontal {view} film of the chest . the heart is {heart} in size . {lungs} .".lower().split())


class Captioner:
    """One regression for each slot of the report, on features of *original* films."""

    def __init__(self, known: NDArray[np.floating], slots: Sequence[tuple[str, ...]]) -> None:
        self.scaler = StandardScaler()
        x = self.scaler.fit_transform(known)
        told = [[one[column] for one in slots] for column in range(len(slots[0]))]
        self.models = [_slot().fit(x, one) if len(set(one)) > 1 else DummyClassifier().fit(x, one) for one in told]

    def __call__(self, seen: NDArray[np.floating]) -> list[tuple[str, ...]]:
        x = self.scaler.transform(seen)
        return [report(one) for one in zip(*(model.predict(x) for model in self.models), strict=True)]


def _slot() -> LogisticRegression:
    return LogisticRegression(C=1e-3, max_iter=300, class_weight="balanced")


@dataclass(frozen=True, slots=True)
class BleuCounts:
    """Of each report: matched and all rows of 1 to 4 words (n, 4), its own length and its reference's (n,)."""

    matched: Floats
    total: Floats
    own: Floats
    reference: Floats

    @classmethod
    def of(cls, said: Sequence[Sequence[str]], told: Sequence[Sequence[str]]) -> BleuCounts:
        matched, total = np.zeros((2, len(said), ORDER))
        for row, (a, b) in enumerate(zip(said, told, strict=True)):
            for n in range(1, ORDER + 1):
                ours, theirs = (Counter(zip(*(one[i:] for i in range(n)), strict=False)) for one in (a, b))
                matched[row, n - 1] = (ours & theirs).total()
                total[row, n - 1] = ours.total()
        lengths = (np.array([len(one) for one in some], float) for some in (said, told))
        return cls(matched, total, *lengths)

    def bleu(self, rows: NDArray[np.int64]) -> float:
        """Of the corpus of these rows, 0 to 1."""
        matched, total = self.matched[rows].sum(0), self.total[rows].sum(0)
        if not matched.all():
            return 0.0
        penalty = min(0.0, 1 - self.reference[rows].sum() / self.own[rows].sum())
        return float(np.exp(penalty + np.log(matched / total).mean()))
