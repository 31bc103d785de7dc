"""What another edition of PS3.15 changes against the tables that are shipped: rows, codes, lists, method codes.

Pure comparison of rows in the form of the data files. What a change means for a policy is worked out above, where the
header's decisions are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.errors import UsageError
from gateway.policy.drift_docbook import Tables
from gateway.policy.drift_tables import Rows
from gateway.policy.standard import (
    CONTENT_TABLE,
    SAFE_TABLE,
    TABLE,
    dated_file,
    editions,
    keyword_of_tag,
    parse_options,
    read_dated,
)


class Table(StrEnum):
    """The tables that are compared."""

    ATTRIBUTES = "Table E.1-1"
    CONTENT = "Table E.3.4-1"
    SAFE_PRIVATE = "Table E.3.10-1"
    METHODS = "CID 7050"


class Kind(StrEnum):
    """What became of a row."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One row that differs. `key` names it within its table, `name` in words; `cells` are (column, old, new).

    A column is "basic", an option's name, or another field of the data file. Of an added row the old cells are "", of a
    removed one the new ones.
    """

    table: Table
    kind: Kind
    key: str
    name: str
    cells: tuple[tuple[str, str, str], ...]

    def cell(self, column: str) -> tuple[str, str]:
        """(old, new) of a column, ("", "") where it did not change."""
        return next(((old, new) for name, old, new in self.cells if name == column), ("", ""))


@dataclass(frozen=True, slots=True)
class Drift:
    """`edition` is that of the other file, "" where it does not say; `against` the shipped one. `absent` are tables
    that the file has not and about which nothing is known.
    """

    edition: str
    against: str
    changes: tuple[Change, ...]
    absent: tuple[Table, ...]
    rows: Mapping[Table, int]


def drift(other: Tables, methods: Mapping[str, str], against: str = "") -> Drift:
    """`methods` are the shipped meanings by code of CID 7050. Raises UsageError for an edition that is not shipped."""
    edition = against or editions()[-1]
    if edition not in editions():
        raise UsageError(f"no edition {edition} of PS3.15 Table E.1-1 here; there is: {', '.join(editions())}")
    changes: list[Change] = []
    absent: list[Table] = []
    rows: dict[Table, int] = {}
    for table, found, shipped, key, name in (
        (Table.ATTRIBUTES, other.attributes, TABLE, _tag, _attribute),
        (Table.CONTENT, other.content, CONTENT_TABLE, _concept, _meaning),
        (Table.SAFE_PRIVATE, other.safe_private, SAFE_TABLE, _private, _meaning),
    ):
        if found is None:
            absent.append(table)
            continue
        rows[table] = len(found)
        _, old = read_dated(dated_file(shipped, edition))
        changes += _compared(table, old, found, key, name)
    if other.methods is None:
        absent.append(Table.METHODS)
    else:
        rows[Table.METHODS] = len(other.methods)
        old, new = (
            [{"code": code, "meaning": meaning} for code, meaning in codes.items()]
            for codes in (methods, other.methods)
        )
        changes += _compared(Table.METHODS, old, new, lambda row: row["code"], _meaning)
    return Drift(other.edition, edition, tuple(changes), tuple(absent), rows)


def _tag(row: Mapping[str, str]) -> str:
    return row["tag"]


def _concept(row: Mapping[str, str]) -> str:
    return f"({row['code']}, {row['scheme']}) {row['value_type']}"


def _private(row: Mapping[str, str]) -> str:
    return f"({row['group']},xx{row['element']}) {row['creator']}"


def _meaning(row: Mapping[str, str]) -> str:
    return row["meaning"]


def _attribute(row: Mapping[str, str]) -> str:
    if row["keyword"] or not row["tag"].isalnum() or "x" in row["tag"] or "g" in row["tag"]:
        return row["keyword"]
    return keyword_of_tag(int(row["tag"], 16))


_Words = Callable[[Mapping[str, str]], str]
_NAMES = frozenset({"tag", "keyword", "code", "scheme", "value_type", "creator", "group", "element", "options"})


def _cells(row: Mapping[str, str]) -> dict[str, str]:
    """What of a row can change: an option a column, spaces in texts told alike."""
    cells = {name: " ".join(value.split()) for name, value in row.items() if name not in _NAMES}
    return cells | dict(parse_options(row.get("options", "")))


def _compared(table: Table, old: Rows, new: Rows, key: _Words, name: _Words) -> Iterator[Change]:
    """Changes in the order of the keys. Several rows of one key are compared as a whole."""
    before, after = _by_key(old, key), _by_key(new, key)
    for place in sorted({*before, *after}):
        olds, news = before.get(place, []), after.get(place, [])
        words = name((news or olds)[0])
        gone = [row for row in map(_cells, olds) if row not in [_cells(other) for other in news]]
        come = [row for row in map(_cells, news) if row not in [_cells(other) for other in olds]]
        for was, now in zip(gone, come, strict=False):
            cells = [(column, was.get(column, ""), now.get(column, "")) for column in {**was, **now}]
            yield Change(table, Kind.CHANGED, place, words, tuple(cell for cell in cells if cell[1] != cell[2]))
        for row in gone[len(come) :]:
            yield Change(table, Kind.REMOVED, place, words, tuple((column, cell, "") for column, cell in row.items()))
        for row in come[len(gone) :]:
            yield Change(table, Kind.ADDED, place, words, tuple((column, "", cell) for column, cell in row.items()))


def _by_key(rows: Sequence[Mapping[str, str]], key: _Words) -> Mapping[str, list[Mapping[str, str]]]:
    found: defaultdict[str, list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found
