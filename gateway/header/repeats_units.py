"""What becomes of the runs of one object: from memory, or made by the rewriter as everywhere else."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property

from gateway.header.actions import CLEANED, Act, cleans_text
from gateway.header.admission import CHARACTER_SET
from gateway.header.descriptors_harvest import STAYS, Harvest
from gateway.header.dictionary import dictionary, is_private
from gateway.header.elements import Buffer, Element, Reader
from gateway.header.encoding import element as encoded
from gateway.header.fitness import fits
from gateway.header.iod import TOP
from gateway.header.pieces import STREAM_FROM_BYTES
from gateway.header.private_words import OwnWords, folded, numbers_of, texts_of
from gateway.header.repeats_questions import NOBODY, Questions
from gateway.header.repeats_store import Admitted, Outcome, Run, Way
from gateway.header.repeats_walk import Place
from gateway.header.rewrite import Rewriter
from gateway.header.rewrite_values import CLEANED as COUNTED_CLEANED
from gateway.header.stamp import STAMPED
from gateway.header.streaming import Span
from gateway.header.uids import new_uids
from gateway.header.watching import WatchedCleaner

NOTHING: frozenset[int] = frozenset()
MAX_TOOLS = 8  # each holds on to the head that it read last
OTHER: Way = ("", Act.REMOVE)
_COUNTED = {Act.UID: ((Act.UID.value, 1),), Act.CLEAN: ((COUNTED_CLEANED, 1),)}
NUMBERS = frozenset({"DS", "FD", "FL", "IS", "SL", "SS", "UL", "US"})


class Answers(OwnWords):
    """Stands for the words of an object while a run is rewritten: answers for `tellers`, notes what was asked."""

    def __init__(self) -> None:  # nothing to gather
        self.tellers: frozenset[OwnWords] = NOBODY
        self.values: list[bytes] = []
        self.numbers: list[bytes] = []

    def occur_in(self, value: bytes) -> bool:
        self.values.append(value)
        return any(teller.occur_in(value) for teller in self.tellers)

    def equal(self, value: bytes) -> bool:
        self.numbers.append(value)
        return any(teller.equal(value) for teller in self.tellers)

    def begin(self, tellers: frozenset[OwnWords]) -> None:
        self.tellers = tellers
        self.values.clear()
        self.numbers.clear()

    def questions(self) -> Questions | None:
        """What was asked since `begin`."""
        if not self.values and not self.numbers:
            return None
        text = "\n".join({folded(text) for value in self.values for text in texts_of(value)})
        return Questions(text, frozenset().union(*map(numbers_of, self.numbers)))


class Sayings:
    """What new runs of one object say of its people (`Harvest` and `OwnWords` of the whole object, run by run)."""

    def __init__(self, admitted: Admitted, reader: Reader) -> None:
        self._setting, self._known, self._reader = admitted.setting, admitted.known, reader
        setting = admitted.setting
        self._harvest = Harvest(reader, setting.plan, setting.policy.edition)
        self._cleans, self._judges = cleans_text(setting.policy.options), setting.keeps_private
        self._declared = setting.patient.character_set

    def learn(self, place: Place) -> None:
        """Fill in what the run says."""
        run = place.run
        run.begin(self._setting)
        elements = place.elements
        if elements is not None and len(elements) == 1 and self._known.quiet.get(elements[0].tag):
            return
        shared = self._known.get(run.raw) if run.group else None
        if shared is not None:
            run.entries, run.words, run.plain = shared.entries, shared.words, shared.plain
            return
        if not self._cleans and not self._judges:
            return
        quiet = self._known.quiet
        loud = [
            element
            for element in elements_of(place, self._reader)
            if element.items is not None
            or not (quiet[element.tag] if element.tag in quiet else self._is_quiet(element.tag))
        ]
        if not loud:
            return
        if self._cleans:
            self._harvest.entries.clear()
            for element in loud:
                stripped = self._declared.strip(b" \0") if element.tag > CHARACTER_SET else self._declared
                self._harvest.take([element], TOP, stripped, self._reader)
            run.entries = frozenset(self._harvest.entries)
        if self._judges and any(not is_private(element.tag) for element in loud):
            words = OwnWords(loud, self._reader, self._setting.plan)
            run.words = (words,) if words else ()

    def _is_quiet(self, tag: int) -> bool:
        """True for an attribute that stays: what the object says in it may be said elsewhere as well."""
        entry = dictionary().get(tag)
        found = entry is not None and entry.vr != "SQ" and self._setting.plan.decide(tag, TOP).act in STAYS
        if entry is not None:  # others are without number
            self._known.quiet[tag] = found
        return found


_TOOLS: dict[tuple[Admitted, object], tuple[Rewriter, Answers]] = {}


class Outcomes:
    """What became of the runs of one object, whose context is `cleaner`, and whose words are `words`."""

    def __init__(
        self, admitted: Admitted, reader: Reader, cleaner: WatchedCleaner | None, words: Sequence[OwnWords]
    ) -> None:
        self._admitted, self._known = admitted, admitted.known
        self._reader, self._cleaner, self._words = reader, cleaner, words
        self.context = cleaner.context if cleaner is not None else None
        self._declared = admitted.setting.patient.character_set

    @cached_property
    def _tools(self) -> tuple[Rewriter, Answers]:
        """A rewriter, and who answers it: those of an earlier object of this context, where there was one."""
        key = (self._admitted, self.context)
        tools = _TOOLS.get(key)
        if tools is not None:
            tools[0].read_from(self._reader)
            return tools
        answers = Answers()
        tools = self._admitted.setting.rewriter(self._reader, b"", self._cleaner, lambda: answers), answers
        if len(_TOOLS) == MAX_TOOLS:
            _TOOLS.clear()
        _TOOLS[key] = tools
        return tools

    def of(self, place: Place) -> Outcome:
        """The outcome of a run. Raises Hold and Malformed."""
        run = place.run
        outcome = run.plain or run.outcomes.get(self.context)
        if outcome is None:
            outcome = self._made(place, self.context, NOBODY)
        if outcome.questions is not None and (tellers := outcome.questions.tellers(self._words)):
            key = (self.context, tellers)
            return run.outcomes.get(key) or self._made(place, key, tellers)
        return outcome

    def _made(self, place: Place, key: Hashable, tellers: frozenset[OwnWords]) -> Outcome:
        elements = elements_of(place, self._reader)
        if len(elements) == 1:
            outcome = self._alone(elements[0], place.run, key)
            if outcome is not None:
                return outcome
        if place.run.first in STAMPED:  # ours stand in its place; in a run it is always the first
            elements = elements[1:]
        rewriter, answers = self._tools
        cleaner = self._cleaner
        answers.begin(tellers)
        rewriter.values.personal = False
        if cleaner is not None:
            cleaner.consulted.clear()
        data = b"".join(
            self._reader.buffer[part.start : part.end] if isinstance(part, Span) else part
            for part in rewriter.unit(elements).finished()
        )
        counts = tuple(rewriter.counts.items())
        outcome = Outcome(data, counts, frozenset(rewriter.cleaned), rewriter.retained, answers.questions())
        if tellers or rewriter.values.personal or (cleaner is not None and cleaner.consulted):
            place.run.remember(key, outcome)
        else:
            place.run.plain = outcome
            if place.run.group:
                self._known.keep(place.run)
        return outcome

    def _alone(self, element: Element, run: Run, key: Hashable) -> Outcome | None:
        """What differs most often between the objects of a series: numbers that are kept, UIDs, cleaned texts.

        None where the rewriter must say, which says the same of these.
        """
        way = self._known.ways.get(element.tag) or self._way(element.tag)
        if way is OTHER or element.undefined:
            return None
        vr, act = way
        if act is Act.KEEP:
            if not fits(vr, element, self._reader):
                return None
            run.plain = outcome = Outcome(run.raw, (), NOTHING, 0, None)
            return outcome
        if element.vr not in ("", vr):
            return None
        value = bytes(self._reader.buffer[element.start : element.end])
        if act is Act.UID:
            new: bytes | None = new_uids(value, self._admitted.setting.pseudonyms) if value.strip(b" \0") else value
        else:
            new = self._cleaner.descriptor(vr, value, self._declared) if self._cleaner is not None else None
        bare = value.strip(b" \0")
        if new is None or (bare and not new):
            return None
        if bare == new.strip(b" \0"):
            outcome = Outcome(run.raw, (), NOTHING, 0, None)
        else:
            data = encoded(self._reader.syntax, element.tag, vr, new)
            outcome = Outcome(data, _COUNTED[act], NOTHING, 0, None)
        if act is Act.UID:
            run.plain = outcome
        else:
            run.remember(key, outcome)
        return outcome

    def _way(self, tag: int) -> Way:
        """How `_alone` may treat an attribute."""
        entry = dictionary().get(tag)
        if entry is None or tag in STAMPED:
            return OTHER  # unknown tags are without number
        act = self._admitted.setting.plan.decide(tag, TOP).act
        number = act is Act.KEEP and entry.vr in NUMBERS
        uid = act is Act.UID and entry.vr == "UI"
        text = act is Act.CLEAN and entry.vr in CLEANED
        way = (entry.vr, act) if number or uid or text else OTHER
        self._known.ways[tag] = way
        return way

    def of_pixels(self, element: Element) -> tuple[Outcome, list[Buffer | Span]]:
        """Pixel Data, of which only the place is said. Raises Hold."""
        kept = self._admitted.pixels.get(element.vr)
        if kept is not None and element.stop - element.head >= STREAM_FROM_BYTES:
            return kept, [Span(element.head, element.stop)]
        rewriter, answers = self._tools
        answers.begin(NOBODY)
        parts = rewriter.unit([element]).finished()
        outcome = Outcome(b"", tuple(rewriter.counts.items()), NOTHING, 0, None)
        if parts == [Span(element.head, element.stop)]:
            self._admitted.pixels[element.vr] = outcome
        return outcome, parts


def elements_of(place: Place, reader: Reader) -> Sequence[Element]:
    """The elements of a run, read again when it is not new."""
    if place.elements is not None:
        return place.elements
    return reader.elements(place.at, place.at + len(place.run.raw))
