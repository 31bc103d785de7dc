"""Which study and instance a received data set belongs to, read out of the file just written.

A struct walk over the top-level elements up to (0020,1208) answers for nearly every object in some 50 microseconds.
What it does not understand goes the slow way through pydicom; a property test holds the two equal. Memory is bounded
whatever the object's size: a growing head of the file, or of what a deflated file inflates to. Values go into keyed
hashes only.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from pydicom import dcmread
from pydicom.errors import InvalidDicomError

STUDY_INSTANCE_UID, SOP_INSTANCE_UID, RELATED_INSTANCES = 0x0020000D, 0x00080018, 0x00201208
WANTED = (STUDY_INSTANCE_UID, SOP_INSTANCE_UID, RELATED_INSTANCES)
_WANTED = frozenset(WANTED)
LARGEST_COUNT = (1 << 31) - 1

_HEADS = (16 << 10, 1 << 20, 16 << 20)  # bytes looked at, one after another
_DEFLATED = frozenset(
    # Deflated Explicit VR, JPIP Referenced Deflate, JPIP HTJ2K Referenced Deflate (PS3.5 A.5, A.6, A.7)
    ("1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.4.95", "1.2.840.10008.1.2.4.205")
)
_IMPLICIT = frozenset(("1.2.840.10008.1.2", "1.2.840.10008.1.20"))
_BIG_ENDIAN = "1.2.840.10008.1.2.2"
_LONG_VRS = frozenset((b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV"))
_SHORT_VRS = frozenset(
    b"AE AS AT CS DA DS DT FD FL IS LO LT PN SH SL SS ST TM UI UL US".split()  # PS3.5 7.1.2
)
_UNDEFINED = 0xFFFFFFFF
_ITEM, _ITEM_END, _SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD
# What pydicom raises over bytes that are no data set: it has no single root for them.
_PYDICOM_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    InvalidDicomError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class Identity:
    """UIDs as sent, without padding; `sop_instance_uid` may be "". `expected` instances in the study, 0 = not told."""

    study_instance_uid: str
    sop_instance_uid: str
    expected: int


class Short(Exception):
    """The head ends before the walk does."""


class NotUnderstood(Exception):
    """Something the walk leaves to pydicom."""


def identify(path: Path, *, offset: int, syntax: str) -> Identity | None:
    """Of the file whose data set begins at `offset`; None when it cannot be told. Never raises for any content.

    Raises OSError when the file itself cannot be read.
    """
    with open(path, "rb", buffering=0) as file:
        for size in _HEADS:
            try:
                head, whole = _head(file.fileno(), offset, size, deflated=syntax in _DEFLATED)
                return _identity(walk(head, whole=whole, syntax=syntax))
            except Short:
                continue
            except (NotUnderstood, zlib.error):
                break
    # pydicom inflates all of a file at once, whatever it grows to: not for bytes of strangers.
    return None if syntax in _DEFLATED else _identity(_by_pydicom(path))


def _head(handle: int, offset: int, size: int, *, deflated: bool) -> tuple[bytes, bool]:
    """At most `size` bytes of the data set, and whether that is all of it. Raises zlib.error."""
    if not deflated:
        head = os.pread(handle, size, offset)
        return head, len(head) < size
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    out = bytearray()
    while len(out) < size and not inflater.eof:
        compressed = inflater.unconsumed_tail
        if not compressed:
            compressed = os.pread(handle, 64 << 10, offset)
            offset += len(compressed)
        if not compressed:
            break
        out += inflater.decompress(compressed, size - len(out))
    return bytes(out), inflater.eof


def _identity(values: dict[int, bytes]) -> Identity | None:
    study, sop, count = (values.get(tag, b"").decode("latin-1").strip(" \0") for tag in WANTED)
    if not study:
        return None
    expected = int(count) if count.isascii() and count.isdigit() and len(count) <= 12 else 0
    return Identity(study, sop, expected if expected <= LARGEST_COUNT else 0)


def walk(head: bytes, *, whole: bool, syntax: str) -> dict[int, bytes]:
    """Raw values of WANTED. Raises Short when `head` is too short and not `whole`, NotUnderstood for anything odd."""
    return _Walk(head, whole=whole, explicit=syntax not in _IMPLICIT, order=">" if syntax == _BIG_ENDIAN else "<").run()


class _Walk:
    """A position in encoded elements."""

    def __init__(self, head: bytes, *, whole: bool, explicit: bool, order: str) -> None:
        self._head = head
        self._whole = whole
        self._explicit = explicit
        self._tag = struct.Struct(order + "HH").unpack_from
        self._long = struct.Struct(order + "I").unpack_from
        self._short = struct.Struct(order + "H").unpack_from
        self._plain = struct.Struct(order + "HH2xH").unpack_from  # an element with a short VR
        self._at = 0

    def _require(self, size: int) -> None:
        if self._at + size > len(self._head):
            raise NotUnderstood if self._whole else Short

    def _element(self) -> tuple[int, int, bytes]:
        """Tag, length and VR (b"" when implicit or delimiter); the position is then at the value."""
        self._require(8)
        group, number = self._tag(self._head, self._at)
        tag = group << 16 | number
        if not self._explicit or group == 0xFFFE:
            length = self._long(self._head, self._at + 4)[0]
            self._at += 8
            return tag, length, b""
        vr = self._head[self._at + 4 : self._at + 6]
        if vr in _SHORT_VRS:
            length = self._short(self._head, self._at + 6)[0]
            self._at += 8
        elif vr in _LONG_VRS:
            self._require(12)
            length = self._long(self._head, self._at + 8)[0]
            self._at += 12
        else:
            raise NotUnderstood
        return tag, length, vr

    def run(self) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        head, size, plain = self._head, len(self._head), self._plain
        last = -1
        vr = head[4:6]
        if not self._explicit and vr.isalpha() and vr.isupper():
            raise NotUnderstood  # explicit VR under an implicit name; pydicom looks at the same two bytes
        while not (self._whole and self._at == size):
            at = self._at
            if (
                self._explicit and at + 8 <= size and head[at + 4 : at + 6] in _SHORT_VRS
            ):  # nearly all: no call for each
                group, number, length = plain(head, at)
                tag = group << 16 | number
                self._at = at + 8
            else:
                tag, length, vr = self._element()
            if tag <= last:
                raise NotUnderstood  # out of order: pydicom reads on to the end
            if tag > RELATED_INSTANCES:
                break
            last = tag
            if length == _UNDEFINED:
                self._skip_sequence(vr)
                continue
            if tag in _WANTED:
                self._require(length)
                found[tag] = head[self._at : self._at + length]
            self._at += length
        if STUDY_INSTANCE_UID not in found:
            raise NotUnderstood
        return found

    def _skip_sequence(self, vr: bytes) -> None:
        """To the end of a sequence of undefined length, at any depth, without recursion."""
        if self._explicit and vr != b"SQ":
            raise NotUnderstood  # UN of undefined length holds implicit items (PS3.5 6.2.2)
        open_ends = [_SEQUENCE_END]
        while open_ends:
            tag, length, vr = self._element()
            if tag == open_ends[-1]:
                open_ends.pop()
            elif open_ends[-1] == _SEQUENCE_END:
                if tag != _ITEM:
                    raise NotUnderstood
                if length == _UNDEFINED:
                    open_ends.append(_ITEM_END)
                else:
                    self._at += length
            elif tag >> 16 == _ITEM >> 16:
                raise NotUnderstood  # a delimiter of something else
            elif length == _UNDEFINED:
                if self._explicit and vr != b"SQ":
                    raise NotUnderstood
                open_ends.append(_SEQUENCE_END)
            else:
                self._at += length


def _by_pydicom(path: Path) -> dict[int, bytes]:
    """The same by pydicom; empty when it cannot read the file either. Raw values: nothing is converted or quoted."""
    try:
        dataset = dcmread(path, specific_tags=list(WANTED), stop_before_pixels=True)
        values = {tag: dataset.get_item(tag).value for tag in WANTED if tag in dataset}
    except _PYDICOM_ERRORS:
        return {}
    return {tag: value for tag, value in values.items() if isinstance(value, bytes)}
