"""An output as a list of buffers: spans of the input, uncopied, between the few bytes that are ours."""

from __future__ import annotations

from gateway.header.elements import Buffer
from gateway.header.streaming import Span

STREAM_FROM_BYTES = 1 << 16  # shorter spans are written from memory


class Pieces:
    """Grows at its end. Adjacent spans of the input melt into one; `size` is the number of bytes so far."""

    __slots__ = ("_from", "_source", "_to", "parts", "size")

    def __init__(self, source: memoryview) -> None:
        self._source = source
        self._from = self._to = 0
        self.parts: list[Buffer | Span] = []
        self.size = 0

    def keep(self, start: int, end: int) -> None:
        """Append [start, end) of the input as it is."""
        if start != self._to or self._from == self._to:
            self._close()
            self._from = start
        self._to = end
        self.size += end - start

    def add(self, data: bytes) -> None:
        """Append bytes of ours."""
        self._close()
        self.parts.append(data)
        self.size += len(data)

    def take(self, other: Pieces) -> None:
        """Append everything that `other` holds."""
        self._close()
        self.parts.extend(other.finished())
        self.size += other.size

    def finished(self) -> list[Buffer | Span]:
        """All buffers in order; a long span of the input is only named."""
        self._close()
        return self.parts

    def _close(self) -> None:
        if self._to - self._from >= STREAM_FROM_BYTES:
            self.parts.append(Span(self._from, self._to))
        elif self._from != self._to:
            self.parts.append(self._source[self._from : self._to])
        self._from = self._to = 0
