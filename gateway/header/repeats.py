"""The short way for objects of a series: what came byte for byte before is not read and rewritten again.

The head of a file is walked in runs of elements that a series repeats (`repeats_store`); only what is new is tokenized
and rewritten, by the same `Rewriter` as everything else. An outcome is taken from memory only where its bytes and all
that it depends on are the same: policy, key, syntax, class, patient and character set (the setting), the words that
cleaning looks for (the context), and for private elements the words of the object that they repeat.

Whatever is unusual is not done here: `scrubbed_by_repeats` answers None, and the object goes the long way, which says
what is wrong with it. Both ways give the same bytes and counts (tests/header/test_header_speed.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from gateway.errors import StudyError
from gateway.header.actions import cleans_text
from gateway.header.admission import Facts, admit, is_report
from gateway.header.descriptors import own_of
from gateway.header.elements import Buffer, Malformed, Reader
from gateway.header.encapsulated import DOCUMENTS
from gateway.header.head import HEAD_BYTES, LONG_HEAD_BYTES, Head, read_head, series_hint
from gateway.header.plan import REPEATING
from gateway.header.repeats_store import Admitted, Outcome, Repeats, Series
from gateway.header.repeats_units import Outcomes, Sayings
from gateway.header.repeats_walk import MAX_RUN_BYTES, Place, TooShort, Unusual, merged, pixel_data, walk
from gateway.header.scrubbed import Scrubbed
from gateway.header.setting import Setting
from gateway.header.stamp import METHOD_CODES, earlier_codes, file_meta
from gateway.header.streaming import Span
from gateway.header.watching import WatchedCleaner
from gateway.policy import HeaderPolicy
from gateway.policy.model import SAFE_PRIVATE
from gateway.pseudonyms import Pseudonyms

MERGED_FIRST, MERGED_EVERY, MANY_RUNS = 4, 16, 32  # when the runs of a series grow together
MAX_STAMPS = 64
REPEATS = Repeats()


def scrubbed_by_repeats(descriptor: int, policy: HeaderPolicy, pseudonyms: Pseudonyms) -> Scrubbed | None:
    """An object rewritten with what its series taught; None for one that must go the long way. Raises OSError."""
    if not REPEATS.lock.acquire(blocking=False):
        return None  # another thread is at it
    try:
        for most in (HEAD_BYTES, LONG_HEAD_BYTES):
            head = read_head(descriptor, most)
            if head is None:
                return None
            with suppress(TooShort):
                return _scrubbed(descriptor, head, policy, pseudonyms)
            if head.is_whole:
                return None
    except (Unusual, StudyError, Malformed):
        pass
    finally:
        REPEATS.lock.release()
    return None


def _scrubbed(descriptor: int, head: Head, policy: HeaderPolicy, pseudonyms: Pseudonyms) -> Scrubbed:
    """Raises Unusual, StudyError and Malformed."""
    key = (id(policy), pseudonyms, head.transfer_syntax, head.sop_class, series_hint(head))
    series = REPEATS.series(key, policy, head.sop_class)
    reader = Reader(head.data, head.syntax)
    places, end = walk(head, reader, series, by_group=SAFE_PRIVATE in policy.options)
    pixels = pixel_data(descriptor, head, end, reader)
    admitted, sop_instance = _admitted(places, reader, series, policy, pseudonyms)
    cleaner = _understood(places, reader, series, admitted)
    words = [words for place in places for words in place.run.words]
    made = Outcomes(admitted, reader, cleaner, words)
    context, of = made.context, made.of
    outcomes = []
    for place in places:
        outcome = place[0].plain or place[0].outcomes.get(context)
        outcomes.append(outcome if outcome is not None and outcome.questions is None else of(place))
    tail: list[Buffer | Span] = []
    of_pixels: tuple[Outcome, ...] = ()
    if pixels is not None:
        outcome, tail = made.of_pixels(pixels)
        of_pixels = (outcome,)
    setting = admitted.setting
    counts: Counter[str] = Counter()
    for outcome in (*outcomes, *of_pixels):
        for name, number in outcome.counts:
            counts[name] += number
    stamps = _stamps(admitted, reader, outcomes, counts)
    parts = [file_meta(setting.sop_class, setting.sop_instance(sop_instance), head.transfer_syntax)]
    zone = 0
    for place, outcome in zip(places, outcomes, strict=True):
        if place.run.zone != zone:
            parts += stamps[zone : place.run.zone]
            zone = place.run.zone
        parts.append(outcome.data)
    parts += stamps[zone:]
    series.objects += 1
    if len(places) > MANY_RUNS or series.objects <= MERGED_FIRST or series.objects % MERGED_EVERY == 0:
        _merge(head, series, places, outcomes, cleaner)
    return Scrubbed.of([b"".join(parts), *tail], counts)


def _admitted(
    places: Sequence[Place], reader: Reader, series: Series, policy: HeaderPolicy, pseudonyms: Pseudonyms
) -> tuple[Admitted, str]:
    """The object's setting and its SOP Instance UID."""
    special = b"".join([place.run.special for place in places])
    instance = b"".join([place.run.sop_instance for place in places])
    admitted = series.admitted.get(special)
    if admitted is None:
        own = Reader(special + instance, reader.syntax)
        elements = own.elements(0, len(own.buffer))
        facts = admit(elements, own, policy)
        if is_report(facts.sop_class) or facts.sop_class.startswith(DOCUMENTS):
            raise Unusual
        method_codes = next((element for element in elements if element.tag == METHOD_CODES), None)
        earlier = earlier_codes(method_codes, own)
        alike = (facts.sop_class, facts.patient_id, facts.character_set, *earlier)
        admitted = series.admitted.get(alike) or _new_setting(facts, earlier, reader, policy, pseudonyms)
        series.admitted[special] = series.admitted[alike] = admitted
    (element,) = Reader(instance, reader.syntax).elements(0, len(instance)) or (None,)
    text = instance[element.start : element.end].decode("latin-1").strip(" \0") if element is not None else ""
    if not text or "\\" in text:
        raise Unusual
    return admitted, text


