"""What a training gives: tensors, the card that goes with them, and the lists of people it was trained on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from models.cards import Card, TrainedOn, people_hash, people_lines
from models.cohorts import Cohort

Tick = Callable[[str, int, int], None]  # what, done, in all


@dataclass(frozen=True, slots=True)
class Options:
    """How a run differs from the entry's own plan. `checkpoint` is written, and gone on from when it is there."""

    steps: int | None = None
    seed: int = 0
    checkpoint: Path | None = None


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


def lists_of(card: str, cohorts: Sequence[Cohort]) -> tuple[tuple[TrainedOn, ...], dict[str, bytes]]:
    """For a card: on whom it was trained, and the contents of its lists. Raises ValueError for a name twice."""
    parts: list[TrainedOn] = []
    files: dict[str, bytes] = {}
    for cohort in cohorts:
        name = re.sub(r"[^a-z0-9.-]", "-", cohort.name.lower())
        body = people_lines(cohort.name, cohort.subjects)
        file = f"{card}.{name}.txt"
        if file in files:
            raise ValueError(f"two cohorts are called {name}; a card has one list of people of each")
        files[file] = body
        parts.append(
            TrainedOn(
                cohort=name,
                people=len(cohort.subjects),
                people_file=file,
                people_sha256=hashlib.sha256(body).hexdigest(),
                synthetic=cohort.synthetic,
            )
        )
    return tuple(parts), files


def compact(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices and kernels in float16; vectors (norms' statistics among them) as they are."""
    return {name: (one.half() if one.ndim > 1 else one).contiguous() for name, one in tensors.items()}
