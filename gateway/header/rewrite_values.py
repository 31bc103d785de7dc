"""One element that is no sequence: kept, removed, or written with another value.

A value that its attribute's VR does not allow is never kept, whatever the decision says; the decision's second choice
is taken instead, and counted.
"""

from __future__ import annotations

from collections import Counter

from gateway.header import actions
from gateway.header.actions import TEMPORAL, Act, Decision
from gateway.header.dates import capped_age
from gateway.header.descriptors import Cleaner
from gateway.header.dictionary import Entry
from gateway.header.elements import Element, Reader
from gateway.header.encoding import element as encoded
from gateway.header.fitness import fits
from gateway.header.pieces import Pieces
from gateway.header.values import Values

# Keys of a Step's counts beside the actions' own.
UNREADABLE_DATE, UNFIT, AGE_CAPPED, CLEANED = "unreadable_date", "unfit", "age_capped", "cleaned"
_MAY_REPEAT = actions.CLEANED | {"CS"}  # a code string is technical, but anybody may write a name into one
_COUNTED_AS = {Act.PATIENT_ID: "D", Act.PATIENT_NAME: "D"}


class ElementWriter:
    """Writes elements of one file. `counts` is shared with whoever walks through it.

    `character_set` is that of the data set which is being written, `source` where its values are.
    """

    source = memoryview(b"")

    def __init__(self, values: Values, cleaner: Cleaner | None, counts: Counter[str]) -> None:
        self.character_set = values.patient.character_set
        self._values = values
        self._cleaner = cleaner
        self.counts = counts

    def write(
        self, act: Act, element: Element, entry: Entry, decision: Decision, reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        """Write an element by an action other than entering it; True when it is not what came."""
        if act is Act.KEEP:
            return self._keep(element, entry, decision, reader, pieces, depth)
        if act is Act.REMOVE:
            self.counts["X"] += 1
            return True
        if act is Act.CLEAN:
            return self._clean(element, entry, decision, reader, pieces, depth)
        value = b"\0" if element.undefined else bytes(self.source[element.start : element.end])
        new = self._values.replacement(act, entry, value, nested=depth > 0)
        if new is None or element.undefined:  # a value in items or fragments, which only a wrong VR puts here
            self.counts[UNREADABLE_DATE if act is Act.SHIFT else UNFIT] += 1
            otherwise = decision.otherwise if not element.undefined else Act.REMOVE
            return self.write(otherwise, element, entry, decision, reader, pieces, depth)
        return self.replace(element, entry, value, new, _COUNTED_AS.get(act, act.value), reader, pieces)

    def _keep(
        self, element: Element, entry: Entry, decision: Decision, reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        if entry.vr == "AS" and not element.undefined:
            value = bytes(self.source[element.start : element.end])
            capped = capped_age(value)
            if capped is not None:
                return self.replace(element, entry, value, capped, AGE_CAPPED, reader, pieces)
        if decision.otherwise is Act.KEEP or fits(entry.vr, element, reader):
            if self._cleaner is not None and entry.vr in _MAY_REPEAT and not element.undefined:
                return self._technical(self._cleaner, element, entry, reader, pieces)
            pieces.keep(element.head, element.stop)
            return False
        self.counts[UNREADABLE_DATE if entry.vr in TEMPORAL else UNFIT] += 1
        return self.write(decision.otherwise, element, entry, decision, reader, pieces, depth)

    def _clean(
        self, element: Element, entry: Entry, decision: Decision, reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        """Write a descriptor without what identifies; when nothing is left, as the profile says without it."""
        readable = self._cleaner is not None and not element.undefined and fits(entry.vr, element, reader)
        value = b"" if element.undefined else bytes(self.source[element.start : element.end])
        new = self._cleaner.descriptor(entry.vr, value, self.character_set) if self._cleaner and readable else None
        if new is None or (value.strip(b" \0") and not new):
            self.counts[CLEANED if new is not None else UNFIT] += 1
            otherwise = Act.REMOVE if element.undefined else decision.otherwise
            return self.write(otherwise, element, entry, decision, reader, pieces, depth)
        return self.replace(element, entry, value, new, CLEANED, reader, pieces)

    def _technical(self, cleaner: Cleaner, element: Element, entry: Entry, reader: Reader, pieces: Pieces) -> bool:
        """Write text that stays as it is, unless it repeats a name, number or date of the object."""
        value = bytes(self.source[element.start : element.end])
        new = cleaner.technical("SH" if entry.vr == "CS" else entry.vr, value, self.character_set)
        if new == value:
            pieces.keep(element.head, element.stop)
            return False
        if not new:
            new = self._values.replacement(Act.DUMMY, entry, value, nested=True) or b""
        return self.replace(element, entry, value, new, CLEANED, reader, pieces)

    def replace(
        self, element: Element, entry: Entry, value: bytes, new: bytes, kind: str, reader: Reader, pieces: Pieces
    ) -> bool:
        """Write the element with another value, in the VR of PS3.6; as it came when the value is the same."""
        if value.strip(b" \0") == new.strip(b" \0") and (not value or element.vr in ("", entry.vr)):
            pieces.keep(element.head, element.stop)
            return False
        self.counts[kind] += 1
        pieces.add(encoded(reader.syntax, element.tag, entry.vr.split(" or ")[0], new))
        return True
