"""Text that stands among samples as the codes of its letters: some devices write their header into a row of pixels.

A spelling is found where as many samples one behind the other, in bytes or in wider words of either order, have the
codes of its letters. What is compressed is searched once it is decoded (`in_values`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from gateway.gate.finder import Finder
from gateway.gate.terms import Term

WORDS = ("<u1", "<u2", ">u2", "<u4", ">u4")


class SampleText:
    """Finds spellings, given in lower case with the terms they stand for, among samples. Case does not matter."""

    def __init__(self, spellings: Mapping[bytes, Term]) -> None:
        self._spellings = spellings
        self._finder = Finder(spellings)
        self._shortest = min(map(len, spellings), default=0)
        self._fits = np.zeros(256, bool)  # codes that stand in some spelling
        self._fits[list(b"".join((*spellings, *(one.upper() for one in spellings))))] = True

    def in_bytes(self, chunk: bytes) -> Iterator[Term]:
        """Every term in bytes whose samples are 1, 2 or 4 of them wide."""
        for width in WORDS if self._spellings else ():
            dtype = np.dtype(width)
            for _, _, term in self.in_values(np.frombuffer(chunk, dtype, len(chunk) // dtype.itemsize)):
                yield term

    def in_values(self, values: NDArray[np.generic]) -> Iterator[tuple[int, int, Term]]:
        """(index of the first sample, index behind the last, term) in samples in the order in which they are stored."""
        if not self._spellings:
            return
        flat = values.reshape(-1)
        whole = np.clip(np.nan_to_num(flat), 0, 255) if flat.dtype.kind == "f" else flat
        codes = whole.astype(np.uint8)
        fits = self._fits.take(codes)
        if flat.dtype.itemsize > 1:
            fits &= codes == flat
        edges = np.flatnonzero(np.diff(fits, prepend=False, append=False))
        starts, stops = edges[::2], edges[1::2]
        long = stops - starts >= self._shortest
        for start, stop in zip(starts[long].tolist(), stops[long].tolist(), strict=True):
            for at, key in self._finder.find(codes[start:stop].tobytes().lower()):
                yield start + at, start + at + len(key), self._spellings[key]
