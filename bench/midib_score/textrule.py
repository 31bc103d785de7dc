"""When a text counts as kept or gone: the challenge's rule, and a stricter one.

The challenge: numbers are equal as numbers; else the expected text is a substring of the value; else each of its words
(NLTK's `word_tokenize`, less English stop words and punctuation) is looked for as a substring. NLTK's tokenizer and
list are replaced by what they do to such texts, so that nothing has to be downloaded.
"""

from __future__ import annotations

import re
import string
import unicodedata

_STOP_WORDS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves what which who whom this that these those am is are
was were be been being have has had having do does did doing a an the and but if or because as until while of
at by for with about against between into through during before after above below to from up down in out on
off over under again further then once here there when where why how all any both each few more most other
some such no nor not only own same so than too very s t can will just don should now d ll m o re ve y ain aren
couldn didn doesn hadn hasn haven isn ma mightn mustn needn shan shouldn wasn weren won wouldn
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")
_SPLIT = (
    (re.compile(r"([;@#$%&?!\[\](){}<>\"])"), r" \1 "),
    (re.compile(r"([:,])(?=\D|$)"), r" \1 "),
    (re.compile(r"--+"), " -- "),
    (re.compile(r"\.(?=\s*$)"), " . "),
    (re.compile(r"'(s|m|d|ll|re|ve)\b"), r" '\1"),
)


def words_of(text: str) -> list[str]:
    """The words of a text that count, in lower case."""
    for pattern, spaced in _SPLIT:
        text = pattern.sub(spaced, text)
    return [
        word
        for word in text.lower().split()
        if word not in STOP_WORDS and not all(c in string.punctuation for c in word)
    ]


def kept_share(expected: str, value: str) -> float:
    """How much of `expected` is in `value`, 0 to 1, by the challenge's rule; 0 when there is nothing to look for."""
    expected, value = expected.strip().lower(), value.strip().lower()
    if _NUMBER.fullmatch(expected) and _NUMBER.fullmatch(value) and float(expected) == float(value):
        return 1.0
    if expected and expected in value:
        return 1.0
    words = words_of(expected)
    return sum(word in value for word in words) / len(words) if words else 0.0


def gone(planted: str, value: str) -> bool:
    """True when none of the planted words is in the value."""
    return kept_share(planted, value) == 0


def folded(text: str) -> str:
    """Text without accents, case and layout, so that another way to write the same name is found."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def gone_strictly(planted: str, value: str) -> bool:
    """Stricter: whole words, accents aside, and a number also where other signs stand between its digits."""
    flat = folded(value)
    found, digits = set(re.split(r"[\W\d_]+", flat)), re.sub(r"\D", "", flat)
    for token in folded(planted).split():
        if any(len(word) > 2 and word in found for word in re.split(r"[\W\d_]+", token)):
            return False
        bare = re.sub(r"\D", "", token)
        if len(bare) >= 6 and bare in digits:
            return False
    return True
