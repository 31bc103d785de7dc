"""Who is found in what was released, for bench.lesion: frozen attackers, and those that saw releases of other people.

Frozen: the baselines without training, the volume at 12 mm, and the card `brain-audit-1`. Adaptive: a linear metric
over each of these, fitted on people who are not tested: two visits of each and what the anonymiser made of one.
Views: the whole volume; the background with the lesion replaced by the brain's mean (the hole's shape stays); the
lesion alone; the head's binary mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cohorts import on_slices, whole
from bench.lesion_released import Released
from gateway.embed import open_embedder
from gateway.evidence import People, distances, fixed_gallery, linkability, score_same_scan
from gateway.evidence.metric_head import fit_head
from models.audit_encoders import BASELINES
from models.lesion_anonymiser import LesionStudy

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Encode = Callable[[Floats], Floats]
GALLERY, DRAWS = 50, 200
TRAINED = "brain-audit-1"
VIEWS: dict[str, Callable[[Floats, Mask], Floats]] = {
    "whole": lambda volume, _lesion: volume,
    "background": lambda volume, lesion: np.where(lesion, volume[(volume > 0) & ~lesion].mean(), volume),
    "lesion": lambda volume, lesion: np.where(lesion, volume, np.float32(0)),
    "head mask": lambda volume, _lesion: (volume > 0.05).astype(np.float32),
}


def attackers(spacing_mm: float) -> dict[str, Encode]:
    """By name; each takes a volume (z, y, x) of that spacing."""
    embedder = open_embedder(TRAINED)
    found: dict[str, Encode] = {
        name: lambda volume, encoder=encoder: on_slices(volume, encoder) for name, encoder in BASELINES.items()
    }
    found["volume"] = lambda volume: whole(volume, spacing_mm)
    return found | {TRAINED: lambda volume: embedder.embed(volume, (spacing_mm,) * 3)}


def linkage(
    released: Sequence[Released], learners: Sequence[Released], others: Sequence[LesionStudy], tick: Callable[[], None]
) -> dict[str, Any]:
    """Rank-1 and D_sys by view and attacker: of the released second visit among everybody's first visits (`after`),
    and among the very originals it came from (`after, same scan`); `before`: of the untouched second visit.

    `learners` are people whom nobody tests, `others` another visit of each of them, in their order. One mate, a gallery
    of 50 people where there are as many, averaged over 200 draws; upper bounds are one-sided 95 % over people, of D_sys
    the 99th percentile. `tick` is called for each view and attacker.
    """
    size = min(GALLERY, len(released))
    out: dict[str, Any] = {"chance": round(1 / size, 3), "people": len(released), "gallery": size}
    out["people that adaptive attackers learned on"] = len(learners)
    for view in VIEWS:
        for name, encode in attackers(released[0].study.spacing_mm[0]).items():
            first, before, after = embedded(released, view, encode)
            out[f"{view}, {name}"] = found(first, before, after)
            theirs = embedded(learners, view, encode)[1:]
            again = seen(others, view, encode)
            subject = np.tile(np.arange(len(learners)), 3)
            head = fit_head(np.concatenate([*theirs, again]), subject)
            out[f"{view}, {name}, adaptive"] = found(head(first), head(before), head(after))
            tick()
    return out


def embedded(released: Sequence[Released], view: str, encode: Encode) -> tuple[Floats, Floats, Floats]:
    """(n, d) each: first visits, originals of what was released, and that itself."""
    first = seen([one.earlier for one in released], view, encode)
    before = seen([one.study for one in released], view, encode)
    name, cut = next(iter(released[0].volumes)), VIEWS[view]
    after = [
        one.head.astype(np.float32) if view == "head mask" else cut(one.volumes[name], one.lesion) for one in released
    ]
    return first, before, np.stack([encode(one) for one in after])


def seen(studies: Sequence[LesionStudy], view: str, encode: Encode) -> Floats:
    """(n, d) of the first sequence."""
    name = next(iter(studies[0].volumes))
    return np.stack([encode(VIEWS[view](one.volumes[name], one.lesion)) for one in studies])


def found(first: Floats, before: Floats, after: Floats) -> dict[str, Any]:
    """Row i of all three is one person."""
    return {
        "before": linked(before, first),
        "after": linked(after, first),
        "after, same scan": linked(after, before),
    }


def linked(probes: Floats, gallery: Floats) -> dict[str, float]:
    """Row i of both is one person. Ties count against the defender."""
    people, generator = People.of(range(len(probes))), np.random.default_rng(0)
    size = min(GALLERY, len(probes))
    rank1 = fixed_gallery(probes, people, "cosine", generator, gallery=gallery, size=size, draws=DRAWS, same_scan=True)
    apart = linkability(score_same_scan(probes, gallery, people, "cosine"), generator, replicates=200, permutations=199)
    return {
        "rank1": round(rank1.rank1, 3),
        "upper": round(rank1.upper, 3),
        "d_sys": round(apart.value, 3),
        "d_sys upper": round(apart.upper, 3),
        "d_sys of shuffled people": round(apart.null_mean, 3),
    }


def permutation_p(gallery: Floats, made: Floats, permutations: int) -> float:
    """Chance of as many right first places among everybody when what was released is given to people at random."""
    nearest = distances(made, gallery, "cosine").argmin(1)
    hits = int((nearest == np.arange(len(nearest))).sum())
    random = np.random.default_rng(0)
    as_many = sum(int((nearest == random.permutation(len(nearest))).sum()) >= hits for _ in range(permutations))
    return round((1 + as_many) / (1 + permutations), 3)
