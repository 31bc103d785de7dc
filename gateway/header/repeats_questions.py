"""What the private elements of a run must not repeat: asked of each object's words, since these differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.header.private_words import OwnWords

MAX_SILENT = 256  # words that questions remember to have no answer
NOBODY: frozenset[OwnWords] = frozenset()


@dataclass(slots=True, eq=False)
class Questions:
    """The values that private elements of a run hold and that must not repeat the object's words.

    The words differ from object to object, the SOP Instance UID is one; each element's are asked only once.
    """

    text: str  # folded, with line ends between them
    numbers: frozenset[str]
    silent: set[OwnWords] = field(default_factory=set)

    def tellers(self, words: Sequence[OwnWords]) -> frozenset[OwnWords]:
        """The words that one of the values repeats."""
        silent = self.silent
        new = [one for one in words if one not in silent]
        if not new:
            return NOBODY
        found = frozenset([one for one in new if self._tells(one)])
        if len(silent) > MAX_SILENT:
            silent.clear()
        silent.update([one for one in new if one not in found])
        return found

    def _tells(self, one: OwnWords) -> bool:
        return one.stand_in(self.text) or one.are_among(self.numbers)
