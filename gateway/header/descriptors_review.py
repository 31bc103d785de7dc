"""Which words of a site's descriptions are masked only because no list knows them: candidates for its own allow-list.

For `text review`, that is for a person who may see the originals. Nothing is written, and a word that is one of an
object's own names, numbers or places is never offered, not even for another object of the review.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import StudyError
from gateway.header.actions import Act
from gateway.header.admission import CHARACTER_SET, SOP_CLASS
from gateway.header.descriptors import Cleaner, cleaner_for
from gateway.header.descriptors_folding import fold
from gateway.header.dictionary import dictionary
from gateway.header.elements import Element, Malformed, Reader
from gateway.header.items import value_of
from gateway.header.plan import Plan, plan_for
from gateway.header.source import open_source, top_level
from gateway.policy import HeaderPolicy

MAX_DIGITS = 4  # of a word that a site's list may hold


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word as it is written most often, how often it stands there, in how many files, and in which attributes."""

    word: str
    times: int
    files: int
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """Candidates, the most frequent first; how many files were read, and how many could not be."""

    candidates: tuple[Candidate, ...]
    read: int
    unread: int


def review(paths: Iterable[Path], policy: HeaderPolicy) -> Review:
    """The candidates of these files. Raises OSError."""
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    files: Counter[str] = Counter()
    attributes: dict[str, set[str]] = defaultdict(set)
    cleaners: set[Cleaner] = set()
    read = unread = 0
    for path in paths:
        try:
            cleaner, found = _words_of(path, policy)
        except (StudyError, Malformed):
            unread += 1
            continue
        read += 1
        cleaners.add(cleaner)
        for word, keyword in found:
            spellings[fold(word)][word] += 1
            attributes[fold(word)].add(keyword)
        files.update({fold(word) for word, _ in found})
    candidates = [
        Candidate(counted.most_common(1)[0][0], counted.total(), files[word], tuple(sorted(attributes[word])))
        for word, counted in spellings.items()
        if not any(cleaner.own.is_strong(word) for cleaner in cleaners)
    ]
    candidates.sort(key=lambda candidate: (-candidate.files, -candidate.times, candidate.word))
    return Review(tuple(candidates), read, unread)


def _words_of(path: Path, policy: HeaderPolicy) -> tuple[Cleaner, list[tuple[str, str]]]:
    """(word, keyword of the attribute) for every unknown word in one file. Raises StudyError, Malformed and OSError."""
    source = open_source(path)
    reader, elements, _ = top_level(source)
    plan = plan_for(policy, value_of(elements, SOP_CLASS, reader).decode("latin-1"))
    character_set = value_of(elements, CHARACTER_SET, reader)
    cleaner = cleaner_for(policy, plan, reader, elements, character_set)
    if cleaner is None:
        raise ValueError("a review needs a policy with clean-descriptors")
    return cleaner, list(_unknown(cleaner, plan, reader, elements, 0, character_set))


def _unknown(
    cleaner: Cleaner, plan: Plan, reader: Reader, elements: Sequence[Element], parent: int, character_set: bytes
) -> Iterator[tuple[str, str]]:
    for element in elements:
        entry = dictionary().get(element.tag)
        if entry is None:
            continue
        act = plan.decide(element.tag, parent).act
        if act is Act.CLEAN and not element.undefined:
            value = bytes(reader.buffer[element.start : element.end])
            for word in cleaner.unknown_words(entry.vr, value, character_set):
                if sum(map(str.isdecimal, word)) <= MAX_DIGITS and not word.isdecimal():
                    yield word, entry.keyword
        elif act is Act.RECURSE and entry.vr == "SQ":
            inner = reader.implicit_little if element.vr == "UN" else reader
            items = element.items
            if items is None:
                items = inner.items(element.start, element.end, 0, delimited=False)
            for item in items:
                within = Reader(inner.buffer, item.syntax)
                parts = item.elements if item.elements is not None else within.elements(item.start, item.end, 1)
                own_set = value_of(parts, CHARACTER_SET, within) or character_set
                yield from _unknown(cleaner, plan, within, parts, element.tag, own_set)
