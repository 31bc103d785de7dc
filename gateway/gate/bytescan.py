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
from dataclasses import dataclass, field
from pathlib import Path

from gateway.gate.walk import Buffer, Leaf, Malformed, Walk

IMPLICIT_LITTLE = "1.2.840.10008.1.2"
EXPLICIT_BIG = "1.2.840.10008.1.2.2"
DEFLATED = "1.2.840.10008.1.2.1.99"
GE_IMPLICIT = "1.2.840.113619.5.2"  # implicit little endian with big-endian pixels

PREAMBLE = "bytes:preamble"
TAIL = "bytes:after-data-set"
MAX_INFLATED_BYTES = 1 << 30
IN_MEMORY_BYTES = 64 << 20


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


def scan_file(path: Path, *, ordered: bool = True) -> Scan:
    """Scan a file. Raises OSError only: what is wrong with the bytes is in `malformed`, and they are in `tail`."""
    return scan_bytes(open_buffer(path), ordered=ordered)


def scan_bytes(file: Buffer, *, ordered: bool = True) -> Scan:
    """Scan the bytes of a file. `ordered`: top-level tags must ascend."""
    scan = Scan(file)
    if file[128:132] != b"DICM":
        scan.malformed, scan.tail = "no DICM prefix", Leaf(TAIL, 0, "UN", file, 0, len(file))
        return scan
    at = 132
    try:
        at = scan.dataset_start = _read_meta(scan, at)
        body = _body(scan)
    except Malformed as error:
        scan.malformed, scan.tail = str(error), Leaf(TAIL, 0, "UN", file, at, len(file))
        return scan
    syntax = scan.transfer_syntax
    start = 0 if syntax == DEFLATED else scan.dataset_start
    implicit = syntax in (IMPLICIT_LITTLE, GE_IMPLICIT)
    walk = Walk(body, implicit=implicit, big=syntax == EXPLICIT_BIG, ordered=ordered)
    try:
        walk.whole(start, len(body))
    except Malformed as error:
        scan.malformed, scan.tail = str(error), Leaf(TAIL, 0, "UN", body, walk.restart, len(body))
    scan.leaves, scan.sequences = walk.leaves, walk.sequences
    return scan


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
        scan.malformed, scan.tail = "bytes after the data set", Leaf(TAIL, 0, "UN", scan.file, rest, len(scan.file))
    return body
