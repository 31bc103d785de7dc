"""What the objects of a series repeat byte for byte, kept in memory while a worker lives; bounded, never written.

A `Run` is some neighbouring top-level elements as they came, and what became of them. A `Series` holds the runs of
one series under one policy and key. Nothing here decides: a run counts only where the bytes are the same and
everything that its outcome depends on is the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.header.actions import Act
from gateway.header.descriptors_harvest import Entry
from gateway.header.private_words import OwnWords
from gateway.header.repeats_questions import Questions
from gateway.header.setting import Setting
from gateway.header.watching import WatchedCleaner
from gateway.policy import HeaderPolicy

MAX_BYTES, MAX_SERIES_BYTES, MAX_KNOWN_BYTES = 32 << 20, 4 << 20, 4 << 20
MAX_SERIES, MAX_KNOWN = 64, 4
MAX_ALIKE = 4  # runs that begin with the same eight bytes
MAX_OUTCOMES = 4  # of one run
MAX_MISSES = 8  # after so many other values an element is one that differs in every object
MAX_OF_A_KIND = 1024  # settings and varying elements of a series
MAX_CONTEXTS, CONTEXT_BYTES = 8, 1 << 16  # of a series; what one with its words weighs, about
OVERHEAD_BYTES = 900  # of a run's Python objects, about
NO_ENTRIES: frozenset[Entry] = frozenset()


class Outcome(NamedTuple):
    """What became of a run: its bytes in the output, counts, cleaned sequences, private elements that stay.

    It holds for objects whose words answer none of the `questions`.
    """

    data: bytes
    counts: tuple[tuple[str, int], ...]
    cleaned: frozenset[int]
    retained: int
    questions: Questions | None


class Run:
    """Some neighbouring elements. `zone` is how many of our own elements come before its end.

    `special` is what admission looks at; `group` are the bytes of a private group that must not go on behind it.
    `entries` and `words` are what it says of its people, for the descriptors and for private text, under `setting`.
    `plain` is an outcome that depends on policy and class only; `outcomes` are those that depend on the context, too,
    or on the words that answer its questions.
    """

    special = sop_instance = group = b""
    setting: Setting | None = None
    entries: frozenset[Entry] = NO_ENTRIES
    words: tuple[OwnWords, ...] = ()
    plain: Outcome | None = None
    age = 0

    def __init__(self, raw: bytes, first: int, last: int, zone: int) -> None:
        self.raw, self.first, self.last, self.zone = raw, first, last, zone
        self.outcomes: dict[Hashable, Outcome] = {}

    @property
    def weight(self) -> int:
        return 3 * len(self.raw) + OVERHEAD_BYTES

    def begin(self, setting: Setting) -> None:
        """Nothing of another setting holds."""
        if self.setting is not None:
            self.entries, self.words, self.plain = NO_ENTRIES, (), None
            self.outcomes.clear()
        self.setting = setting

    def remember(self, key: Hashable, outcome: Outcome) -> None:
        if len(self.outcomes) >= MAX_OUTCOMES:
            self.outcomes.clear()
        self.outcomes[key] = outcome


Way = tuple[str, Act]  # the VR of PS3.6 and what is done


class Shared(NamedTuple):
    """What a run of another object says and what became of it."""

    entries: frozenset[Entry]
    words: tuple[OwnWords, ...]
    plain: Outcome | None


class Known:
    """Elements that objects of a class may share, whoever's they are, by their bytes."""

    def __init__(self, policy: HeaderPolicy) -> None:
        self.policy = policy  # as in Series
        self.quiet: dict[int, bool] = {}
        self.ways: dict[int, Way] = {}
        self._runs: dict[bytes, Shared] = {}
        self._size = 0
        self.get = self._runs.get

    def keep(self, run: Run) -> None:
        self._size += run.weight
        if self._size > MAX_KNOWN_BYTES:
            self._runs.clear()
            self._size = run.weight
        self._runs[run.raw] = Shared(run.entries, run.words, run.plain)


