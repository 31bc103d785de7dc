"""One strict pass over an encoded data set (PS3.5 7 and A): every value with its path, nothing decoded.

Written for judging only and shared with no scrubber. Whatever does not add up raises `Malformed`, with one exception:
bytes that only look like items (UN and OB values, PS3.5 6.2.2) are tried as items, and stay one value when they are
none.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct

from pydicom.datadict import dictionary_VR, private_dictionary_VR

Buffer = bytes | mmap.mmap

ITEM, ITEM_END, SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD
UNDEFINED = 0xFFFFFFFF
MAX_DEPTH = 100  # nesting beyond this is an attack, not a report

LONG_VRS = frozenset({"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"})  # PS3.5 7.1.2
SHORT_VRS = frozenset(
    {
        *("AE", "AS", "AT", "CS", "DA", "DS", "DT", "FD", "FL", "IS", "LO", "LT"),
        *("PN", "SH", "SL", "SS", "ST", "TM", "UI", "UL", "US"),
    }
)
_LONG = frozenset(vr.encode() for vr in LONG_VRS)
_SHORT = frozenset(vr.encode() for vr in SHORT_VRS)
_LITTLE = (Struct("<HH").unpack_from, Struct("<H").unpack_from, Struct("<I").unpack_from)
_BIG = (Struct(">HH").unpack_from, Struct(">H").unpack_from, Struct(">I").unpack_from)


class Malformed(ValueError):
    """The bytes are not what their encoding promises. The text names the rule, never a value."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value: where it lies in `buffer` (offsets in bytes), under which tag, and how its text is to be decoded."""

    path: str
    tag: int
    vr: str
    buffer: Buffer
    start: int
    end: int
    charset: tuple[str, ...] = ()
    fragment: bool = False

    @property
    def raw(self) -> bytes:
        return self.buffer[self.start : self.end]

    @property
    def size(self) -> int:
        return self.end - self.start


@lru_cache(maxsize=1 << 14)
def tag_path(tag: int) -> str:
    """(gggg,eeee) in lower-case hex."""
    return f"({tag >> 16:04x},{tag & 0xFFFF:04x})"


@lru_cache(maxsize=1 << 14)
def standard_vr(tag: int) -> str:
    """VR by the standard's dictionary (repeating groups too); UN when it does not know the tag."""
    if tag & 0xFFFF == 0:
        return "UL"
    if (tag >> 16) & 1:
        return "LO" if 0x10 <= tag & 0xFFFF <= 0xFF else "UN"
    try:
        return dictionary_VR(tag)
    except KeyError:
        return "UN"


@lru_cache(maxsize=1 << 14)
def private_vr(tag: int, creator: str) -> str:
    """VR by pydicom's private dictionary; UN when it knows neither the creator nor the element."""
    try:
        return private_dictionary_VR(tag, creator)
    except KeyError:
        return "UN"


