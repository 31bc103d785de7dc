"""Words as they are compared: no case, no accents, and the spellings in which one word may turn up again.

    Müller -> muller, mueller        Иванов -> ivanov, iwanow        Łukasz, Sørensen -> lukasz, sorensen, soerensen

Nothing here knows a vocabulary. Folded words are letters and digits only.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_EXPANDED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae", "œ": "oe"})
# Letters that NFKD leaves whole.
_PLAIN = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i", "ß": "ss", "ħ": "h", "ŧ": "t"}
)
_CONTRACTED = re.compile(r"(?<=[aou])e")

# Cyrillic in the ways that passports, libraries and German and English typists write it: one table per way.
_LETTERS = "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґўђјљњћџ"
_WAYS = (
    "a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch - y - e yu ya i yi ye g u dj j lj nj c dz",
    "a b v g d e e zh z i i k l m n o p r s t u f kh ts ch sh shch ie y - e iu ia i i ie g u dj j lj nj c dz",
    "a b v g d e yo zh z i j k l m n o p r s t u f h c ch sh shh - y - e ju ja i ji je g u dj j lj nj c dz",
    "a b v g d e e z z i j k l m n o p r s t u f h c c s sc - y - e ju ja i i je g u d j lj nj c dz",
    "a b w g d e jo sch s i j k l m n o p r s t u f ch z tsch sch schtsch - y - e ju ja i ji je g u dj j lj nj c dz",
)
_CYRILLIC = tuple(
    str.maketrans({letter: "" if latin == "-" else latin for letter, latin in zip(_LETTERS, way.split(), strict=True)})
    for way in _WAYS
)


def is_ideographic(char: str) -> bool:
    """Han, kana and Hangul: scripts without spaces between words."""
    return "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" or char == "々"


def _is_cyrillic(text: str) -> bool:
    return any("\u0400" <= char <= "\u04ff" for char in text)


@lru_cache(maxsize=1 << 15)
def fold(word: str) -> str:
    """One word folded; "" when it has no letter and no digit."""
    if word.isascii():
        return word.lower() if word.isalnum() else re.sub(r"[^a-z0-9]", "", word.lower())
    apart = unicodedata.normalize("NFKD", word.casefold())
    bare = "".join(char for char in apart if unicodedata.category(char)[0] in "LN")
    return unicodedata.normalize("NFC", bare.translate(_PLAIN))


@lru_cache(maxsize=1 << 13)
def spellings(word: str) -> frozenset[str]:
    """Folded spellings of one word: without accents, with German digraphs, in Latin letters where it is Cyrillic."""
    plain = fold(word)
    if word.isascii():
        return frozenset((plain,))
    composed = unicodedata.normalize("NFC", word.lower())
    found = {plain, fold(composed.translate(_EXPANDED))}
    if _is_cyrillic(composed):
        found |= {fold(composed.translate(table)) for table in _CYRILLIC}
    return frozenset(found - {""})


def name_spellings(word: str) -> frozenset[str]:
    """Spellings of a name of the object, and the contracted one: Mueller may be written Müller or Muller."""
    found = set(spellings(word))
    return frozenset(found | {_CONTRACTED.sub("", one) for one in found})
