"""Many byte patterns at once, in one pass, with nothing but `re`.

Patterns are grouped by their first bytes (anchors). One regular expression, a trie of the anchors, finds the places; a
dictionary then says which patterns begin there. The trie is at most six levels deep, whatever the patterns are, and ten
thousand UIDs under one root cost one branch.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

ANCHOR_BYTES = 6

_Trie = dict[int, "_Trie"]


def _expression(trie: _Trie) -> bytes:
    """A trie as a regular expression. A node without children ends an anchor."""
    branches = [re.escape(bytes([byte])) + _expression(below) for byte, below in sorted(trie.items())]
    if not branches:
        return b""
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"


class Finder:
    """Finds every pattern at every place, overlapping ones too, and exactly: fold both sides first."""

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self.patterns = frozenset(pattern for pattern in patterns if pattern)
        self.longest = max(map(len, self.patterns), default=0)
        anchors: set[bytes] = set()
        for pattern in sorted(self.patterns, key=len):
            if not any(pattern[:size] in anchors for size in range(1, ANCHOR_BYTES + 1)):
                anchors.add(pattern[:ANCHOR_BYTES])
        lengths: defaultdict[bytes, set[int]] = defaultdict(set)
        for pattern in self.patterns:
            anchor = next(pattern[:n] for n in range(1, ANCHOR_BYTES + 1) if pattern[:n] in anchors)
            lengths[anchor].add(len(pattern))
        self._lengths = {anchor: sorted(sizes, reverse=True) for anchor, sizes in lengths.items()}
        trie: _Trie = {}
        for anchor in anchors:
            node = trie
            for byte in anchor:
                node = node.setdefault(byte, {})
        self._search = re.compile(_expression(trie), re.DOTALL).search if trie else None

    def find(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """(offset, pattern) for every occurrence, by offset, longest first."""
        search = self._search
        if search is None:
            return
        match = search(text)
        while match is not None:
            at = match.start()
            for size in self._lengths[match.group()]:
                found = text[at : at + size]
                if found in self.patterns:
                    yield at, found
            match = search(text, at + 1)
