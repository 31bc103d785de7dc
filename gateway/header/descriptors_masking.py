"""One text in, the same text without identity out (PS3.15 E.3.5).

Masked, wherever they stand: the object's own words (`descriptors_own`), dates and what identifies by its form
(`descriptors_dates`, `descriptors_patterns`), the name behind a title (`descriptors_people`), and every token that the
allow-list does not know (`descriptors_words`). Ages over 89 become 90.

A mask leaves no mark. With the masked token goes the weaker of the separators on its two sides (the shorter one; of two
equal ones the one before), at an edge of the text the separators there, and brackets that are left empty:

    T1 post Zzsynth L 31.01.1950            ->  T1 post L
    P4^P101^S108^I0, Gated, 0.0% 20140321   ->  P4^P101^S108^I0, Gated, 0.0%

Everything else stays, character for character; a text in which nothing is masked comes back as it is. What is left is
judged again until nothing more goes, so that cleaning twice is cleaning once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gateway.header.descriptors_ages import old_ages_in
from gateway.header.descriptors_cues import cues_in
from gateway.header.descriptors_dates import dates_in
from gateway.header.descriptors_folding import fold, is_ideographic
from gateway.header.descriptors_houses import known_houses
from gateway.header.descriptors_own import OwnWords
from gateway.header.descriptors_own_spans import own_spans
from gateway.header.descriptors_patterns import forms_in
from gateway.header.descriptors_people import people_in
from gateway.header.descriptors_signatures import own_initials
from gateway.header.descriptors_terms import kept_terms
from gateway.header.descriptors_tokens import Span, Token, tokens_of
from gateway.header.descriptors_words import UNITS, Words

MAX_PASSES = 8
MAX_REMEMBERED = 1024  # characters of a text: the reading of 16,000 takes more than a megabyte
TECHNICAL_LETTERS = 4  # shortest name that is looked for in text that stays for being technical, codes among it
LONGEST_MEASURE = 7  # digits of a number that a unit follows
_SEPARATORS = " \t\r\n,;:^_/=-'\"|+&"
_LEFT = re.compile(rf"[\s{re.escape(_SEPARATORS)}]*\Z")
_RIGHT = re.compile(rf"[\s{re.escape(_SEPARATORS)}.]*")
_SIGNED = re.compile(r"[^\W_]\+\Z|(?<![^\W_])[^\W\d_]{1,2}-\Z")
_SIGN = re.compile(r"\+[^\W_]|-\d")
_NOTHING = re.compile(r"[\s,;:^_/=.'\"&+-]*")
_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}

Change = tuple[int, int, str]  # start, end, what is written instead


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a text shows without knowing whose it is: its tokens, which of them nobody knows, spans to mask, ages.

    `cues` are the tokens that may say who somebody is, by their numbers.
    """

    tokens: tuple[Token, ...]
    cues: tuple[int, ...]
    unknown: tuple[Span, ...]
    forms: tuple[Span, ...]
    ages: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Masked:
    """A text after masking, and the unknown tokens that went for being unknown and for nothing else."""

    text: str
    unknown: tuple[str, ...] = ()


def _unknown_in(text: str, tokens: Sequence[Token], words: Words) -> Iterable[Span]:
    strange = [index for index, token in enumerate(tokens) if not words.stays(token.text)]
    safe = kept_terms(text, tokens, strange, words)
    for index in strange:
        token = tokens[index]
        if any(start <= token.start and token.end <= end for start, end in safe):
            continue
        if any(map(is_ideographic, token.text)):
            yield from ((token.start + a, token.start + b) for a, b in words.unknown_characters(token.text))
        elif not (token.text.isdecimal() and _is_measure(text, tokens, index)):
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if not words.begins_sentence(text, token, following):
                yield token.start, token.end


def _is_measure(text: str, tokens: Sequence[Token], index: int) -> bool:
    """True for the digits of a fraction, and for a number with its unit."""
    token = tokens[index]
    before, after = text[max(0, token.start - 2) : token.start], text[token.end : token.end + 2]
    if (
        len(before) == 2
        and before[0].isdecimal()
        and before[1] == "."
        and not (after[:1] == "." and after[1:].isdecimal())
    ):
        return True
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    return (
        len(token.text) <= LONGEST_MEASURE
        and following is not None
        and not text[token.end : following.start].strip(" ")
        and fold(following.text) in UNITS
        and len(following.text) > 1
    )


