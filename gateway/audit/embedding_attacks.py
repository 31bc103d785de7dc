"""Who attacks sanitised embeddings: holders of originals, who know the method, or retrain on its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.audit.inputs import AuditInput
from gateway.audit.sanitise import Sanitiser
from gateway.evidence import METRICS

HEAD_COMPONENTS = 64
ATTACKS = ("same_scan", "other_visit")
Attacker = tuple[str, str, str, NDArray[Any], NDArray[Any]]  # view, metric, attack, probes, gallery


def attackers(
    data: AuditInput,
    auxiliary: AuditInput,
    encoder: str,
    sanitiser: Sanitiser,
    released: NDArray[np.float32],
    key: bytes,
) -> Iterator[Attacker]:
    originals = data.embeddings[encoder]
    head = _head(auxiliary, encoder, sanitiser, key)
    views = [("originals", released, originals, tuple(METRICS))]
    views.append(("erased originals", released, sanitiser.erased(originals), tuple(METRICS)))
    if head is not None:
        views.append(("retrained head", head(released), head(sanitiser.erased(originals)), ("cosine", "euclid")))
    for view, probes, gallery, metrics in views:
        for metric in metrics:
            for attack in ATTACKS:
                yield view, metric, attack, probes, gallery


def _head(auxiliary: AuditInput, encoder: str, sanitiser: Sanitiser, key: bytes) -> Callable[[Any], Any] | None:
    """Discriminants of people over both forms of the auxiliary embeddings; None when none of them has two scans."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    x = auxiliary.embeddings[encoder]
    both = np.concatenate([sanitiser.erased(x), sanitiser.released(x, auxiliary.columns["scan"], key)])
    subject = np.tile(auxiliary.people.subject, 2)
    most = min(HEAD_COMPONENTS, auxiliary.people.count - 1, x.shape[1])
    if most < 1:
        return None
    fitted = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto", n_components=most).fit(both, subject)
    return lambda z: np.asarray(fitted.transform(z), np.float32)
