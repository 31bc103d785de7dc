"""People and their scans, as arrays with labels: what training, encoders and audits take. Never a path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.float32]
AGE_BAND_YEARS = 20  # of the attribute age_band


@dataclass(frozen=True, slots=True)
class Scan:
    """One image or volume and whose it is. `load` gives (rows, columns) or (slices, rows, columns), 0 to 1.

    A volume of a head is axial: slices go from feet to head, rows from front to back, columns from the person's right
    to left, as DICOM has them. `spacing_mm` is the distance along each axis of the array, None when unknown.
    `day` counts from the person's first scan, None when unknown. `masks` gives arrays of the same shape by name.
    `load_colour` gives the same picture as (rows, columns, 3), red, green, blue, 0 to 1; None where there is only grey.
    """

    name: str
    subject: str
    session: str
    load: Callable[[], Pixels]
    day: float | None = None
    site: str = ""
    spacing_mm: tuple[float, ...] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    masks: Mapping[str, Callable[[], NDArray[np.bool_]]] = field(default_factory=dict)
    load_colour: Callable[[], Pixels] | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """Scans of many people. `synthetic` people do not exist, and every figure about them says so."""

    name: str
    scans: tuple[Scan, ...]
    synthetic: bool = False

    def __len__(self) -> int:
        return len(self.scans)

    def __iter__(self) -> Iterator[Scan]:
        return iter(self.scans)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Every person once, in order of name."""
        return tuple(sorted({scan.subject for scan in self.scans}))

    def of(self, subjects: Sequence[str]) -> Cohort:
        """The part of the cohort that belongs to these people."""
        wanted = frozenset(subjects)
        return replace(self, scans=tuple(scan for scan in self.scans if scan.subject in wanted))

    def split(self, shares: Mapping[str, float], seed: int) -> dict[str, Cohort]:
        """Parts without common people, of about these shares. Raises ValueError unless the shares sum to 1."""
        if abs(sum(shares.values()) - 1) > 1e-9:
            raise ValueError("the shares of a split sum to 1")
        people = np.random.default_rng(seed).permutation(np.array(self.subjects, object))
        ends = np.round(np.cumsum(list(shares.values())) * len(people)).astype(int)
        starts = [0, *ends[:-1]]
        return {name: self.of(list(people[a:b])) for name, a, b in zip(shares, starts, ends, strict=True)}

    def people_digest(self) -> str:
        """sha256 over the people, for a card: whoever trained on them must not judge them."""
        body = "\0".join(f"{self.name}/{subject}" for subject in self.subjects)
        return hashlib.sha256(body.encode()).hexdigest()
