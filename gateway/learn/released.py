"""A cohort as an adjustable anonymiser would release it: the same scans, made anew at a level, or as they came."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.cards import people_hash
from models.cohorts import Cohort, Scan
from models.train.trained import Tick, side_of

if TYPE_CHECKING:
    import torch

    from models.resynthesis import AdjustableParts
    from models.resynthesis.domain import PictureDomain

JUDGED = 0.5  # of the people; the others are the attackers'
MOST_PIXELS = 256  # of the longer side that is kept; attackers look at less


@dataclass(frozen=True, slots=True)
class Released:
    """`statistics` of the originals, in order; `outside`: how many scans the card's domain does not take, left out."""

    cohort: Cohort
    statistics: tuple[dict[str, float], ...]
    outside: int


def released(
    parts: AdjustableParts, domain: PictureDomain, cohort: Cohort, level: float | None, seed: int, tick: Tick
) -> Released:
    """Pixels are made here and kept in memory. `level` None leaves pictures as they are, and leaves out those that the
    card's domain does not take.

    What comes back is grey: attackers look at that. Raises ValueError for a volume, or for a scan without colour where
    the card makes colour.
    """
    import torch

    from models.resynthesis.anew import looked_at, made_anew, seeded, values_of

    scans, statistics, outside = [], [], 0
    what = "originals" if level is None else f"level {level:g}: pictures made"
    for done, scan in enumerate(cohort):
        tick(what, done, len(cohort))
        pixels = _pixels(scan, parts.channels)
        looked = looked_at(parts, domain, torch.from_numpy(pixels.astype(np.float64)))
        if level is None and domain.limits.outside(looked.statistics):
            outside += 1
            continue
        if level is None:
            values = torch.from_numpy(pixels)
        else:
            drawn = hashlib.sha256(f"{seed}/{cohort.name}/{scan.name}/{level:.6f}".encode()).digest()
            side = scan.attributes.get("eye", "")[:1].upper()
            new = made_anew(parts, looked, level, seeded(parts, int.from_bytes(drawn[:7], "big")), side)
            values = values_of(new, looked.ends, domain.shown).clamp(0, 1).float()
        statistics.append(looked.statistics)
        scans.append(replace(scan, load=partial(_same, _kept(_grey(values))), load_colour=None, masks={}))
    return Released(mated(replace(cohort, scans=tuple(scans))), tuple(statistics), outside)


def parted(cohorts: Sequence[Cohort], known: frozenset[str]) -> tuple[Cohort, Cohort, int]:
    """(auxiliary, judged, how many were left out) of people whom nobody was trained on and who came twice: one cohort,
    its people told apart by the cohort that they are from, sides by a hash of each.
    """
    scans: list[Scan] = []
    left_out = 0
    for cohort in cohorts:
        strangers = [one for one in cohort.subjects if people_hash(cohort.name, one) not in known]
        left_out += len(cohort.subjects) - len(strangers)
        part = mated(cohort.of(strangers))
        several = len(cohorts) > 1
        scans += [replace(one, subject=f"{cohort.name}/{one.subject}") if several else one for one in part]
    name = "+".join(cohort.name for cohort in cohorts)
    whole = Cohort(name, tuple(scans), synthetic=all(cohort.synthetic for cohort in cohorts))
    judged = [one for one in whole.subjects if side_of("calibration", f"{name}/{one}", JUDGED)]
    return whole.of([one for one in whole.subjects if one not in set(judged)]), whole.of(judged), left_out


def mated(cohort: Cohort) -> Cohort:
    """Without people who came once: nobody can be found again by another visit of theirs."""
    sessions: dict[str, set[str]] = {}
    for scan in cohort:
        sessions.setdefault(scan.subject, set()).add(scan.session)
    return cohort.of([one for one, those in sessions.items() if len(those) > 1])


def _pixels(scan: Scan, channels: int) -> NDArray[np.float32]:
    """(rows, columns), or (3, rows, columns) where the card makes colour."""
    if channels == 1:
        pixels = np.asarray(scan.load(), np.float32)
        if pixels.ndim != 2:
            raise ValueError(f"{scan.name} is no picture: the anonymiser makes pictures only")
        return pixels
    if scan.load_colour is None:
        raise ValueError(f"{scan.name} is not in colour: the anonymiser makes colour pictures only")
    return np.ascontiguousarray(np.moveaxis(np.asarray(scan.load_colour(), np.float32), -1, 0))


def _grey(values: torch.Tensor) -> torch.Tensor:
    """(rows, columns), by ITU-R 601 as cohorts are loaded."""
    if values.ndim == 2:
        return values
    red, green, blue = values
    grey: torch.Tensor = (0.299 * red + 0.587 * green + 0.114 * blue).clamp(0, 1)
    return grey


def _kept(values: torch.Tensor) -> NDArray[np.float16]:
    from torch.nn import functional

    rows, columns = values.shape
    shrink = MOST_PIXELS / max(rows, columns)
    if shrink < 1:
        size = (max(round(rows * shrink), 1), max(round(columns * shrink), 1))
        values = functional.interpolate(values[None, None], size, mode="bilinear", antialias=True)[0, 0].clamp(0, 1)
    return np.asarray(values.numpy(), np.float16)


def _same(values: NDArray[np.float16]) -> NDArray[np.float32]:
    return values.astype(np.float32)
