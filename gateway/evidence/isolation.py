"""Record isolation: how many people share the attributes that a policy keeps (k-anonymity over people)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

MAX_TOGETHER = 3  # attributes that are tried together when the isolating ones are named


@dataclass(frozen=True, slots=True)
class Isolation:
    """`k`: size of the smallest group. `alone`: people in groups below the wanted size. `isolating`: the smallest sets
    of attributes, by name, that already make such a group.
    """

    k: int
    people: int
    alone: int
    isolating: tuple[tuple[str, ...], ...]


def record_isolation(people: Sequence[Mapping[str, str]], *, wanted: int) -> Isolation:
    """Groups of people with equal values in every attribute; a missing one counts as a value of its own.

    Raises ValueError for no people. Values are compared, never told.
    """
    if not people:
        raise ValueError("record isolation needs people")
    names = sorted({name for person in people for name in person})
    groups = _groups(people, names)
    alone = sum(size for size in groups.values() if size < wanted)
    isolating: list[tuple[str, ...]] = []
    for together in range(1, min(MAX_TOGETHER, len(names)) + 1):
        for chosen in combinations(names, together):
            smaller = any(set(found) <= set(chosen) for found in isolating)
            if not smaller and min(_groups(people, chosen).values()) < wanted:
                isolating.append(chosen)
    return Isolation(min(groups.values()), len(people), alone, tuple(isolating))


def _groups(people: Sequence[Mapping[str, str]], names: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(person.get(name, "") for name in names) for person in people)
