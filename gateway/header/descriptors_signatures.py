"""Initials in place of a name: of whoever did it, of whom it is about, beside a date of birth, or with their dots.

The allow-list alone would leave "JD" of "ordered by JD" and of "JD *1950-01-31": two letters are no unknown word.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_own import OwnWords
from gateway.header.descriptors_tokens import Span, Token
from gateway.header.descriptors_words import SHORT_LETTERS, Words

LABEL_GAP = re.compile(r"[ \t]*[:=]?[ \t]*")
CLOSE = re.compile(r"[ \t.,]{0,3}")
_BESIDE = re.compile(r"[\s^,.;:_/*()-]{0,3}")
_BORN = frozenset({"born", "birth", "dob", "geb", "geboren", "ne", "nee"})
MAX_INITIALS = 4
_LETTERS = re.compile(r"[^\W\d_]+")


def is_initial(text: str, token: Token, words: Words) -> bool:
    """True for a capital with a dot that is not the first part of a technical word, Q.Clear."""
    if len(token.text) != 1 or not token.text.isupper() or text[token.end : token.end + 1] != ".":
        return False
    attached = _LETTERS.match(text, token.end + 1)
    return attached is None or len(attached[0]) <= SHORT_LETTERS or not words.is_core(fold(attached[0]))


def initials_of_author(text: str, tokens: Sequence[Token], at: int, words: Words) -> Iterator[Span]:
    """Initials of whoever did it: by JD, tech: J.S., performed by MK."""
    if at >= len(tokens) or not LABEL_GAP.fullmatch(text, tokens[at - 1].end, tokens[at].start):
        return
    token = tokens[at]
    if token.text.isupper() and 2 <= len(token.text) <= 3 and not words.knows(token.text):
        yield token.start, token.end
    while at < len(tokens) and is_initial(text, tokens[at], words):
        yield tokens[at].start, tokens[at].end + 1
        at += 1


def initials_of_whom(text: str, tokens: Sequence[Token], index: int, words: Words) -> Iterator[Span]:
    """Initials behind "for" and "patient": for MK. Not an abbreviation that the list knows: for PE."""
    if fold(tokens[index].text) in ("of", "from", "name") or index + 1 >= len(tokens):
        return
    token = tokens[index + 1]
    if (
        len(token.text) == 2
        and token.text.isupper()
        and token.text.isalpha()
        and not words.knows(token.text)
        and LABEL_GAP.fullmatch(text, tokens[index].end, token.start)
    ):
        yield token.start, token.end


def initials_alone(text: str, tokens: Sequence[Token], index: int, words: Words) -> Iterator[Span]:
    """J.D. and J.D.M., written together, when that is no abbreviation: not A.P., P.A., I.V."""
    if (
        index
        and text[tokens[index - 1].end : tokens[index].start] == "."
        and is_initial(text, tokens[index - 1], words)
    ):
        return
    at = index
    while (
        at + 1 < len(tokens) and is_initial(text, tokens[at + 1], words) and tokens[at + 1].start == tokens[at].end + 1
    ):
        at += 1
    letters = "".join(token.text for token in tokens[index : at + 1])
    if 2 <= len(letters) <= 3 and not words.knows(letters):
        yield tokens[index].start, tokens[at].end + 1


def own_initials(own: OwnWords, text: str, tokens: Sequence[Token], spans: Sequence[Span]) -> Iterator[Span]:
    """Initials of the object's people beside what else is masked: JS 31.01.1950, 1950-01-31 (J S), LEAK0001_JS.

    Not an abbreviation that the list knows, and not a single letter, which may be a side.
    """
    starts = [token.start for token in tokens] if spans and own.initials else []
    for first, end in spans if starts else ():
        start, at, behind = first, bisect_left(starts, first), bisect_left(starts, end)
        if at and fold(tokens[at - 1].text) in _BORN and _BESIDE.fullmatch(text, tokens[at - 1].end, first):
            at -= 1
            start = tokens[at].start
        if at and _BESIDE.fullmatch(text, tokens[at - 1].end, start):
            yield from _initials_of(own, text, tokens[max(0, at - MAX_INITIALS) : at][::-1])
        if behind < len(tokens) and _BESIDE.fullmatch(text, end, tokens[behind].start):
            yield from _initials_of(own, text, tokens[behind : behind + MAX_INITIALS])


def _initials_of(own: OwnWords, text: str, nearest: Sequence[Token]) -> Iterator[Span]:
    """The nearest token where it is initials, or the single letters up to there."""
    run = [nearest[0]]
    for token in nearest[1:] if len(nearest[0].text) == 1 else ():
        first, second = sorted((token, run[-1]))
        if len(token.text) > 1 or not CLOSE.fullmatch(text, first.end, second.start):
            break
        run.append(token)
    letters = "".join(token.text for token in run)
    written = letters.isalpha() and (letters.isupper() or text.islower())
    if not written or not 2 <= len(letters) <= MAX_INITIALS or own.words.knows(letters):
        return
    people = [own.initials.get(fold(letter), set()) for letter in letters]
    if set.intersection(*people):
        yield from ((token.start, token.end) for token in run)
