"""Which policies another edition of PS3.15 would change, and how: the effective code under each policy's options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError, UsageError
from gateway.header.actions import code_of
from gateway.header.dictionary import dictionary
from gateway.header.stamp import MEANINGS
from gateway.header.structured import OPTION as STRUCTURED_CONTENT
from gateway.policy import HeaderPolicy, Policy, Row, load_policy
from gateway.policy.drift import Change, Drift, Kind, Table, drift
from gateway.policy.drift_docbook import read_file
from gateway.policy.drift_tables import SourceError
from gateway.policy.folder import DESTINATIONS, ROUTES
from gateway.policy.frozen import FrozenMap
from gateway.policy.model import SAFE_PRIVATE
from gateway.policy.standard import OPTION_CODES, OPTIONS, load_table

DEFAULT, LISTED, UNLISTED = "the default beyond the table", "safe", "not safe"


@dataclass(frozen=True, slots=True)
class Concern:
    """What a change does under a policy: the code that decides now, and the one that would."""

    change: Change
    now: str
    then: str


def read_drift(path: Path, against: str = "") -> Drift:
    """The drift of a DocBook file. Raises UsageError for one that this version cannot read, OSError."""
    try:
        other = read_file(path)
    except SourceError as error:
        hint = "give the DocBook XML of PS3.15 (part15.xml); a form that changed needs a newer version of this program"
        raise UsageError(f"{path}: {error}; {hint}") from None
    return drift(other, MEANINGS, against)


def policies_in(folder: Path) -> tuple[list[Policy], list[str]]:
    """Sound policies of a folder by name, and the names of files with faults: `policy check` tells of these."""
    sound, faulty = [], []
    for path in sorted(folder.glob("*.yaml")):
        if path.name in (ROUTES, DESTINATIONS):
            continue
        try:
            sound.append(load_policy(path, REGISTRY))
        except PolicyError:
            faulty.append(path.name)
    return sound, faulty


def concerns(policy: Policy, changes: Iterable[Change]) -> Iterator[Concern]:
    """What would be done otherwise under this policy if it named the other edition."""
    header = policy.header
    for change in changes:
        codes = _codes(change, header)
        if codes is not None and codes[0] != codes[1]:
            yield Concern(change, *codes)


def _codes(change: Change, header: HeaderPolicy) -> tuple[str, str] | None:
    """(now, then) under these options; None where the policy has nothing to do with the table."""
    if change.table is Table.ATTRIBUTES:
        return _attribute(change, header)
    if change.table is Table.CONTENT:
        if STRUCTURED_CONTENT not in header.options:
            return None
        return _content(change, header)
    if change.table is Table.SAFE_PRIVATE:
        only_words = change.kind is Kind.CHANGED and not any(change.cell("vr"))
        if SAFE_PRIVATE not in header.options or only_words:
            return None
        if change.kind is Kind.CHANGED:
            return change.cell("vr")
        return (UNLISTED, LISTED) if change.kind is Kind.ADDED else (LISTED, UNLISTED)
    claimed = {"113100", *(OPTION_CODES[option][0] for option in header.options)}
    return change.cell("meaning") if change.key in claimed else None


def _attribute(change: Change, header: HeaderPolicy) -> tuple[str, str]:
    if _hex(change.key) and int(change.key, 16) in header.kept_tags:
        return "K", "K"
    table = load_table(header.edition)
    now = table.get(change.key)
    old = _effective(now, header) if now is not None else DEFAULT
    new = DEFAULT if change.kind is Kind.REMOVED else _effective(_changed(change, now), header)
    return old, new


def _changed(change: Change, now: Row | None) -> Row:
    """The row as the other edition has it."""
    columns: dict[str, str] = dict(now.columns) if now is not None and change.kind is Kind.CHANGED else {}
    columns |= {column: new for column, _, new in change.cells if column in OPTIONS}
    columns = {option: code for option, code in columns.items() if code}
    basic = change.cell("basic")[1] or (now.basic if now is not None else "X")
    return Row(change.key, change.name, basic, FrozenMap(columns))


def _effective(row: Row, header: HeaderPolicy) -> str:
    code, option = code_of(row, header.options)
    return f"{code} ({option})" if option else code


def _content(change: Change, header: HeaderPolicy) -> tuple[str, str]:
    told = []
    for side, absent in ((1, Kind.ADDED), (2, Kind.REMOVED)):
        if change.kind is absent:
            told.append("judged by its value type")
            continue
        cells: Mapping[str, str] = {cell[0]: cell[side] for cell in change.cells}
        asked = [f"{cells[option]} ({option})" for option in sorted(header.options) if cells.get(option)]
        told.append(", ".join([cells.get("basic", ""), *asked]).strip(", "))
    return told[0], told[1]


def unknown_to_us(change: Change) -> bool:
    """True for an added attribute that this build's dictionary lacks: it is removed wherever it is met."""
    added = change.table is Table.ATTRIBUTES and change.kind is Kind.ADDED
    return added and _hex(change.key) and int(change.key, 16) not in dictionary()


def _hex(key: str) -> bool:
    return all(c in "0123456789ABCDEF" for c in key)
