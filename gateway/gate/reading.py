"""Reading originals and candidates for judgement, and the one place where foreign exceptions become ours.

pydicom raises many kinds of exceptions for bytes that are not DICOM, and quotes values in their texts: any of them
means that something could not be judged, which holds the study (`gate_failed`), and none of their text goes on.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydicom.errors import BytesLengthException, InvalidDicomError

from gateway.errors import Hold
from gateway.gate.bytescan import Scan, scan_file
from gateway.observe import log, origin

PARSER_FAILURES: tuple[type[Exception], ...] = (
    *(OSError, EOFError, MemoryError, RecursionError, NotImplementedError, ArithmeticError, AssertionError),
    *(ValueError, TypeError, AttributeError, LookupError, UserWarning),
    *(struct.error, zlib.error, re.error, InvalidDicomError, BytesLengthException),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """An original and what would be sent in its place. `name` is ours: digits within a job."""

    name: str
    original: Path
    candidate: Path


@contextmanager
def judging(name: str) -> Iterator[None]:
    """Turns whatever a parser raises into Hold("gate_failed") at the instance, and logs where it came from."""
    try:
        yield
    except PARSER_FAILURES as error:
        log("gate_failed", instance=name, exception=origin(error))
        raise Hold("gate_failed", at=name) from None


def read_original(pair: Pair) -> Scan:
    """Scan an original. Raises Hold("gate_failed") unless all of it was read: half a list of identities is none.

    Bytes behind the end of its data set are passed over: they are no element, and nothing of them is sent.
    """
    scan = scan_file(pair.original, original=True)
    whole = not scan.malformed or scan.ends_before_tail
    if not whole or not scan.text(0x00080018):
        raise Hold("gate_failed", at=pair.name)
    return scan


def signatures(pairs: Sequence[Pair]) -> tuple[tuple[int, ...], ...]:
    """What tells whether a file was changed while it was judged: inode, size, times of change in nanoseconds."""
    found = []
    for pair in pairs:
        for path in (pair.original, pair.candidate):
            stat = path.stat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))
    return tuple(found)
