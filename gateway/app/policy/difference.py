"""What differs between two policies attribute by attribute, and in what they make of the same files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.app.preview.files import FilePreview
from gateway.app.preview.rows import Row
from gateway.header import describe
from gateway.policy import HeaderPolicy

NOWHERE = "not told of"  # an attribute that only one policy's edition has


@dataclass(frozen=True, slots=True)
class TagChange:
    """Attributes that one policy treats in one way and the other in another: (tag, keyword) in tag order."""

    old: str
    new: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ResultChange:
    """One element that leaves otherwise. A side is None where its policy lets nothing of the file leave."""

    path: str
    old: Row | None
    new: Row | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """What differs of one file: what becomes of it as a whole ("" = leaves), and elements."""

    file: Path
    old: str
    new: str
    elements: tuple[ResultChange, ...]


def tag_changes(first: HeaderPolicy, second: HeaderPolicy) -> list[TagChange]:
    """Attributes by what changes for them; the reason alone is no change. Most attributes first."""
    old, new = ({line.tag: line for line in describe(header)} for header in (first, second))
    found: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for tag in sorted({*old, *new}):
        was, now = (side[tag].action if tag in side else NOWHERE for side in (old, new))
        if was != now:
            found[was, now].append((tag, (new.get(tag) or old[tag]).keyword))
    changes = [TagChange(was, now, tuple(attributes)) for (was, now), attributes in found.items()]
    return sorted(changes, key=lambda change: (-len(change.attributes), change.old, change.new))


def file_changes(first: Sequence[FilePreview], second: Sequence[FilePreview]) -> Iterator[FileChange]:
    """Files of which something differs. Both previews are of the same files, with the same pseudonyms."""
    for old, new in zip(first, second, strict=True):
        elements = tuple(_elements(old, new)) if not old.reason and not new.reason else ()
        if elements or _verdict(old) != _verdict(new):
            yield FileChange(old.file, _verdict(old), _verdict(new), elements)


def _verdict(one: FilePreview) -> str:
    if one.leaves:
        return ""
    return one.reason or ("held with its study" if one.held_by is not None else one.gate_reason)


def _elements(old: FilePreview, new: FilePreview) -> Iterator[ResultChange]:
    """Rows of elements, not of items, whose value afterwards differs or is in one of the two alone."""
    before, after = _by_path(old.rows), _by_path(new.rows)
    for path in sorted({*before, *after}):
        was, now = before.get(path), after.get(path)
        if (was.after if was else None) != (now.after if now else None):
            yield ResultChange(path, was, now)


def _by_path(rows: Sequence[Row]) -> Mapping[str, Row]:
    return {row.path: row for row in rows if not row.number}
