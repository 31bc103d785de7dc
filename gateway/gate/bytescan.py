"""Where every byte of a DICOM file lies (PS3.10 7.1): preamble, file meta, data set, and what is left over.

The gate reads with this scan and with pydicom, never with the scrubber's reader. Places are written

    (0040,a730)[2].(0040,a160)    element in item 2 (counted from 0) of a sequence
    (7fe0,0010)[1]                fragment: item 1 of encapsulated pixel data, item 0 being the offset table
    bytes:preamble                the first 128 bytes
    bytes:after-data-set          whatever follows the last element that could be read
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from gateway.gate.walk import LONG_VRS, SHORT_VRS, Buffer, Leaf, Malformed, Walk

IMPLICIT_LITTLE = "1.2.840.10008.1.2"
EXPLICIT_BIG = "1.2.840.10008.1.2.2"
DEFLATED = "1.2.840.10008.1.2.1.99"
GE_IMPLICIT = "1.2.840.113619.5.2"  # implicit little endian with big-endian pixels

PREAMBLE = "bytes:preamble"
TAIL = "bytes:after-data-set"
AFTER_END = "bytes after the data set"
MAX_INFLATED_BYTES = 1 << 30
IN_MEMORY_BYTES = 64 << 20
KEPT_BYTES = 128 << 20  # of the files and leaves that are kept while one job is judged
LEAF_BYTES = 400  # of one leaf's Python objects, about


@dataclass(slots=True)
class Scan:
    """A whole file. `malformed` says which rule the bytes break, "" when everything adds up."""

    file: Buffer
    meta: list[Leaf] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    sequences: set[str] = field(default_factory=set)  # paths of sequences that have items
    dataset_start: int = 0  # offset in `file`, bytes
    tail: Leaf | None = None
    malformed: str = ""

    @property
    def preamble(self) -> Leaf:
        return Leaf(PREAMBLE, 0, "UN", self.file, 0, min(128, len(self.file)))

    @property
    def transfer_syntax(self) -> str:
        return self.text(0x00020010)

    @property
    def ends_before_tail(self) -> bool:
        """True when what follows the last whole element is behind the end of the data set, not a part that is lost.

        That is so for zeros, for bytes behind a deflated stream, and for anything behind pixel data: tags ascend, and
        no identifying attribute of the standard comes after group 7FE0.
        """
        if self.tail is None or not self.leaves:
            return False
        last = self.leaves[-1]
        behind_pixels = last.tag >> 16 >= 0x7FE0 and "." not in last.path
        return self.malformed == AFTER_END or behind_pixels or not any(self.tail.raw)

    def top(self, tag: int) -> Leaf | None:
        """The top-level value with this tag, of file meta too; the first fragment for encapsulated pixel data."""
        return next((leaf for leaf in (*self.meta, *self.leaves) if leaf.tag == tag and "." not in leaf.path), None)

    def text(self, tag: int) -> str:
        """A top-level value without padding, "" when absent."""
        leaf = self.top(tag)
        return leaf.raw.decode("latin-1").strip(" \0") if leaf else ""


def open_buffer(path: Path) -> Buffer:
    """The bytes of a file: a copy up to 64 MiB, a map above. Raises OSError."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        return file.read() if size <= IN_MEMORY_BYTES else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@dataclass(slots=True)
class _Kept:
    """Scans by file and what tells that it did not change; `left` is how many bytes there is room for."""

    scans: dict[tuple[object, ...], Scan] = field(default_factory=dict)
    left: int = field(default_factory=lambda: KEPT_BYTES)


_KEPT: ContextVar[_Kept | None] = ContextVar("kept_scans", default=None)


@contextmanager
def scanning_once() -> Iterator[None]:
    """Within it, each check gets the same scan of a file that did not change: nobody may change a `Scan`.

    That holds for the first files of a job, up to `KEPT_BYTES`; the others are scanned for each check anew. What is
    kept is forgotten at the end.
    """
    token = _KEPT.set(_Kept())
    try:
        yield
    finally:
        _KEPT.reset(token)


