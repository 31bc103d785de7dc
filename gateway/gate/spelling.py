"""The spellings under which one value may turn up again, and which of them are distinctive enough to search for.

Each function yields (folded text, alone): `alone` spellings must not touch further letters or digits of their own sort.
A value that yields nothing is short or common; it counts only as a whole value (`terms`).

    names       parts of four letters and more that are no common words (`vocabulary`); two parts together in any order
    ids         five characters and more with a digit, whole, without separators, and by tokens
    uids        fourteen characters and more
    texts       eight characters and two words and more, one of them uncommon
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations

from gateway.gate.folding import fold
from gateway.gate.vocabulary import common_values, common_words

Spelling = tuple[bytes, bool]

NAME_LETTERS, GLUED_LETTERS, ID_CHARACTERS, UID_CHARACTERS = 4, 6, 5, 14
MAX_NAME_PARTS = 6  # permutations of more are not names
MAX_PHRASE_BYTES = 200
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ø": "oe", "å": "aa"})
_PIECES = re.compile(r"[,;\r\n\t^]+")
_RUNS = re.compile(rb"[a-z\x80-\xff]+")
_DIGITS = re.compile(rb"[0-9]")
_LETTERS = re.compile(rb"[a-z\x80-\xff]")


def is_ideographic(text: str) -> bool:
    """True for scripts without spaces and with meaning in two characters: Han, kana, Hangul."""
    return any(
        "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in text
    )


def _uncommon(word: bytes) -> bool:
    return len(word) >= NAME_LETTERS and not word.isdigit() and word not in common_words()


def name_words(text: str) -> list[str]:
    """The parts of a person name (PS3.5 6.2.1: components by ^, groups by =), in the order of writing."""
    return [word for word in re.split(r"[\W_]+", text) if word]


def names(text: str) -> Iterator[Spelling]:
    """One component group of a person name."""
    words = name_words(text)
    for word in words:
        yield from _name_part(word)
        if (other := word.translate(_UMLAUTS)) != word:
            yield from _name_part(other)
    folded = [fold(word) for word in words]
    if not any(_uncommon(word) for word in folded) and not is_ideographic(text):
        return
    long_words = [word for word in folded if len(word) >= 2][:MAX_NAME_PARTS]
    if len(b"".join(long_words)) >= GLUED_LETTERS:
        for first, second in permutations(long_words, 2):
            if len(first) + len(second) >= GLUED_LETTERS:
                yield first + b" " + second, True
            if len(first) + len(second) >= 8:
                yield first + second, False


def _name_part(word: str) -> Iterator[Spelling]:
    folded = fold(word)
    if is_ideographic(word):
        if len(word) >= 2:
            yield folded, False
    elif len(word) >= NAME_LETTERS and _uncommon(folded) and folded not in common_values():
        if not _DIGITS.search(folded):
            yield folded, len(word) < GLUED_LETTERS
        elif len(word) > NAME_LETTERS:
            yield folded, True


def ids(text: str) -> Iterator[Spelling]:
    """An identifier of any form: LEAK0001, 12-34567/8, 0012345, 4711^^^HOSPITAL."""
    folded = fold(text)
    whole = folded.replace(b" ", b"")
    tokens = folded.split()
    for spelling in (folded, whole, *(tokens if len(tokens) > 1 else ())):
        bare = spelling.replace(b" ", b"")
        if not _distinctive_id(bare):
            continue
        yield spelling, not (len(bare) >= 8 and _LETTERS.search(bare) is not None)
        if bare.isdigit() and len(bare.lstrip(b"0")) >= ID_CHARACTERS and bare[:1] == b"0":
            yield bare.lstrip(b"0"), True


def _distinctive_id(bare: bytes) -> bool:
    if bare in common_values() or len(set(bare)) < 3:
        return False
    digits = len(_DIGITS.findall(bare))
    if digits:
        told_apart = digits >= 4 or any(map(_uncommon, _RUNS.findall(bare)))  # "lesion1", "ct3" are labels
        return len(bare) >= ID_CHARACTERS and told_apart
    return len(bare) >= GLUED_LETTERS and bare not in common_words()


def uids(text: str) -> Iterator[Spelling]:
    """A UID that is long enough to be one wherever it stands."""
    if len(text) >= UID_CHARACTERS and text.count(".") >= 3:
        yield fold(text), True


def phones(text: str) -> Iterator[Spelling]:
    """A telephone number as written, and its digits alone; other contact data as text."""
    digits = re.sub(r"\D", "", text)
    if len(digits) >= 7 and len(set(digits)) >= 3:
        yield digits.encode(), True
        yield fold(text), True
    if "@" in text:
        yield from texts(text)


def texts(text: str) -> Iterator[Spelling]:
    """A phrase, and its lines and comma-separated pieces."""
    pieces = [text, *(_PIECES.split(text) if _PIECES.search(text) else ())]
    for index, piece in enumerate(pieces):
        folded = fold(piece)[:MAX_PHRASE_BYTES]
        words = folded.split(b" ")
        if len(folded) >= (8 if not index else 12) and len(words) >= 2 and any(map(_uncommon, words)):
            yield folded, True


def places(text: str) -> Iterator[Spelling]:
    """Institutions, stations, devices: a phrase, or one word that nobody else would use."""
    yield from texts(text)
    folded = fold(text)
    if b" " not in folded and len(folded) >= 6 and _uncommon(folded) and folded not in common_values():
        yield folded, True