@dataclass(slots=True, eq=False)
class Admitted:
    """A setting with what else is the same for its objects. `stamps` by what was carried out."""

    setting: Setting
    earlier: list[str]
    known: Known
    stamps: dict[Hashable, list[bytes]] = field(default_factory=dict)
    pixels: dict[str, Outcome] = field(default_factory=dict)  # by VR, where they are kept as they came


class Shape(NamedTuple):
    """An element with a short VR, whatever its value: `zone` as in a run."""

    tag: int
    vr: str
    zone: int


@dataclass(slots=True, eq=False)
class Series:
    """The runs of one series by their first eight bytes, and the settings and contexts of its objects.

    `varying` are the tags whose values differ between objects of a series of this class, as far as they are known.
    """

    policy: HeaderPolicy  # its identity is part of the key: it must not go while the key is there
    varying: set[int]
    runs: dict[bytes, list[Run]] = field(default_factory=dict)
    misses: dict[bytes, int] = field(default_factory=dict)
    shapes: dict[bytes, Shape] = field(default_factory=dict)  # by tag and VR as they are encoded
    admitted: dict[Hashable, Admitted] = field(default_factory=dict)
    contexts: dict[Hashable, WatchedCleaner] = field(default_factory=dict)
    size: int = 0
    clock: int = 0
    objects: int = 0

    def differs(self, run: Run) -> bool:
        """Count an element that was not the same; True for one that never is, which is not worth keeping."""
        self.varying.add(run.first)
        key = run.raw[:8]
        count = self.misses.get(key, 0) + 1
        self.misses[key] = count
        return count > MAX_MISSES

    def keep(self, run: Run) -> None:
        """Keep a run, in place of the oldest one that begins alike."""
        self.clock += 1
        run.age = self.clock
        key = run.raw[:8]
        alike = self.runs.get(key)
        if alike is None:
            self.runs[key] = [run]
            self.size += 3 * len(run.raw) + OVERHEAD_BYTES
            return
        alike = [one for one in alike if one.raw != run.raw]
        self.size += run.weight
        if len(alike) == MAX_ALIKE:
            oldest = min(alike, key=lambda one: one.age)
            alike.remove(oldest)
            self.size -= oldest.weight
        self.runs[key] = sorted([run, *alike], key=lambda one: -len(one.raw))

    def understand(self, keys: Sequence[Hashable], cleaner: WatchedCleaner) -> None:
        """Remember the cleaner of a context."""
        if len(self.contexts) >= 2 * MAX_CONTEXTS:
            self.contexts.clear()
        self.contexts.update(dict.fromkeys(keys, cleaner))
        self.size += CONTEXT_BYTES

    @property
    def is_full(self) -> bool:
        most = max(len(self.misses), len(self.admitted))
        return self.size > MAX_SERIES_BYTES or most > MAX_OF_A_KIND


class Repeats:
    """All series that a worker saw lately. One thread at a time: whoever holds `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._series: OrderedDict[Hashable, Series] = OrderedDict()
        self._known: OrderedDict[Hashable, Known] = OrderedDict()
        self._varying: OrderedDict[str, set[int]] = OrderedDict()

    def series(self, key: Hashable, policy: HeaderPolicy, sop_class: str) -> Series:
        """The series of a key, which names the policy by its identity."""
        found = self._series.get(key)
        if found is None or found.is_full:
            found = self._series[key] = Series(policy, self._varying_of(sop_class))
            size = sum(series.size for series in self._series.values())
            while size > MAX_BYTES - MAX_SERIES_BYTES or len(self._series) > MAX_SERIES:
                size -= self._series.popitem(last=False)[1].size
        self._series.move_to_end(key)
        return found

    def _varying_of(self, sop_class: str) -> set[int]:
        found = self._varying.get(sop_class)
        if found is None or len(found) > MAX_OF_A_KIND:
            found = self._varying[sop_class] = set()
            if len(self._varying) > MAX_SERIES:
                self._varying.popitem(last=False)
        return found

    def known(self, key: Hashable, policy: HeaderPolicy) -> Known:
        """The same for what is not of one series."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Known(policy)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return found

    def clear(self) -> None:
        self._series.clear()
        self._known.clear()
        self._varying.clear()
