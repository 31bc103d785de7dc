"""The walk: every element at every depth meets its decision, and the output is put together from spans of the input.

What no decision touches is never decoded nor encoded again: it leaves as the bytes that came. A sequence is written
anew only when something inside it changed, in the form (VR, defined or undefined length, encoding) that it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gateway.errors import Hold
from gateway.header.actions import TEMPORAL, Act, Decision
from gateway.header.dates import capped_age
from gateway.header.dictionary import Entry, dictionary, place_of
from gateway.header.dummies import dummy_code_sequence
from gateway.header.elements import Element, Item, Malformed, Reader, Syntax
from gateway.header.encoding import element as encoded
from gateway.header.encoding import header, item_header
from gateway.header.fitness import fits
from gateway.header.key_objects import is_reference
from gateway.header.pieces import Pieces
from gateway.header.plan import Plan
from gateway.header.values import Values

CONTENT_SEQUENCE = 0x0040A730
ENCAPSULATED_DOCUMENT = 0x00420011
# Keys of a Step's counts beside the actions' and the plan's own.
UNREADABLE_DATE, UNFIT, UNREADABLE_SEQUENCE, AGE_CAPPED = (
    "unreadable_date",
    "unfit",
    "unreadable_sequence",
    "age_capped",
)
_COUNTED_AS = {Act.PATIENT_ID: "D", Act.PATIENT_NAME: "D"}


class Rewriter:
    """Rewrites the data sets of one file. `counts` says how often each action was taken."""

    def __init__(self, reader: Reader, plan: Plan, values: Values, *, key_object: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self._reader = reader
        self._readers: dict[Syntax, Reader] = {reader.syntax: reader}
        self._readers[reader.implicit_little.syntax] = reader.implicit_little
        self._source = memoryview(reader.buffer)
        self._plan = plan
        self._values = values
        self._key_object = key_object
        self._dictionary = dictionary()

    def top_level(self, elements: Sequence[Element], stamps: Iterable[tuple[int, bytes]]) -> Pieces:
        """The whole data set, with `stamps` (tag, encoded element) in place of what bore these tags.

        `elements` are in ascending order of tags. Raises Hold for a sequence that cannot be read and for content that
        this stage cannot clean.
        """
        pieces = Pieces(self._source)
        waiting = sorted(stamps)
        stamped = {tag for tag, _ in waiting}
        try:
            for element in elements:
                while waiting and waiting[0][0] <= element.tag:
                    pieces.add(waiting.pop(0)[1])
                if element.tag not in stamped:
                    self._element(element, 0, self._reader, pieces, 0)
        except Malformed:
            raise Hold("unreadable_object", at="a nested data set") from None
        for _, stamp in waiting:
            pieces.add(stamp)
        return pieces

    def _element(self, element: Element, parent: int, reader: Reader, pieces: Pieces, depth: int) -> bool:
        """Write one element; True when it is not what came."""
        decision = self._plan.decide(element.tag, parent)
        entry = self._dictionary.get(element.tag)
        if entry is None:
            self.counts[decision.because] += 1
            return True
        if element.tag == CONTENT_SEQUENCE and (depth or not self._key_object):
            raise Hold("structured_content", at=place_of(element.tag))
        if element.tag == ENCAPSULATED_DOCUMENT:
            raise Hold("encapsulated_document", at=place_of(element.tag))
        return self._apply(decision.act, element, entry, decision, reader, pieces, depth)

    def _apply(
        self, act: Act, element: Element, entry: Entry, decision: Decision, reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        if act is Act.KEEP:
            return self._keep(element, entry, decision, reader, pieces, depth)
        if act is Act.REMOVE:
            self.counts["X"] += 1
            return True
        if entry.vr == "SQ":
            return self._sequence(act, element, entry, reader, pieces, depth)
        value = b"\0" if element.undefined else bytes(self._source[element.start : element.end])
        new = self._values.replacement(act, entry, value, nested=depth > 0)
        if new is None or element.undefined:  # a value in items or fragments, which only a wrong VR puts here
            self.counts[UNREADABLE_DATE if act is Act.SHIFT else UNFIT] += 1
            otherwise = decision.otherwise if not element.undefined else Act.REMOVE
            return self._apply(otherwise, element, entry, decision, reader, pieces, depth)
        return self._replace(element, entry, value, new, _COUNTED_AS.get(act, act.value), reader, pieces)

    def _keep(
        self, element: Element, entry: Entry, decision: Decision, reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        if entry.vr == "AS" and not element.undefined:
            value = bytes(self._source[element.start : element.end])
            capped = capped_age(value)
            if capped is not None:
                return self._replace(element, entry, value, capped, AGE_CAPPED, reader, pieces)
        if decision.otherwise is Act.KEEP or fits(entry.vr, element, reader):
            pieces.keep(element.head, element.stop)
            return False
        self.counts[UNREADABLE_DATE if entry.vr in TEMPORAL else UNFIT] += 1
        return self._apply(decision.otherwise, element, entry, decision, reader, pieces, depth)

    def _replace(
        self, element: Element, entry: Entry, value: bytes, new: bytes, kind: str, reader: Reader, pieces: Pieces
    ) -> bool:
        """Write the element with another value, in the VR of PS3.6; as it came when the value is the same."""
        if value.strip(b" \0") == new.strip(b" \0") and (not value or element.vr in ("", entry.vr)):
            pieces.keep(element.head, element.stop)
            return False
        self.counts[kind] += 1
        pieces.add(encoded(reader.syntax, element.tag, entry.vr.split(" or ")[0], new))
        return True

    def _sequence(self, act: Act, element: Element, entry: Entry, reader: Reader, pieces: Pieces, depth: int) -> bool:
        """ZERO empties it; DUMMY replaces a code sequence and enters another; everything else enters it."""
        if element.start == element.end and not element.items:
            pieces.keep(element.head, element.stop)
            return False
        if act is Act.ZERO:
            self.counts["Z"] += 1
            pieces.add(header(reader.syntax, element.tag, "SQ", 0))
            return True
        if act is Act.DUMMY and entry.keyword.endswith("CodeSequence"):
            self.counts["D"] += 1
            pieces.add(dummy_code_sequence(reader.syntax, element.tag))
            return True
        if element.vr not in ("", "SQ", "UN") or (element.undefined and element.items is None):
            self.counts[UNFIT] += 1
            return True
        if element.vr != "UN":
            return self._enter(element, reader, reader, pieces, depth)
        for inner in (reader.implicit_little, self._reader):  # PS3.5 6.2.2; some writers keep the file's encoding
            try:
                return self._enter(element, reader, inner, pieces, depth)
            except Malformed:
                continue
        self.counts[UNREADABLE_SEQUENCE] += 1
        return True

    def _enter(self, element: Element, reader: Reader, inner: Reader, pieces: Pieces, depth: int) -> bool:
        """Write a sequence's items. `reader` is that of the sequence's header, `inner` that of its items.

        Raises Malformed, having written nothing.
        """
        items = element.items
        if items is None:
            items = inner.items(element.start, element.end, depth, delimited=False)
        body = Pieces(self._source)
        changed = False
        for item in items:
            changed |= self._item(element, item, inner, body, depth + 1)
        if not changed:
            pieces.keep(element.head, element.stop)
            return False
        if element.tag == CONTENT_SEQUENCE and not body.size:
            raise Hold("structured_content", at=place_of(element.tag))
        if element.undefined:
            pieces.keep(element.head, element.start)
            pieces.take(body)
            pieces.keep(element.end, element.stop)
        else:
            pieces.add(header(reader.syntax, element.tag, element.vr or "SQ", body.size))
            pieces.take(body)
        return True

    def _item(self, sequence: Element, item: Item, inner: Reader, body: Pieces, depth: int) -> bool:
        reader = self._readers[item.syntax] if item.undefined else inner
        elements = item.elements
        if elements is None:
            elements = tuple(reader.elements(item.start, item.end, depth))
        if sequence.tag == CONTENT_SEQUENCE and not is_reference(elements, self._source):
            self.counts["D"] += 1
            return True
        contents = Pieces(self._source)
        changed = False
        for element in elements:
            changed |= self._element(element, sequence.tag, reader, contents, depth)
        if not changed:
            body.keep(item.head, item.stop)
        elif item.undefined:
            body.keep(item.head, item.start)
            body.take(contents)
            body.keep(item.end, item.stop)
        else:
            body.add(item_header(reader.syntax, contents.size))
            body.take(contents)
        return changed
