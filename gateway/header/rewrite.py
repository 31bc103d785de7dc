"""The walk: every element at every depth meets its decision, and the output is put together from spans of the input.

What no decision touches is never decoded nor encoded again: it leaves as the bytes that came. A sequence is written
anew only when something inside it changed, in the form (VR, defined or undefined length, encoding) that it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gateway.errors import Hold
from gateway.header.actions import Act, Decision
from gateway.header.descriptors import CHARACTER_SET, Cleaner
from gateway.header.dictionary import Entry, dictionary, is_private, place_of
from gateway.header.dummies import dummy_code_sequence
from gateway.header.elements import Element, Item, Malformed, Reader, Syntax
from gateway.header.encoding import header, item_header
from gateway.header.iod import TOP
from gateway.header.items import CONTENT_SEQUENCE, UNCHANGED, ItemRule, Override, Overrides, value_of
from gateway.header.pieces import Pieces
from gateway.header.plan import ANYWHERE, PRIVATE, REPEATING, Plan
from gateway.header.private import PrivateElements
from gateway.header.private_blocks import write_run
from gateway.header.rewrite_values import CLEANED, UNFIT, ElementWriter
from gateway.header.values import Values

ENCAPSULATED_DOCUMENT = 0x00420011
EMPTY_WHERE_NOTHING_IS_LEFT = frozenset({0x00400555})  # Acquisition Context Sequence: Type 2 where an IOD has it
UNREADABLE_SEQUENCE = "unreadable_sequence"  # a key of a Step's counts


class Rewriter:
    """Rewrites the data sets of one file. `counts` says how often each action was taken.

    `rules` decide about whole items, by the tag of their sequence; without one for it, a Content Sequence holds the
    object. `private` judges private elements; without it they all go. `cleaned` are the sequences with a rule of which
    something is left, `retained` counts private elements that are, `overlays` those groups' elements that went.
    """

    def __init__(
        self,
        reader: Reader,
        plan: Plan,
        values: Values,
        *,
        rules: Mapping[int, ItemRule],
        private: PrivateElements | None = None,
        cleaner: Cleaner | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.cleaned: set[int] = set()
        self.retained = 0
        self.values = values
        self._plan = plan
        self._rules = rules
        self._private = private
        self._writer = ElementWriter(values, cleaner, self.counts)
        self._dictionary = dictionary()
        self.read_from(reader)

    def read_from(self, reader: Reader) -> None:
        """Go on with another object, for which everything else is the same."""
        self._reader = reader
        self._readers: dict[Syntax, Reader] = {reader.syntax: reader}
        self._readers[reader.implicit_little.syntax] = reader.implicit_little
        self._source = self._writer.source = memoryview(reader.buffer)
        self._writer.character_set = self.values.patient.character_set

    @property
    def overlays(self) -> int:
        return self.counts[REPEATING]

    def top_level(self, elements: Sequence[Element], stamped: Sequence[int]) -> list[Pieces]:
        """The whole data set without the elements whose tags are `stamped`, cut at each of these places.

        `elements` and `stamped` are in ascending order of tags. Raises Hold for a sequence that cannot be read and for
        content that this stage cannot clean.
        """
        parts = []
        at = 0
        try:
            for tag in stamped:
                start = at
                while at < len(elements) and elements[at].tag < tag:
                    at += 1
                parts.append(self._part(elements[start:at]))
                at += at < len(elements) and elements[at].tag == tag
            parts.append(self._part(elements[at:]))
        except Malformed:
            raise Hold("unreadable_object", at="a nested data set") from None
        return parts

    def unit(self, elements: Sequence[Element]) -> Pieces:
        """Some elements of the top level, all those of their private group among them, and the counts of these alone.

        Raises Hold and Malformed.
        """
        self.counts.clear()
        self.cleaned.clear()
        self.retained = 0
        return self._part(elements)

    def _part(self, elements: Sequence[Element]) -> Pieces:
        pieces = Pieces(self._source)
        self._elements(elements, TOP, self._reader, pieces, 0, UNCHANGED)
        return pieces

    def _elements(
        self,
        elements: Sequence[Element],
        parent: int,
        reader: Reader,
        pieces: Pieces,
        depth: int,
        overrides: Overrides,
    ) -> bool:
        """Write the elements of one data set; True when they are not what came."""
        changed = False
        at = 0
        while at < len(elements):
            element = elements[at]
            at += 1
            if self._private is not None and is_private(element.tag):
                run = [element]
                while at < len(elements) and elements[at].tag >> 16 == element.tag >> 16:
                    run.append(elements[at])
                    at += 1
                changed |= self._private_run(self._private, run, reader, pieces, depth)
            elif (override := overrides.get(element.tag)) is not None:
                changed |= self._override(override, element, self._dictionary[element.tag], reader, pieces, depth)
            else:
                changed |= self._element(element, parent, reader, pieces, depth)
        return changed

    def _private_run(
        self, private: PrivateElements, run: Sequence[Element], reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        """Write what stays of the elements of one private group, in the blocks of their creators."""

        def write(element: Element, creator: str, into: Pieces) -> bool:
            judged = private.judge(creator, element, reader)
            if judged is None:
                return True
            try:
                return self._override(judged.override, element, judged.entry, reader, into, depth)
            except (Hold, Malformed):  # no sequence, or one that cannot be cleaned: it goes alone, unwritten
                self.counts[UNREADABLE_SEQUENCE] += 1
                return True

        outcome = write_run(run, reader, pieces, Pieces(self._source), write)
        self.retained += outcome.kept
        self.counts[PRIVATE] += outcome.removed
        return outcome.changed

    def _override(
        self, override: Override, element: Element, entry: Entry, reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        if not isinstance(override, bytes):
            return self._apply(override.act, element, entry, override, reader, pieces, depth)
        value = bytes(self._source[element.start : element.end])
        return self._writer.replace(element, entry, value, override, CLEANED, reader, pieces)

    def _element(self, element: Element, parent: int, reader: Reader, pieces: Pieces, depth: int) -> bool:
        """Write one element; True when it is not what came."""
        decision = self._plan.decide(element.tag, parent)
        entry = self._dictionary.get(element.tag)
        if entry is None:
            self.counts[decision.because] += 1
            return True
        if element.tag == CONTENT_SEQUENCE and CONTENT_SEQUENCE not in self._rules:
            raise Hold("structured_content", at=place_of(element.tag))
        if element.tag == ENCAPSULATED_DOCUMENT:
            raise Hold("encapsulated_document", at=place_of(element.tag))
        return self._apply(decision.act, element, entry, decision, reader, pieces, depth)

    def _apply(
        self, act: Act, element: Element, entry: Entry, decision: Decision, reader: Reader, pieces: Pieces, depth: int
    ) -> bool:
        if entry.vr == "SQ" and act not in (Act.KEEP, Act.REMOVE):
            return self._sequence(act, element, entry, reader, pieces, depth)
        return self._writer.write(act, element, entry, decision, reader, pieces, depth)

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
        if element.tag in self._rules and not body.size:  # no item is left of it
            if element.tag in EMPTY_WHERE_NOTHING_IS_LEFT:
                pieces.add(header(reader.syntax, element.tag, "SQ", 0))
            return True
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
        overrides: Overrides = UNCHANGED
        if rule := self._rules.get(sequence.tag):
            judged = rule(elements, reader, depth)
            if judged is None:
                self.counts["X"] += 1
                return True
            overrides = judged
            self.cleaned.add(sequence.tag)
        outer = self._writer.character_set
        self._writer.character_set = value_of(elements, CHARACTER_SET, reader) or outer
        contents = Pieces(self._source)
        parent = sequence.tag if not is_private(sequence.tag) else ANYWHERE
        try:
            changed = self._elements(elements, parent, reader, contents, depth, overrides)
        finally:
            self._writer.character_set = outer
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