def scan_file(path: Path, *, original: bool = False) -> Scan:
    """Scan a file. Raises OSError only: what is wrong with the bytes is in `malformed`, and they are in `tail`."""
    kept = _KEPT.get()
    if kept is None:
        return scan_bytes(open_buffer(path), original=original)
    stat = path.stat()
    key = (path, original, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    scan = kept.scans.get(key)
    if scan is None:
        scan = scan_bytes(open_buffer(path), original=original)
        size = len(scan.file) + LEAF_BYTES * len(scan.leaves)
        inflated = any(leaf.buffer is not scan.file for leaf in (*scan.leaves[:1], scan.tail) if leaf is not None)
        if isinstance(scan.file, bytes) and not inflated and size <= kept.left:
            kept.scans[key] = scan
            kept.left -= size
    return scan


def scan_bytes(file: Buffer, *, original: bool = False) -> Scan:
    """Scan the bytes of a file. An original may lack preamble or file meta, and need not have its tags in order."""
    scan = Scan(file)
    at = 132 if file[128:132] == b"DICM" else 0
    try:
        if not at and not (original and _starts_bare(file)):
            raise Malformed("no DICM prefix")
        if at or file[:2] == b"\x02\x00":
            at = _read_meta(scan, at)
        scan.dataset_start = at
        body = _body(scan)
    except Malformed as error:
        scan.malformed, scan.tail = str(error), Leaf(TAIL, 0, "UN", file, at, len(file))
        return scan
    syntax = scan.transfer_syntax or (_guess(file[at : at + 6]) if original else "")
    implicit = syntax in (IMPLICIT_LITTLE, GE_IMPLICIT)
    walk = Walk(body, implicit=implicit, big=syntax == EXPLICIT_BIG, ordered=not original)
    try:
        walk.whole(0 if body is not file else at, len(body))
    except Malformed as error:
        scan.malformed, scan.tail = str(error), Leaf(TAIL, 0, "UN", body, walk.restart, len(body))
    scan.leaves, scan.sequences = walk.leaves, walk.sequences
    return scan


def _starts_bare(file: Buffer) -> bool:
    """True for file meta or group 0008 at offset 0: a file without preamble, or a bare data set."""
    return file[:2] in (b"\x02\x00", b"\x08\x00", b"\x00\x08")


def _guess(head: bytes) -> str:
    """The transfer syntax of a bare data set by its first element."""
    if head[4:6].decode("latin-1") not in LONG_VRS | SHORT_VRS:
        return IMPLICIT_LITTLE
    return EXPLICIT_BIG if head[:1] == b"\0" else "1.2.840.10008.1.2.1"


def _read_meta(scan: Scan, at: int) -> int:
    """File meta information, explicit little endian (PS3.10 7.1); gives the offset of the data set."""
    walk = Walk(scan.file, implicit=False)
    end = len(scan.file)
    stop = end
    while at < stop and stop - at >= 8 and scan.file[at : at + 2] == b"\x02\x00":
        tag, vr, length, value_at = walk.head(at, stop)
        at = walk.value(tag, vr if vr != "SQ" else "UN", length, value_at, stop, f"(0002,{tag & 0xFFFF:04x})", (), 0)
        if tag == 0x00020000 and length == 4:
            stop = min(end, at + walk.u32_at(scan.file, value_at)[0])
    scan.meta = [leaf for leaf in walk.leaves if leaf.tag >> 16 == 2 and "." not in leaf.path]
    if not scan.meta:
        raise Malformed("no file meta information")
    if stop != end and at != stop:
        raise Malformed("the length of the file meta information is wrong")
    return at


def _body(scan: Scan) -> Buffer:
    """What the data set is read from; inflates where the transfer syntax deflates (PS3.5 A.5)."""
    if scan.transfer_syntax != DEFLATED:
        return scan.file
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        body = inflate.decompress(scan.file[scan.dataset_start :], MAX_INFLATED_BYTES)
    except zlib.error:
        raise Malformed("the data set does not inflate") from None
    if not inflate.eof or inflate.unconsumed_tail:
        raise Malformed("the data set does not inflate, or to more than 1 GiB")
    rest = len(scan.file) - len(inflate.unused_data)
    if inflate.unused_data not in (b"", b"\0"):  # one NUL makes the length even
        scan.malformed, scan.tail = AFTER_END, Leaf(TAIL, 0, "UN", scan.file, rest, len(scan.file))
    return body
