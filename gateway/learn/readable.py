"""Whether findings are still read in released pictures, by a model of originals that is not adapted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.cohorts import Cohort

SIDE, BLOCKS, BINS = 64, 8, 9  # pixels, blocks of gradients along a side, directions
LEAST = 10  # scans with a finding, and without it
NOTHING = frozenset({"", "none", "no finding", "normal", "healthy"})


@dataclass(frozen=True, slots=True)
class Reader:
    """A logistic regression of each finding on oriented gradients of originals."""

    models: dict[str, Any]

    @classmethod
    def of(cls, originals: Cohort) -> Reader | None:
        """None where the cohort tells no finding often enough."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        told, x = _told(originals), _gradients(originals)
        models = {}
        for name in sorted({one for some in told for one in some}):
            y = np.array([name in some for some in told])
            if LEAST <= y.sum() <= len(y) - LEAST:
                model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
                models[name] = model.fit(x, y)
        return cls(models) if models else None

    def auroc(self, cohort: Cohort) -> float:
        """The mean over findings that are there often enough; 0.5 is chance, not a number when none is."""
        from sklearn.metrics import roc_auc_score

        told, x = _told(cohort), _gradients(cohort)
        found = []
        for name, model in self.models.items():
            y = np.array([name in some for some in told])
            if LEAST <= y.sum() <= len(y) - LEAST:
                found.append(roc_auc_score(y, model.decision_function(x)))
        return float(np.mean(found)) if found else float("nan")


def _told(cohort: Cohort) -> list[frozenset[str]]:
    """Findings of each scan; of one that tells none there is none."""
    rows = [scan.attributes.get("finding", "") for scan in cohort]
    return [frozenset(one.strip().lower() for one in row.split("|")) - NOTHING for row in rows]


def _gradients(cohort: Cohort) -> NDArray[np.float32]:
    """(scans, BLOCKS² · BINS): how strong gradients of each direction are in each block, each picture of length 1."""
    import torch
    from torch.nn import functional

    rows = []
    for scan in cohort:
        x = torch.from_numpy(np.asarray(scan.load(), np.float32))[None, None]
        x = functional.interpolate(x, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)[0, 0]
        down, right = torch.gradient(x)
        direction = (torch.atan2(down, right) / torch.pi % 1 * BINS).long().clamp(max=BINS - 1)
        parts = functional.one_hot(direction, BINS).permute(2, 0, 1) * torch.hypot(down, right)
        flat = functional.adaptive_avg_pool2d(parts[None], BLOCKS).flatten()
        rows.append((flat / flat.norm().clamp(min=1e-6)).numpy())
    return np.stack(rows)