def _new_setting(
    facts: Facts, earlier: list[str], reader: Reader, policy: HeaderPolicy, pseudonyms: Pseudonyms
) -> Admitted:
    known = (id(policy), pseudonyms, reader.syntax, facts.sop_class, facts.character_set)
    return Admitted(Setting.of(facts, policy, pseudonyms), earlier, REPEATS.known(known, policy))


def _understood(places: Sequence[Place], reader: Reader, series: Series, admitted: Admitted) -> WatchedCleaner | None:
    """Learn what new runs say of the object's people; the cleaner of objects that say all of it."""
    setting = admitted.setting
    sayings = None
    for place in places:
        if place.run.setting is not setting:
            if sayings is None:
                sayings = Sayings(admitted, reader)
            sayings.learn(place)
    if not cleans_text(setting.policy.options):
        return None
    entries = tuple([place.run.entries for place in places if place.run.entries])
    cleaner = series.contexts.get((setting, entries))
    if cleaner is None:
        own = own_of(setting.policy, frozenset().union(*entries))
        cleaner = series.contexts.get((setting, own)) or WatchedCleaner(own)
        series.understand([(setting, entries), (setting, own)], cleaner)
    return cleaner


def _stamps(admitted: Admitted, reader: Reader, outcomes: Sequence[Outcome], counts: Counter[str]) -> list[bytes]:
    """What the output says of itself, by what was carried out."""
    cleaned = frozenset().union(*[outcome.cleaned for outcome in outcomes])
    retained, overlays = sum([outcome.retained for outcome in outcomes]), counts[REPEATING]
    key = (cleaned, retained, overlays)
    found = admitted.stamps.get(key)
    if found is None:
        done = admitted.setting.done(cleaned, private=retained, overlays=overlays)
        found = [stamp for _, stamp in admitted.setting.stamps(reader.syntax, admitted.earlier, done)]
        if len(admitted.stamps) >= MAX_STAMPS:
            admitted.stamps.clear()
        admitted.stamps[key] = found
    return found


def _merge(
    head: Head,
    series: Series,
    places: Sequence[Place],
    outcomes: Sequence[Outcome],
    cleaner: WatchedCleaner | None,
) -> None:
    """Neighbours that were known before are one run from now on."""
    stretch: list[int] = []
    for number, place in enumerate(places):
        run = place.run
        repeats = place.elements is None and not run.group and outcomes[number].questions is None
        if stretch and not (repeats and run.zone == places[stretch[0]].run.zone):
            _merge_stretch(head, series, places, outcomes, cleaner, stretch)
            stretch = []
        if repeats:
            stretch.append(number)
    _merge_stretch(head, series, places, outcomes, cleaner, stretch)


def _merge_stretch(
    head: Head,
    series: Series,
    places: Sequence[Place],
    outcomes: Sequence[Outcome],
    cleaner: WatchedCleaner | None,
    stretch: Sequence[int],
) -> None:
    if len(stretch) < 2:
        return
    run = merged(head.data, [places[number] for number in stretch])
    if len(run.raw) > MAX_RUN_BYTES:
        return
    counts: Counter[str] = Counter()
    parts = [outcomes[number] for number in stretch]
    for part in parts:
        counts.update(dict(part.counts))
    outcome = Outcome(
        b"".join([part.data for part in parts]),
        tuple(counts.items()),
        frozenset().union(*[part.cleaned for part in parts]),
        sum(part.retained for part in parts),
        None,
    )
    if all(places[number].run.plain for number in stretch):
        run.plain = outcome
    else:
        run.remember(cleaner.context if cleaner is not None else None, outcome)
    series.keep(run)
