"""One data set of one file, read for comparison: its elements, its items, its characters, its private creators.

Read with the header's own tokenizer, so that a preview sees exactly the elements that were judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.app.preview.items import Marks
from gateway.app.preview.values import shown
from gateway.header.descriptors import CHARACTER_SET
from gateway.header.dictionary import dictionary, is_private, repeating_form
from gateway.header.elements import EXPLICIT_LITTLE, Element, Item, Malformed, Reader, is_sequence
from gateway.header.items import value_of
from gateway.header.private_blocks import creators_of
from gateway.header.source import open_source, top_level
from gateway.policy.private_lists import creator_key, vr_of

MARK_BYTES = 128  # of a value, for telling which item is which
META_BYTES = 1 << 16  # a file meta group that is longer is not shown to its end
CHUNK_BYTES = 1 << 20
PREAMBLE_BYTES, PREFIX = 128, b"DICM"

Key = tuple[int, int]  # tag, and which one of several: twice the same tag in an item is wrong, and happens


@dataclass(frozen=True, slots=True)
class Side:
    """One data set. `creators` are by group and block of private elements."""

    elements: Mapping[Key, Element] = field(default_factory=dict)
    reader: Reader | None = None
    character_set: bytes = b""
    creators: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, elements: Iterable[Element], reader: Reader, character_set: bytes) -> Side:
        """`character_set` is that of the data set around it, for one that declares none."""
        found: dict[Key, Element] = {}
        seen: Counter[int] = Counter()
        for element in elements:
            found[element.tag, seen[element.tag]] = element
            seen[element.tag] += 1
        every = tuple(found.values())
        creators: dict[tuple[int, int], str] = {}
        for group in {element.tag >> 16 for element in every if is_private(element.tag)}:
            run = [element for element in every if element.tag >> 16 == group]
            creators |= {(group, block): name for block, name in creators_of(run, reader).items()}
        return cls(found, reader, value_of(every, CHARACTER_SET, reader) or character_set, creators)

    @classmethod
    def of_file(cls, path: Path) -> Side:
        """The data set of a file. Raises Hold for one that cannot be read whole, OSError from the file system."""
        reader, elements, _ = top_level(open_source(path))
        return cls.of(elements, reader, b"")

    def creator(self, tag: int) -> str:
        """The creator of a private element, or the one that a reserving element names; "" for none."""
        if not is_private(tag):
            return ""
        return self.creators.get((tag >> 16, tag >> 8 & 0xFF if tag & 0xFF00 else tag & 0xFF), "")

    def value(self, key: Key) -> memoryview | None:
        """The value field; None where there is no such element."""
        element = self.elements.get(key)
        if element is None or self.reader is None:
            return None
        return memoryview(self.reader.buffer)[element.start : element.end]

    def text(self, key: Key, vr: str) -> str | None:
        """The value for a person to read; None where there is no such element."""
        element = self.elements.get(key)
        if element is None or self.reader is None:
            return None
        return shown(vr, element, self.reader, self.character_set)

    def vr(self, key: Key, creator: str) -> str:
        """The file's own word for the VR, else that of PS3.6 and of the private lists."""
        tag = key[0]
        said = self.elements[key].vr if key in self.elements else ""
        if said and said != "UN":
            return said
        entry = dictionary().get(tag)
        if entry is not None:
            return entry.vr
        if is_private(tag) and not tag & 0xFF00:
            return "LO"
        if creator:
            return vr_of((creator_key(creator), tag >> 16, tag & 0xFF)) or "UN"
        return "UL" if not tag & 0xFFFF else "OW" if repeating_form(tag) else "UN"

    @property
    def marks(self) -> Marks:
        """What an item can be told by: which attributes it has, and their short values."""
        present = {(tag, b"") for tag, _ in self.elements}
        return frozenset(present | {(key[0], bytes(self.value(key) or b"")[:MARK_BYTES]) for key in self.elements})

    def items(self, key: Key, creator: str, depth: int) -> list[Side] | None:
        """The items of a sequence; None for an element that is none, or that cannot be read as one."""
        element, reader = self.elements.get(key), self.reader
        if element is None or reader is None or not _is_sequence(element, creator):
            return None
        for inner in (reader.implicit_little, reader) if element.vr == "UN" else (reader,):
            try:
                items = element.items
                if items is None:
                    items = inner.items(element.start, element.end, depth, delimited=False)
                return [self._item(item, inner, depth + 1) for item in items]
            except Malformed:
                continue
        return None

    def _item(self, item: Item, inner: Reader, depth: int) -> Side:
        reader = Reader(inner.buffer, item.syntax) if item.undefined else inner
        elements = item.elements if item.elements is not None else reader.elements(item.start, item.end, depth)
        return Side.of(elements, reader, self.character_set)


NOTHING = Side()


def _is_sequence(element: Element, creator: str) -> bool:
    if element.vr not in ("", "SQ", "UN") or (element.undefined and element.items is None):
        return False
    if is_sequence(element):
        return True
    return bool(creator) and vr_of((creator_key(creator), element.tag >> 16, element.tag & 0xFF)) == "SQ"


def file_meta(path: Path) -> tuple[bytes, Side]:
    """The preamble, b"" without one, and group 0002, which is always explicit VR little endian (PS3.10 7.1)."""
    with open(path, "rb") as file:
        preamble = file.read(PREAMBLE_BYTES)
        if file.read(len(PREFIX)) != PREFIX:
            return b"", NOTHING
        data = memoryview(file.read(META_BYTES))
    reader = Reader(data, EXPLICIT_LITTLE)
    elements: list[Element] = []
    at = 0
    while bytes(data[at : at + 2]) == b"\x02\x00":
        try:
            elements.append(reader.element(at, len(data)))
        except Malformed:
            break
        at = elements[-1].stop
    return preamble, Side.of(elements, reader, b"")


def same(one: memoryview, other: memoryview) -> bool:
    """True for equal value fields, padding aside; gigabytes are compared without a copy of them."""
    if abs(len(one) - len(other)) > 1:
        return _bare(one) == _bare(other) if max(len(one), len(other)) <= CHUNK_BYTES else False
    length = min(len(one), len(other))
    for at in range(0, length - 1, CHUNK_BYTES):
        stop = min(at + CHUNK_BYTES, length - 1)
        if bytes(one[at:stop]) != bytes(other[at:stop]):
            return False
    start = max(length - 1, 0)
    return _bare(one[start:]) == _bare(other[start:])


def _bare(value: memoryview) -> bytes:
    return bytes(value).rstrip(b" \0")
