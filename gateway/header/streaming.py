"""Bytes into the target file: ours by one write, long spans of the source by the kernel, not through here."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import NamedTuple

MAX_GATHERED = 512  # buffers of one write (IOV_MAX is 1024)
COPY_BYTES = 1 << 30  # of one call; less than Linux's limit of 2 GB
_NO_RANGES = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM})


class Span(NamedTuple):
    """Bytes [start, end) of the source file."""

    start: int
    end: int


def write_parts(target: int, parts: Iterable[bytes | memoryview | Span], source: int) -> None:
    """Write everything in order to the descriptor `target`; `source` is that of the spans. Raises OSError."""
    gathered: list[bytes | memoryview] = []
    for part in parts:
        if isinstance(part, Span):
            _write(target, gathered)
            gathered = []
            _copy(source, target, part.start, part.end)
            continue
        gathered.append(part)
        if len(gathered) == MAX_GATHERED:
            _write(target, gathered)
            gathered = []
    _write(target, gathered)


def _write(target: int, buffers: list[bytes | memoryview]) -> None:
    if not buffers:
        return
    left = sum(map(len, buffers)) - os.writev(target, buffers)
    if left:  # a full disk, a signal: the next call says which
        rest = memoryview(b"".join(buffers))[-left:]
        while rest:
            rest = rest[os.write(target, rest) :]


def _copy(source: int, target: int, start: int, end: int) -> None:
    """By `copy_file_range`, which shares extents where the file system can, or by `sendfile`."""
    ranges = True
    while start < end:
        size = min(COPY_BYTES, end - start)
        try:
            done = (
                os.copy_file_range(source, target, size, start) if ranges else os.sendfile(target, source, start, size)
            )
        except OSError as error:
            if not ranges or error.errno not in _NO_RANGES:
                raise
            ranges = False
            continue
        if not done:
            raise OSError(errno.EIO, "the source ended before its size")
        start += done