class Walk:
    """Reads `buffer` in one encoding, appends to `leaves`, and to `sequences` the path of each one that has items.

    `restart` is the offset behind the last top-level element that was read whole. With `ordered`, top-level tags must
    ascend (PS3.5 7.1), as they do in everything that we write.
    """

    def __init__(self, buffer: Buffer, *, implicit: bool, big: bool = False, ordered: bool = True) -> None:
        self.buffer, self.implicit, self.ordered = buffer, implicit, ordered
        self.tag_at, self.u16_at, self.u32_at = _BIG if big else _LITTLE
        self.leaves: list[Leaf] = []
        self.sequences: set[str] = set()
        self.restart = 0
        # Elements that may be read, shared with the walks that this one starts. A whole pass takes a byte in eight at
        # most; crafted bytes that fail as items again and again run out.
        self.budget = [len(buffer) // 4 + 10_000]

    def whole(self, at: int, end: int) -> None:
        """The top level: elements from `at` to exactly `end`."""
        self.restart = at
        self.dataset(at, end, "", (), 0, delimited=False)

    def head(self, at: int, end: int) -> tuple[int, str, int, int]:
        """Tag, VR ("" where the encoding has none), length, and the offset of the value."""
        self.budget[0] -= 1
        if end - at < 8 or self.budget[0] < 0:
            raise Malformed("an element head is cut short")
        group, element = self.tag_at(self.buffer, at)
        tag = group << 16 | element
        if self.implicit or group == 0xFFFE:
            return tag, "", self.u32_at(self.buffer, at + 4)[0], at + 8
        vr = self.buffer[at + 4 : at + 6]
        if vr in _SHORT:
            return tag, vr.decode(), self.u16_at(self.buffer, at + 6)[0], at + 8
        if vr not in _LONG or end - at < 12:
            raise Malformed("no VR of the standard where one must be")
        return tag, vr.decode(), self.u32_at(self.buffer, at + 8)[0], at + 12

    def dataset(self, at: int, end: int, prefix: str, charset: tuple[str, ...], depth: int, *, delimited: bool) -> int:
        """Elements from `at` to `end`, or to the item delimiter; gives the offset behind them."""
        if depth > MAX_DEPTH:
            raise Malformed("sequences are nested too deeply")
        creators: dict[int, str] = {}
        before = 0
        while at < end:
            tag, vr, length, at = self.head(at, end)
            if tag == ITEM_END and delimited:
                if length:
                    raise Malformed("a delimiter has a length")
                return at
            if tag >> 16 in (0x0000, 0x0002, 0xFFFE) or (self.ordered and not depth and tag <= before):
                raise Malformed("an element that cannot stand here")
            before = tag
            stop = self.value(
                tag, self.vr_of(tag, vr, creators), length, at, end, prefix + tag_path(tag), charset, depth
            )
            if tag == 0x00080005:
                charset = tuple(word.strip() for word in self.word(at, stop).split("\\"))
            elif (tag >> 16) & 1 and 0x10 <= tag & 0xFFFF <= 0xFF:
                creators[tag & 0xFFFF0000 | (tag & 0xFF) << 8] = self.word(at, stop)
            at = stop
            if not depth:
                self.restart = at
        if delimited:
            raise Malformed("an item has no end")
        return at

    def word(self, at: int, end: int) -> str:
        return self.buffer[at : min(end, at + 256)].decode("latin-1").strip(" \0")

    def vr_of(self, tag: int, vr: str, creators: dict[int, str]) -> str:
        """The stated VR; by dictionary where none is stated, or UN is and the dictionary knows a kind of text."""
        if vr not in ("", "UN"):
            return vr
        known = standard_vr(tag)
        if known == "UN" and (creator := creators.get(tag & 0xFFFFFF00)):
            known = private_vr(tag, creator)
            known = "UN" if known == "SQ" else known  # a dictionary's word is not enough to insist on items
        return known if not vr or known in SHORT_VRS or known in ("UC", "UR", "UT") else "UN"

    def value(
        self, tag: int, vr: str, length: int, at: int, end: int, path: str, charset: tuple[str, ...], depth: int
    ) -> int:
        """One value; gives the offset behind it."""
        if length == UNDEFINED:
            if vr in ("OB", "OW", "OB or OW") and not self.implicit:
                return self.fragments(at, end, tag, path)
            if vr not in ("SQ", "UN"):
                raise Malformed("an undefined length where none may be")
            inner = self if vr == "SQ" else self.another(implicit=True)
            return inner.items(at, end, path, charset, depth, delimited=True)
        stop = at + length
        if stop > end:
            raise Malformed("a value is longer than what holds it")
        if vr == "SQ":
            if not self.attempt(self, at, stop, path, charset, depth):
                # Written as UN once, then given its VR back: the items stayed implicit.
                self.another(implicit=True).items(at, stop, path, charset, depth, delimited=False)
            return stop
        self.leaves.append(Leaf(path, tag, vr, self.buffer, at, stop, charset))
        if vr in ("UN", "OB") and self.buffer[at : at + 4] in (b"\xfe\xff\x00\xe0", b"\xff\xfe\xe0\x00"):
            walks = (self.another(implicit=True), self if not self.implicit else self.another(implicit=False))
            any(self.attempt(walk, at, stop, path, charset, depth) for walk in walks)
        return stop

    def another(self, *, implicit: bool) -> Walk:
        """A little-endian walk of the other kind over the same buffer into the same lists."""
        walk = Walk(self.buffer, implicit=implicit)
        walk.leaves, walk.sequences, walk.budget = self.leaves, self.sequences, self.budget
        return walk

    def attempt(self, walk: Walk, at: int, end: int, path: str, charset: tuple[str, ...], depth: int) -> bool:
        """Try a value as items of defined length; True when it is. Leaves nothing behind when it is not."""
        count = len(self.leaves)
        try:
            walk.items(at, end, path, charset, depth, delimited=False)
        except Malformed:
            if self.budget[0] < 0:
                raise
            del self.leaves[count:]
            self.sequences.difference_update([known for known in self.sequences if known.startswith(path)])
            return False
        return True

    def items(self, at: int, end: int, path: str, charset: tuple[str, ...], depth: int, *, delimited: bool) -> int:
        """The items of a sequence; gives the offset behind it."""
        index = 0
        while at < end:
            tag, _, length, at = self.head(at, end)
            if tag == SEQUENCE_END and delimited:
                if length:
                    raise Malformed("a delimiter has a length")
                return at
            stop = end if length == UNDEFINED else at + length
            if tag != ITEM or stop > end:
                raise Malformed("no item, or one longer than its sequence")
            self.sequences.add(path)
            at = self.dataset(at, stop, f"{path}[{index}].", charset, depth + 1, delimited=length == UNDEFINED)
            index += 1
        if delimited:
            raise Malformed("a sequence has no end")
        return at

    def fragments(self, at: int, end: int, tag: int, path: str) -> int:
        """Encapsulated pixel data: item 0 is the Basic Offset Table (PS3.5 A.4)."""
        index = 0
        while True:
            item, _, length, at = self.head(at, end)
            if item == SEQUENCE_END and not length:
                return at
            if item != ITEM or at + length > end:
                raise Malformed("fragments do not add up")
            self.leaves.append(Leaf(f"{path}[{index}]", tag, "OB", self.buffer, at, at + length, fragment=True))
            at += length
            index += 1