def _read(text: str, words: Words) -> Reading:
    tokens = tokens_of(text)
    forms = list(dates_in(text))
    for start, end, street in forms_in(text):
        if not street or any(
            not words.stays(token.text) or words.is_everyday(fold(token.text))
            for token in tokens
            if start <= token.start < end
        ):
            forms.append((start, end))
    forms += known_houses(text, tokens, words)
    ages = [age for age in old_ages_in(text) if not any(start <= age[0] < end for start, end in forms)]
    unknown = list(_unknown_in(text, tokens, words))
    if ages:
        unknown = [span for span in unknown if not any(a <= span[0] < b for a, b, _ in ages)]
    return Reading(tuple(tokens), cues_in(tokens), tuple(unknown), tuple(forms), tuple(ages))


_remembered_reading = lru_cache(maxsize=1 << 12)(_read)


def reading_of(text: str, words: Words) -> Reading:
    """The reading of a text. That of a short one is remembered: the slices of a series all say the same."""
    return (_remembered_reading if len(text) <= MAX_REMEMBERED else _read)(text, words)


def masked(text: str, own: OwnWords) -> Masked:
    """A descriptor cleaned by own words, forms, titles and the allow-list."""
    unknown: list[str] = []
    for _ in range(MAX_PASSES):
        left, strange = _masked_once(text, own)
        unknown += strange
        if left is None:
            break
        text = left
    return Masked(text, tuple(unknown))


def _masked_once(text: str, own: OwnWords) -> tuple[str | None, tuple[str, ...]]:
    """What one reading leaves of a text, None when all stays, and what went only for being unknown."""
    reading = reading_of(text, own.words)
    mine = tuple(own_spans(own, text, reading.tokens))
    mine += tuple(own_initials(own, text, reading.tokens, (*mine, *reading.forms)))
    return (_remembered_masking if len(text) <= MAX_REMEMBERED else _masked_with)(text, mine, reading, own.words)


def _masked_with(
    text: str, mine: tuple[Span, ...], reading: Reading, words: Words
) -> tuple[str | None, tuple[str, ...]]:
    """The same where the own words stand at `mine`: whose they are does not matter."""
    people = people_in(text, reading.tokens, reading.cues, mine, reading.unknown, words)
    if not (mine or reading.forms or reading.unknown or people or reading.ages):
        return None, ()
    known_spans = [*mine, *reading.forms]
    strange = [
        text[start:end]
        for start, end in reading.unknown
        if not any(a < end and start < b for a, b in (*known_spans, *people))
    ]
    changes = [(start, end, "") for start, end in (*known_spans, *reading.unknown, *people)]
    return _without(text, [*changes, *reading.ages]), tuple(strange)


_remembered_masking = lru_cache(maxsize=1 << 12)(_masked_with)


def without_own(text: str, own: OwnWords) -> str:
    """A text that stays for being technical, without own names, numbers and dates."""
    for _ in range(MAX_PASSES):
        spans = own_spans(own, text, tokens_of(text), TECHNICAL_LETTERS)
        if not spans:
            break
        text = _without(text, [(start, end, "") for start, end in spans])
    return text


def _joined(text: str, changes: Iterable[Change]) -> list[Change]:
    """Changes in order without overlap; masks with only separators between them become one."""
    merged: list[Change] = []
    for start, end, new in sorted(changes, key=lambda change: (change[0], -change[1])):
        if merged and start < merged[-1][1]:
            last = merged[-1]
            merged[-1] = (last[0], max(end, last[1]), "" if not new else last[2])
        elif merged and not new and not merged[-1][2] and _NOTHING.fullmatch(text, merged[-1][1], start):
            merged[-1] = (merged[-1][0], end, "")
        else:
            merged.append((start, end, new))
    return merged


def _without(text: str, changes: Iterable[Change]) -> str:
    kept = ""
    at = 0
    for first, last, new in _joined(text, changes):
        if new:
            kept += text[at:first] + new
            at = last
            continue
        start, end = _with_brackets(text, first, last)
        kept += text[at:start]
        left, right = _LEFT.search(kept), _RIGHT.match(text, end)
        before, after = left[0] if left else "", right[0] if right else ""
        if len(before) > 1 and _SIGNED.search(kept[: len(kept) - len(before) + 1]):
            before = before[1:]  # C+ is a word, and C-
        if len(after) > 1 and _SIGN.match(text, end + len(after) - 1) and after[-2].isspace():
            after = after[:-1]  # +C is one too, and -45
        kept = kept[: len(kept) - len(before)]
        at = end + len(after)
        if kept and at < len(text):
            kept += before if len(before) > len(after.rstrip(".")) or not after else after
    return kept + text[at:]


def _with_brackets(text: str, start: int, end: int) -> Span:
    """The span with brackets around it that would be left empty."""
    while True:
        opened, closed = text[:start].rstrip(), text[end:].lstrip()
        if not opened or not closed or _BRACKETS.get(opened[-1]) != closed[0]:
            return start, end
        start, end = len(opened) - 1, len(text) - len(closed) + 1
