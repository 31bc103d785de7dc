"""Cleared files, opened so that only cleared bytes come out (DESIGN.md invariant 2).

The hashes are taken of the very bytes that are handed out. A small file is read once, hashed, and handed out from
memory. A large one is hashed while it streams by, then read again from the same descriptor for sending, and hashed
again as it is read: the last piece is withheld until that second hash is right, so a file that is changed in between
is never delivered whole. Memory: `WHOLE_BYTES` for a small file, one piece for a large one.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Self

from gateway.errors import Hold
from gateway.forward.transport import Outgoing

WHOLE_BYTES = 8 << 20
PIECE_BYTES = 1 << 20
_META_BYTES = 1 << 16  # no file meta of ours is longer
_LONG_VR = frozenset((b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV"))


@dataclass(frozen=True, slots=True)
class Verified:
    """A cleared file whose bytes were checked: where its data set begins, and how long the whole is, in bytes.

    A context manager: a large one holds its descriptor until the block ends.
    """

    item: Outgoing
    offset: int
    size: int
    source: memoryview | BinaryIO  # the bytes of a small file, the descriptor of a large one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not isinstance(self.source, memoryview):
            self.source.close()

    def data_set(self, piece_bytes: int) -> Iterator[bytes | memoryview]:
        """The encoded data set in pieces of `piece_bytes`, the last one shorter."""
        return self._pieces(self.offset, piece_bytes, self.item.cleared.sha256_dataset)

    def everything(self, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes | memoryview]:
        """The whole file in pieces, likewise."""
        return self._pieces(0, piece_bytes, self.item.cleared.sha256_file)

    def _pieces(self, start: int, piece_bytes: int, sha256: str) -> Iterator[bytes | memoryview]:
        if isinstance(self.source, memoryview):  # hashed when it was read; nobody else can reach these bytes
            for at in range(start, self.size, piece_bytes):
                yield self.source[at : at + piece_bytes]
            return
        self.source.seek(start)
        digest, left = hashlib.sha256(), self.size - start
        while left:
            try:
                piece = self.source.read(min(piece_bytes, left))
            except OSError:
                raise _broken(self.item) from None
            digest.update(piece)
            left -= len(piece)
            if not piece or (not left and not hmac.compare_digest(digest.hexdigest(), sha256)):
                raise _broken(self.item)
            yield piece


def _broken(item: Outgoing) -> Hold:
    return Hold("clearance_broken", at=f"instance {item.cleared.name}")


def open_verified(item: Outgoing) -> Verified:
    """The file of `item`, checked against its clearance. Raises Hold clearance_broken unless every byte is as cleared:
    size, both hashes, and the SOP class, instance and transfer syntax that it is going to be sent under."""
    cleared = item.cleared
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open(item.path, "rb"))
            size = os.fstat(file.fileno()).st_size
            if size != cleared.size_bytes:
                raise _broken(item)
            whole = memoryview(file.read(size + 1)) if size <= WHOLE_BYTES else None
            offset = _data_set_offset(whole if whole is not None else file.read(_META_BYTES), item)
            hashes = _hashes(file, offset, whole)
        except (OSError, struct.error):
            raise _broken(item) from None
        for found, expected in zip(hashes, (cleared.sha256_file, cleared.sha256_dataset), strict=True):
            if not hmac.compare_digest(found, expected):
                raise _broken(item)
        if whole is not None:
            return Verified(item, offset, size, whole)
        stack.pop_all()  # the descriptor stays open, to send from what was hashed
        return Verified(item, offset, size, file)


def _hashes(file: BinaryIO, offset: int, whole: memoryview | None) -> tuple[str, str]:
    """sha256 of the file and of its data set, in hex."""
    if whole is not None:
        return hashlib.sha256(whole).hexdigest(), hashlib.sha256(whole[offset:]).hexdigest()
    file.seek(0)
    head = file.read(offset)
    of_file, of_data_set = hashlib.sha256(head), hashlib.sha256()
    while piece := file.read(PIECE_BYTES):
        of_file.update(piece)
        of_data_set.update(piece)
    return of_file.hexdigest(), of_data_set.hexdigest()


def _data_set_offset(head: memoryview | bytes, item: Outgoing) -> int:
    """Where the data set begins: after preamble and group 0002 (PS3.10 7.1), which must say what was cleared."""
    cleared, size = item.cleared, item.cleared.size_bytes
    if bytes(head[128:132]) != b"DICM":
        raise _broken(item)
    said: dict[int, str] = {}
    at = 132
    while at + 8 <= len(head) and bytes(head[at : at + 2]) == b"\x02\x00":
        element = struct.unpack_from("<H", head, at + 2)[0]
        if bytes(head[at + 4 : at + 6]) in _LONG_VR:
            start, length = at + 12, struct.unpack_from("<I", head, at + 8)[0]
        else:
            start, length = at + 8, struct.unpack_from("<H", head, at + 6)[0]
        at = start + length
        if element in (0x0002, 0x0003, 0x0010):
            said[element] = bytes(head[start:at]).rstrip(b"\0 ").decode("ascii", "replace")
    if at >= size or said != {
        0x0002: cleared.sop_class_uid,
        0x0003: cleared.sop_instance_uid,
        0x0010: cleared.transfer_syntax_uid,
    }:
        raise _broken(item)
    return at
