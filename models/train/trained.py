"""What a training gives: tensors, the card that goes with them, and the lists of people it was trained on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from models.cards import Card, TrainedOn, people_hash, people_lines
from models.cohorts import Cohort

Tick = Callable[[str, int, int], None]  # what, done, in all


@dataclass(frozen=True, slots=True)
class Start:
    """The encoder to begin with: its card, its tensors, and the lists of people that the card names, by file.

    Without tensors a training begins with fresh weights of the card's size, and knows nobody of its people.
    """

    card: Card
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    people: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def trained_on(self) -> tuple[TrainedOn, ...]:
        return self.card.trained_on if self.tensors else ()

    @property
    def hashes(self) -> frozenset[str]:
        """Of everybody that the weights have seen. Raises ValueError when a list is missing."""
        absent = [one.people_file for one in self.trained_on if one.people_file not in self.people]
        if absent:
            raise ValueError(f"{self.card.name} cannot say on whom it was trained without {', '.join(absent)}")
        return frozenset(
            line for one in self.trained_on for line in self.people[one.people_file].decode("ascii").split()
        )


@dataclass(frozen=True, slots=True)
class Privacy:
    """Differential privacy of each patient that is asked for. `key` of the noise: None = a fresh secret one, and what
    is not for tests takes that.
    """

    epsilon: float
    delta: float = 1e-5
    clip: float = 1.0
    key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if not (0 < self.epsilon < float("inf") and 0 < self.delta < 1 and 0 < self.clip < float("inf")):
            raise ValueError("epsilon and the norm to clip to are above 0, delta lies between 0 and 1")


@dataclass(frozen=True, slots=True)
class Options:
    """How a run differs from the entry's own plan. `checkpoint` is written, and gone on from when it is there.

    `start`: weights to go on from; with `steps` 0 its network stays as it is, and only what is fitted beside it is new.
    `privacy`: of entries in `models.train.PRIVATE` only.
    """

    steps: int | None = None
    seed: int = 0
    checkpoint: Path | None = None
    start: Start | None = None
    privacy: Privacy | None = None


@dataclass(frozen=True, slots=True)
class Trained:
    """`card` still lacks weights and metrics: they are known when the tensors are written and judged.

    `people`: contents of the lists that `card.trained_on` names, by file.
    """

    card: Card
    tensors: Mapping[str, Tensor]
    people: Mapping[str, bytes]


def side_of(cohort: str, subject: str, share: float) -> bool:
    """Whether a person belongs to the side that is trained on: decided by hash, so it never changes with the cohort."""
    return int(people_hash(cohort, subject), 16) < share * 2**64


def sides(cohort: Cohort, share: float) -> tuple[Cohort, Cohort]:
    """(trained on, held out), without common people."""
    ours = [subject for subject in cohort.subjects if side_of(cohort.name, subject, share)]
    others = [subject for subject in cohort.subjects if not side_of(cohort.name, subject, share)]
    return cohort.of(ours), cohort.of(others)


def lists_of(
    card: str, cohorts: Sequence[Cohort], start: Start | None = None
) -> tuple[tuple[TrainedOn, ...], dict[str, bytes]]:
    """For a card: on whom it was trained, and the contents of its lists. Raises ValueError for a name twice.

    Whoever the weights of `start` have seen is on the lists as well.
    """
    names = [_plain(cohort.name) for cohort in cohorts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two cohorts are called {name}; a card has one list of people of each")
    synthetic = {name: cohort.synthetic for name, cohort in zip(names, cohorts, strict=True)}
    lines = {_plain(cohort.name): people_lines(cohort.name, cohort.subjects) for cohort in cohorts}
    if start is not None:
        start.hashes  # noqa: B018 - raises for a list that is missing
        for part in start.trained_on:
            seen = {*lines.get(part.cohort, b"").splitlines(), *start.people[part.people_file].splitlines()}
            lines[part.cohort] = b"".join(line + b"\n" for line in sorted(seen))
            synthetic.setdefault(part.cohort, part.synthetic)
    files = {f"{card}.{name}.txt": body for name, body in lines.items()}
    parts = tuple(
        TrainedOn(
            cohort=name,
            people=len(body.split()),
            people_file=file,
            people_sha256=hashlib.sha256(body).hexdigest(),
            synthetic=synthetic[name],
        )
        for (name, body), file in zip(lines.items(), files, strict=True)
    )
    return parts, files


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.-]", "-", name.lower())


def compact(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices and kernels in float16; vectors (norms' statistics among them) as they are."""
    return {name: (one.half() if one.ndim > 1 else one).contiguous() for name, one in tensors.items()}
