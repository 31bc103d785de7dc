"""An original and its candidate side by side: every element of both, at every depth, and what became of it.

What became of an element is read off the two files, not off the plan: a preview shows what was done. The values are
identifying; nothing here is logged or stored.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from gateway.app.preview.items import matched
from gateway.app.preview.sides import NOTHING, Key, Side, file_meta, same
from gateway.app.preview.values import bulk

PREAMBLE = "preamble"  # the path of the row that tells of it
MOST_ITEMS = 40  # of one sequence are listed; what happened in the others is counted


class Outcome(StrEnum):
    """What became of an element."""

    KEPT = "kept"
    INSIDE = "changed inside"  # a sequence of which something went or changed
    REPLACED = "replaced"
    EMPTIED = "emptied"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a data set is: `path` is "" at top level, else such as "00081115[1]/"; `sequence` is the tag around it, 0
    at top level; `item` is the data set itself, as it was.
    """

    path: str = ""
    depth: int = 0
    sequence: int = 0
    item: Side = NOTHING


@dataclass(frozen=True, slots=True)
class Row:
    """One element, or (`number` above 0) one item of a sequence, whose tag is that of the sequence.

    `before` and `after` are None where there is nothing. `code` is the action code of PS3.15 that decided, "" where
    none did. `number` -1 stands for items that are counted only.
    """

    path: str
    depth: int
    tag: int
    vr: str
    creator: str
    before: str | None
    after: str | None
    outcome: Outcome
    number: int = 0
    code: str = ""
    why: str = ""


class Reasons(Protocol):
    """Says why something became what it is: (action code, words)."""

    def of_element(self, row: Row, place: Place) -> tuple[str, str]: ...

    def of_item(self, row: Row, place: Place) -> tuple[str, str]: ...


class Comparison:
    """All rows of one file. `counts` tells elements by outcome, those that no row lists included."""

    def __init__(self, reasons: Reasons, *, most_items: int = MOST_ITEMS) -> None:
        self.counts: Counter[Outcome] = Counter()
        self._reasons = reasons
        self._most_items = most_items

    def rows(self, before: Path, after: Path) -> list[Row]:
        """Raises Hold for a file that cannot be read whole, OSError from the file system."""
        old_preamble, old_meta = file_meta(before)
        _, new_meta = file_meta(after)
        rows = self._data_set(old_meta, new_meta, Place())
        if any(old_preamble):
            row = Row(PREAMBLE, 0, 0x00020000, "", "", bulk(old_preamble), "zeros", Outcome.REPLACED)
            rows.insert(0, self._told(row, Place()))
        return rows + self._data_set(Side.of_file(before), Side.of_file(after), Place())

    def _data_set(self, before: Side, after: Side, place: Place) -> list[Row]:
        keys = sorted({*before.elements, *after.elements})
        return [row for key in keys for row in self._element(key, before, after, place)]

    def _element(self, key: Key, before: Side, after: Side, place: Place) -> list[Row]:
        tag = key[0]
        creator = before.creator(tag) or after.creator(tag)
        items = [side.items(key, creator, place.depth) for side in (before, after)]
        if items != [None, None]:
            return self._sequence(key, before, after, items, place)
        vr = (before if key in before.elements else after).vr(key, creator)
        texts = [side.text(key, vr) for side in (before, after)]
        outcome = _outcome(before.value(key), after.value(key))
        if outcome is Outcome.REPLACED and before.reader is not None and after.reader is not None:
            reordered = before.reader.syntax.big is not after.reader.syntax.big
            outcome = Outcome.KEPT if reordered and texts[0] == texts[1] else outcome
        row = Row(f"{place.path}{tag:08X}", place.depth, tag, vr, creator, texts[0], texts[1], outcome)
        return [self._told(row, place)]

    def _sequence(
        self, key: Key, before: Side, after: Side, items: Sequence[list[Side] | None], place: Place
    ) -> list[Row]:
        """The row of a sequence, then those of its items."""
        tag, creator = key[0], before.creator(key[0]) or after.creator(key[0])
        path = f"{place.path}{tag:08X}"
        old, new = (one or [] for one in items)
        below: list[Row] = []
        inside: list[Outcome] = []
        hidden: Counter[Outcome] = Counter()
        for number, (i, j) in enumerate(matched([side.marks for side in old], [side.marks for side in new]), 1):
            one = old[i] if i is not None else NOTHING
            other = new[j] if j is not None else NOTHING
            within = Place(f"{path}[{number}]/", place.depth + 2, tag, one if i is not None else other)
            found = self._data_set(one, other, within)
            outcome = _of_item(i, j, found)
            inside.append(outcome)
            if number > self._most_items:
                hidden.update(row.outcome for row in found if not row.number)
                continue
            row = Row(f"{path}[{number}]", place.depth + 1, tag, "", creator, None, None, outcome, number)
            code, why = self._reasons.of_item(row, within)
            below.append(dataclasses.replace(row, code=code, why=why))
            below += found if outcome not in _ALONE else _gone_with(found, "item", outcome)
        there = [key in side.elements for side in (before, after)]
        outcome = _of_sequence(there, bool(old) and not new, inside)
        texts = [_count(len(side)) if present else None for side, present in zip((old, new), there, strict=True)]
        head = self._told(Row(path, place.depth, tag, "SQ", creator, texts[0], texts[1], outcome), place)
        if outcome in _ALONE or outcome is Outcome.EMPTIED:
            below = _gone_with(below, "sequence", outcome)
        if hidden:
            words = ", ".join(f"{count} {outcome}" for outcome, count in sorted(hidden.items()))
            text = f"{len(inside) - self._most_items} more items, not listed; in them {words}"
            rest = Outcome.KEPT if set(hidden) == {Outcome.KEPT} else Outcome.INSIDE
            below.append(Row(f"{path}[more]", place.depth + 1, tag, "", creator, text, None, rest, -1))
        return [head, *below]

    def _told(self, row: Row, place: Place) -> Row:
        self.counts[row.outcome] += 1
        code, why = self._reasons.of_element(row, place)
        return dataclasses.replace(row, code=code, why=why)


_ALONE = frozenset({Outcome.REMOVED, Outcome.ADDED})


def _gone_with(rows: Iterable[Row], around: str, outcome: Outcome) -> list[Row]:
    verb = "comes" if outcome is Outcome.ADDED else "goes"
    return [dataclasses.replace(row, code="", why=f"{verb} with its {around}") for row in rows]


def _outcome(before: memoryview | None, after: memoryview | None) -> Outcome:
    if before is None:
        return Outcome.ADDED
    if after is None:
        return Outcome.REMOVED
    if same(before, after):
        return Outcome.KEPT
    return Outcome.REPLACED if len(after) else Outcome.EMPTIED


def _of_item(i: int | None, j: int | None, found: Sequence[Row]) -> Outcome:
    if j is None:
        return Outcome.REMOVED
    if i is None:
        return Outcome.ADDED
    return Outcome.KEPT if all(row.outcome is Outcome.KEPT for row in found) else Outcome.INSIDE


def _of_sequence(there: Sequence[bool], emptied: bool, inside: Sequence[Outcome]) -> Outcome:  # noqa: FBT001
    if not there[0]:
        return Outcome.ADDED
    if not there[1]:
        return Outcome.REMOVED
    if emptied:
        return Outcome.EMPTIED
    return Outcome.KEPT if all(one is Outcome.KEPT for one in inside) else Outcome.INSIDE


def _count(items: int) -> str:
    return f"{items} item" if items == 1 else f"{items} items"
