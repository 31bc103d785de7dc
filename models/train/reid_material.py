"""Cohorts as pictures with people and findings, for the training of the adjustable anonymiser."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from models.cohorts import Cohort, Scan
from models.train.trained import Tick, side_of

NOTHING = frozenset({"", "none", "no finding", "healthy", "normal"})
LEAST_PICTURES = 8  # with a finding and without it; with fewer there is nothing to learn of it
SLICES = 6  # of a volume, from the middle half of its slices


@dataclass(frozen=True, slots=True)
class Material:
    """`x` (n, c, side, side) float16, 0 to 1; `who` (n,) numbers of people from 0; `findings` (n, names) 1, 0 or NaN.

    `people` by number, as cohort/subject.
    """

    x: Tensor
    who: Tensor
    findings: Tensor
    names: tuple[str, ...]
    people: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.x)

    def pictures(self, rows: Tensor, where: torch.device) -> Tensor:
        return self.x[rows].to(where).float()

    def digest(self) -> str:
        """Of people, pictures and findings: a run goes on from a checkpoint of the very same only."""
        body = hashlib.sha256("\0".join((*self.people, *self.names)).encode())
        for one in (self.x, self.who, self.findings):
            body.update(one.numpy().tobytes())
        return body.hexdigest()

    def two_each(self, people: Tensor, generator: torch.Generator) -> Tensor:
        """Rows (2 · people,): two different pictures of each person; a person with one picture gives it twice."""
        rows = []
        for person in people.tolist():
            own = torch.nonzero(self.who == person).flatten()
            order = own[torch.randperm(len(own), generator=generator)]
            rows += [order[0], order[-1]]
        return torch.stack(rows)

    def mated(self) -> Tensor:
        """Numbers of the people who have two pictures or more; of everybody when nobody has."""
        people, counts = torch.unique(self.who, return_counts=True)
        several: Tensor = people[counts > 1]
        return several if len(several) else people

    def with_mates(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Rows (2 · n,): these, then for each another picture of its person; itself where there is none."""
        mates = []
        for row in rows.tolist():
            own = torch.nonzero(self.who == self.who[row]).flatten()
            others = own[own != row]
            drawn = int(torch.randint(max(len(others), 1), (1,), generator=generator))
            mates.append(int(others[drawn]) if len(others) else row)
        return torch.cat([rows, torch.tensor(mates)])


def findings_of(scan: Scan) -> frozenset[str] | None:
    """What a scan shows, in small letters; None when nothing is said."""
    text = scan.attributes.get("finding", scan.attributes.get("diagnosis"))
    if text is None:
        return None
    return frozenset(one.strip().lower() for one in re.split(r"[|;,]", text)) - NOTHING


def known_findings(cohorts: Sequence[Cohort]) -> tuple[str, ...]:
    """Names that enough scans have and enough lack."""
    told = [one for cohort in cohorts for scan in cohort if (one := findings_of(scan)) is not None]
    names = sorted({name for one in told for name in one})
    return tuple(
        name for name in names if LEAST_PICTURES <= sum(name in one for one in told) <= len(told) - LEAST_PICTURES
    )


def apart(cohorts: Sequence[Cohort], share: float) -> tuple[list[Cohort], list[Cohort]]:
    """(fitted, held out), without common people, by a hash of each person. Raises ValueError for fewer than 2 people.

    When the hash puts everybody on one side, the last person in order of name goes to the other.
    """
    people = sorted(f"{cohort.name}/{subject}" for cohort in cohorts for subject in cohort.subjects)
    if len(people) < 2:
        raise ValueError("training and holding out take two people and more")
    ours = {one for one in people if side_of("adjustable", one, share)}
    if len(ours) in (0, len(people)):
        ours ^= {people[-1]}

    def part(chosen: set[str]) -> list[Cohort]:
        parts = [cohort.of([s for s in cohort.subjects if f"{cohort.name}/{s}" in chosen]) for cohort in cohorts]
        return [one for one in parts if len(one)]

    return part(ours), part(set(people) - ours)


def gathered(cohorts: Sequence[Cohort], names: Sequence[str], side: int, tick: Tick, channels: int = 1) -> Material:
    """Every scan, loaded once; 3 `channels` are colour. Raises ValueError for pixels outside 0 to 1, or no colour."""
    people = tuple(sorted(f"{cohort.name}/{subject}" for cohort in cohorts for subject in cohort.subjects))
    numbers = {person: number for number, person in enumerate(people)}
    pictures, who, findings = [], [], []
    total = sum(len(cohort) for cohort in cohorts)
    done = 0
    for cohort in cohorts:
        for scan in cohort:
            made = pictures_of(scan, side, channels)
            told = findings_of(scan)
            row = [float("nan") if told is None else float(name in told) for name in names]
            pictures.append(made)
            who += [numbers[f"{cohort.name}/{scan.subject}"]] * len(made)
            findings += [row] * len(made)
            done += 1
            tick("scans read", done, total)
    table = torch.tensor(findings).reshape(len(who), len(names))
    return Material(torch.cat(pictures).half(), torch.tensor(who), table, tuple(names), people)


def pictures_of(scan: Scan, side: int, channels: int = 1) -> Tensor:
    """(n, channels, side, side), 0 to 1: the image, or some axial slices of a volume, areas averaged."""
    if channels > 1:
        return _at(_in_colour(scan), side)
    pixels = np.asarray(scan.load(), np.float32)
    if pixels.ndim not in (2, 3) or not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.max() > 1:
        raise ValueError("a scan is an image or a volume of numbers from 0 to 1")
    if pixels.ndim == 3:
        first, last = len(pixels) // 4, max(len(pixels) - len(pixels) // 4 - 1, len(pixels) // 4)
        pixels = pixels[np.unique(np.linspace(first, last, SLICES).round().astype(int))]
    return _at(torch.from_numpy(np.ascontiguousarray(pixels)).reshape(-1, 1, *pixels.shape[-2:]), side)


def _in_colour(scan: Scan) -> Tensor:
    """(1, 3, rows, columns). Raises ValueError for a scan without colour, or pixels outside 0 to 1."""
    if scan.load_colour is None:
        raise ValueError("a scan has no colour: this card is trained on colour photographs alone")
    pixels = np.asarray(scan.load_colour(), np.float32)
    if pixels.ndim != 3 or pixels.shape[-1] != 3 or not np.isfinite(pixels).all():
        raise ValueError("a scan in colour has rows, columns and three channels")
    if pixels.min() < 0 or pixels.max() > 1:
        raise ValueError("a scan is an image or a volume of numbers from 0 to 1")
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(pixels, -1, 0)))[None]


def _at(x: Tensor, side: int) -> Tensor:
    if x.shape[-2:] == (side, side):
        return x
    return functional.interpolate(x, (side, side), mode="bilinear", antialias=True, align_corners=False).clamp(0, 1)
