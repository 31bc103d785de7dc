"""Cohorts as studies of a lesion, and as slices on the card's grid, for the training of the lesion anonymiser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.cohorts import Cohort, Scan
from models.lesion_anonymiser.preparation import prepared
from models.lesion_anonymiser.study import LesionStudy, NotAnonymised, SpacingZyx
from models.train.trained import Tick, side_of

SEQUENCES = ("T1", "T1c", "T2", "FLAIR")  # the order of channels
HEALTHY = "healthy"
FILLED = 0.01  # of a slice's pixels; with less there is no anatomy to learn


@dataclass(frozen=True, slots=True)
class Visit:
    """The scans of one person on one day, by sequence."""

    cohort: str
    subject: str
    scans: dict[str, Scan]

    @property
    def person(self) -> str:
        return f"{self.cohort}/{self.subject}"

    @property
    def kind(self) -> str:
        """The class of the lesion: its grade, else the diagnosis; `lesion` when nothing is said."""
        known = next(iter(self.scans.values())).attributes
        return known.get("grade") or known.get("diagnosis") or "lesion"

    def study(self, sequences: Sequence[str]) -> LesionStudy:
        """Loaded. Raises ValueError when its scans are not on one grid, or nobody marked the lesion."""
        scans = [self.scans[name] for name in sequences]
        first = scans[0]
        if first.spacing_mm is None or len(first.spacing_mm) != 3:
            raise ValueError("the distance of voxels is not known")
        if any(scan.spacing_mm != first.spacing_mm for scan in scans):
            raise ValueError("the sequences of a study lie on other grids")
        volumes = {name: np.asarray(scan.load(), np.float32) for name, scan in zip(sequences, scans, strict=True)}
        marked = next((scan.masks["lesion"] for scan in scans if "lesion" in scan.masks), None)
        if marked is None and self.kind != HEALTHY:
            raise ValueError("nobody marked the lesion")
        lesion = marked() if marked is not None else np.zeros(volumes[sequences[0]].shape, np.bool_)
        z, y, x = first.spacing_mm
        return LesionStudy(volumes, np.asarray(lesion, np.bool_), (z, y, x), self.kind)


def visits_of(cohorts: Sequence[Cohort]) -> list[Visit]:
    """In the cohorts' order. Scans without a known sequence are left out."""
    found: dict[tuple[str, str, str], Visit] = {}
    for cohort in cohorts:
        for scan in cohort:
            sequence = scan.attributes.get("sequence")
            if sequence in SEQUENCES:
                key = (cohort.name, scan.subject, scan.session)
                found.setdefault(key, Visit(cohort.name, scan.subject, {})).scans.setdefault(str(sequence), scan)
    return list(found.values())


def common_sequences(visits: Sequence[Visit]) -> tuple[str, ...]:
    """What everybody has, in the order of channels. Raises ValueError for nothing."""
    common = tuple(name for name in SEQUENCES if visits and all(name in visit.scans for visit in visits))
    if not common:
        raise ValueError(f"the cohorts have no sequence in common out of {', '.join(SEQUENCES)}")
    return common


def split_visits(visits: Sequence[Visit], share: float) -> tuple[list[Visit], list[Visit]]:
    """(fitted, held out), without common people, by a hash of each person. Raises ValueError for fewer than 2 people.

    When the hash puts everybody on one side, the last person in order of name goes to the other.
    """
    people = sorted({visit.person for visit in visits})
    if len(people) < 2:
        raise ValueError("training and holding out take two people and more")
    ours = {one for one in people if side_of("lesion", one, share)}
    if len(ours) in (0, len(people)):
        ours ^= {people[-1]}
    return [one for one in visits if one.person in ours], [one for one in visits if one.person not in ours]


@dataclass(frozen=True, slots=True)
class Material:
    """Slices (n): `x` (n, s, side, side) float16 0 to 1, `mask` (n, 1, side, side) bool, `kind`, `depth`, `below` (row
    of the slice below, −1 for none), `who` (number of the person), `study` (number of the visit).
    """

    x: Tensor
    mask: Tensor
    kind: Tensor
    depth: Tensor
    below: Tensor
    who: Tensor
    study: Tensor
    people: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.x)


def gathered(
    visits: Sequence[Visit], sequences: Sequence[str], kinds: Sequence[str], side: int, voxel_mm: SpacingZyx, tick: Tick
) -> Material:
    """Every usable study, loaded once. Raises ValueError when none is."""
    people = tuple(sorted({visit.person for visit in visits}))
    parts: dict[str, list[Tensor]] = {name: [] for name in ("x", "mask", "kind", "depth", "below", "who", "study")}
    rows = 0
    for number, (visit, study) in enumerate(usable(visits, sequences, tick)):
        try:
            prep = prepared(study, side, voxel_mm)
        except NotAnonymised:
            continue  # without a head or contrast there is nothing to learn
        x, mask, depth = prep.slices(sequences), prep.mask_slices(study.lesion), prep.depth
        chosen = torch.nonzero((x.amax(1) > 0.05).float().mean((1, 2)) > FILLED).flatten()
        if not len(chosen):
            continue
        chosen = torch.arange(int(chosen[0]), int(chosen[-1]) + 1)
        count = len(chosen)
        parts["x"].append(x[chosen].half())
        parts["mask"].append(mask[chosen][:, None] > 0)
        parts["kind"].append(torch.full((count,), list(kinds).index(visit.kind)))
        parts["depth"].append(depth[chosen])
        parts["below"].append(torch.cat([torch.tensor([-1]), torch.arange(rows, rows + count - 1)]))
        parts["who"].append(torch.full((count,), people.index(visit.person)))
        parts["study"].append(torch.full((count,), number))
        rows += count
    if not rows:
        raise ValueError("no study is usable: aligned sequences, known spacing and a lesion's mask (or healthy)")
    whole = {name: torch.cat(one) for name, one in parts.items()}
    return Material(people=people, **whole)


def usable(visits: Sequence[Visit], sequences: Sequence[str], tick: Tick) -> Iterator[tuple[Visit, LesionStudy]]:
    """Visits whose scans make a study."""
    for done, visit in enumerate(visits, 1):
        try:
            study = visit.study(sequences)
        except ValueError:
            continue  # not aligned, or nobody marked the lesion: not for training
        finally:
            tick("studies read", done, len(visits))
        yield visit, study
