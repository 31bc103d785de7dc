"""What is fixed on people held out, and the figures of the card on others again: Dice, lesions found, what holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.lesion_anonymiser.domain import Domain
from models.lesion_anonymiser.study import LesionStudy, NotAnonymised
from models.lesion_segmenter import SegmenterParts, dice, judge, least_certainty, looked_at
from models.train.lesion_material import Visit, usable
from models.train.trained import Tick

AT = (0.5, 0.4, 0.3, 0.2)  # what a voxel's probability may have to reach
FOUND = 0.95  # share of a lesion's voxels that is to be found in people held out
GOOD = 0.7  # Dice from which a mask is good; of somebody healthy none is
SMALLER = 0.8  # of the smallest lesion trained on: what is smaller is not known


@dataclass(frozen=True, slots=True)
class Judged:
    """One study: `ill` says whether it has a lesion; `overlap` is the Dice and `found` the share of its voxels that are
    marked, both 0 for somebody healthy; `marked` whether anything is. `accepted`: the mask would be relied on.
    """

    ill: bool
    marked: bool
    overlap: float
    found: float
    certainty: float
    accepted: bool

    @property
    def good(self) -> bool:
        return self.ill and self.overlap >= GOOD


def judged_of(study: LesionStudy, parts: SegmenterParts, domain: Domain | None) -> Judged:
    """Raises NotAnonymised for a study that is not of the card's kind."""
    seen = looked_at(study, parts, domain)
    ill = bool(study.lesion.any())
    try:
        judge(seen, parts)
        accepted = True
    except NotAnonymised:
        accepted = False
    found = float((seen.mask & study.lesion).sum() / study.lesion.sum()) if ill else 0.0
    overlap = dice(seen.mask, study.lesion) if ill else 0.0
    return Judged(ill, bool(seen.mask.any()), overlap, found, seen.certainty, accepted)


def fixed(parts: SegmenterParts, smallest_ml: float, held: Sequence[Visit], tick: Tick) -> SegmenterParts:
    """With `marks_at`: the highest of AT that finds FOUND of the lesions, else the lowest; then `least_certainty` and
    `smallest_ml`. Raises ValueError when nothing can be told from `held`.
    """
    rows: dict[float, list[Judged]] = {at: [] for at in AT}
    for _, study in usable(held, parts.sequences, tick):
        for at in AT:
            try:
                rows[at].append(judged_of(study, replace(parts, marks_at=at), None))
            except NotAnonymised:
                break  # no head, no contrast: at no probability
    shares = {at: [one.found for one in rows[at] if one.ill] for at in AT}
    chosen = next((at for at in AT if shares[at] and float(np.mean(shares[at])) >= FOUND), AT[-1])
    least = round(least_certainty([(one.certainty, one.good) for one in rows[chosen] if one.marked]), 4)
    return replace(parts, marks_at=chosen, least_certainty=least, smallest_ml=round(SMALLER * smallest_ml, 3))


def figures(parts: SegmenterParts, domain: Domain, judged: Sequence[Visit], tick: Tick) -> dict[str, str | float | int]:
    """Of people on whom nothing was trained or fixed. Dice on the study's own grid, mean over people; what the card
    refuses is among them unless a figure says "accepted".
    """
    rows, refused = [], 0
    for _, study in usable(judged, parts.sequences, tick):
        try:
            rows.append(judged_of(study, parts, domain))
        except NotAnonymised:
            refused += 1
    ill = [one for one in rows if one.ill]
    told: dict[str, str | float | int] = {"people judged": len(ill), "outside the domain": refused}
    for name, some in {"": ill, " of the accepted": [one for one in ill if one.accepted]}.items():
        if some:
            told[f"Dice{name}"] = round(float(np.mean([one.overlap for one in some])), 3)
            told[f"Dice{name}, lowest"] = round(min(one.overlap for one in some), 3)
            told[f"lesion voxels found{name}"] = round(float(np.mean([one.found for one in some])), 3)
            told[f"lesion voxels found{name}, lowest"] = round(min(one.found for one in some), 3)
    told["accepted"] = sum(one.accepted for one in ill)
    healthy = [one for one in rows if not one.ill]
    if healthy:
        told |= {"healthy people judged": len(healthy), "healthy people held": sum(not one.accepted for one in healthy)}
    return told
