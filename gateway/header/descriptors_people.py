"""What goes with a masked word that stands beside it: initials, particles, and known words that people bear.

The allow-list alone would leave "J." of "J. Unknown", "van der" of "van der Unknown" and "Long" of "Marjorie Long".
Titles are in `descriptors_titles`, hospitals and towns in `descriptors_houses`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gateway.header.descriptors_cues import AUTHORED, FOR, PARTICLES
from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_houses import house, town
from gateway.header.descriptors_signatures import CLOSE, LABEL_GAP, is_initial
from gateway.header.descriptors_titles import named_by_context
from gateway.header.descriptors_tokens import Span, Token
from gateway.header.descriptors_words import SHORT_LETTERS, Words


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# These alone say that a name follows; "de" and its like also stand between words of a language.
_SURE_PARTICLES = _set("v von van vander ten ter bin ibn abu af")
_SHORTENED = re.compile(r"\.[ \t]?")
_SPACE_ONLY = re.compile(r"[ \t]{1,2}")


def people_in(
    text: str,
    tokens: Sequence[Token],
    cues: Sequence[int],
    own: Sequence[Span],
    unknown: Sequence[Span],
    words: Words,
) -> list[Span]:
    """Spans that go with what stands beside them. `own` and `unknown` are masked already; `cues` are `cues_in` it."""
    named = {start for start, _ in own}
    strange = {start for start, _ in unknown}
    found = list(named_by_context(text, tokens, cues, named | strange, words))
    if named or strange:
        for index, token in enumerate(tokens):
            if token.start in named or token.start in strange:
                found += _beside(text, tokens, index, named, strange, words)
    gone = named | strange | {start for start, _ in found}
    for author, behind in ((tokens[at], tokens[at + 1]) for at in cues if at + 1 < len(tokens)):
        if (
            fold(author.text) in AUTHORED
            and behind.start in gone
            and LABEL_GAP.fullmatch(text, author.end, behind.start)
        ):
            found.append((author.start, author.end))  # "by" of nobody would make a name of the next word
    return found


def _behind_particle(text: str, tokens: Sequence[Token], index: int) -> Iterator[Span]:
    """Said of "Unknown bin Said": a known word behind a masked one and a particle that only names have."""
    at = index + 1
    while (
        at < len(tokens)
        and fold(tokens[at].text) in PARTICLES
        and _SPACE_ONLY.fullmatch(text, tokens[at - 1].end, tokens[at].start)
    ):
        at += 1
    run = {fold(token.text) for token in tokens[index + 1 : at]}
    if at < len(tokens) and not run.isdisjoint(_SURE_PARTICLES) and tokens[at].text.istitle():
        yield tokens[index + 1].start, tokens[at].end


def _beside(
    text: str, tokens: Sequence[Token], index: int, named: set[int], strange: set[int], words: Words
) -> Iterator[Span]:
    """What belongs to the masked token at `index`."""
    token = tokens[index]
    for other in (index - 1, index + 1):
        if not 0 <= other < len(tokens):
            continue
        beside = tokens[other]
        gap = text[min(token.end, beside.end) : max(token.start, beside.start)]
        if token.text.isalpha() and _is_joined(gap, beside.text, words, ahead=other < index):
            yield beside.start, beside.end
        elif not CLOSE.fullmatch(gap):
            written_alike = gap in ("_", "-") and token.start not in named  # Unknown_Max
            if written_alike and _is_ambiguous(tokens, min(index, other), token, beside, words):
                yield beside.start, beside.end
        elif is_initial(text, beside, words) and not ("." in gap and other > index and len(token.text) > 1):
            yield from _initials(text, tokens, other, 1 if other > index else -1, words)
        elif (other < index and _is_technical(tokens, other, words)) or (
            "." in gap and _ends_a_sentence(tokens, index, other)
        ):
            continue
        elif token.start not in named and _is_ambiguous(tokens, min(index, other), token, beside, words):
            yield beside.start, beside.end
    if token.text.istitle() and token.start in strange:
        yield from town(text, tokens, index, words)
    behind = tokens[index + 1] if index + 1 < len(tokens) else None
    if behind is not None and behind.text in ("s", "S") and text[token.end : behind.start] in ("'", "’"):
        yield behind.start, behind.end
    if index + 2 < len(tokens) and _is_between(text, tokens[index : index + 3], named | strange):
        yield tokens[index + 1].start, tokens[index + 1].end
    yield from _particles(text, tokens, index, named | strange, words)
    yield from _behind_particle(text, tokens, index)
    yield from house(text, tokens, index, named | strange, words)


def _initials(text: str, tokens: Sequence[Token], at: int, step: int, words: Words) -> Iterator[Span]:
    """The initials from here on, in one direction: J. D. of J. D. Unknown, and of Unknown J.D."""
    while 0 <= at < len(tokens) and is_initial(text, tokens[at], words):
        yield tokens[at].start, tokens[at].end + 1
        at += step
        if not 0 < at < len(tokens) or not CLOSE.fullmatch(
            text, tokens[at - (step > 0)].end, tokens[at + (step < 0)].start
        ):
            return


def _particles(text: str, tokens: Sequence[Token], index: int, masked: set[int], words: Words) -> Iterator[Span]:
    """The van der of "van der Unknown", the de of "de Unknown" where no language needs it: at the front, or behind a
    mark, a mask or capitals."""
    at = index
    while at > 0 and _is_particle(text, tokens[at - 1], tokens[at]):
        at -= 1
    if at == index or not tokens[index].text[:1].isupper() or not tokens[index].text.isalpha():
        return
    run = [fold(token.text) for token in tokens[at:index]]
    before = tokens[at - 1] if at else None
    capitals = before is not None and before.text.isupper() and not tokens[at].text.isupper() and len(before.text) > 1
    marked = before is None or text[before.end : tokens[at].start].strip() or before.start in masked
    if not _SURE_PARTICLES.isdisjoint(run) or marked or capitals:
        yield tokens[at].start, tokens[index - 1].end
        if (
            before is not None
            and is_initial(text, before, words)
            and CLOSE.fullmatch(text, before.end, tokens[at].start)
        ):
            yield before.start, before.end + 1


def _is_particle(text: str, token: Token, behind: Token) -> bool:
    """van, der; and short for them, v.d. and v. d."""
    gap = text[token.end : behind.start]
    if token.text in ("v", "d"):
        return _SHORTENED.fullmatch(gap) is not None
    return fold(token.text) in PARTICLES and _SPACE_ONLY.fullmatch(gap) is not None


def _is_joined(gap: str, beside: str, words: Words, *, ahead: bool) -> bool:
    """DOE^ and ^Q of DOE^JOHN^Q, LEE, of LEE, MARY; O' of O'Connor: too short to be unknown by themselves."""
    if not beside.isalpha() or not beside[:1].isupper() or len(beside) > SHORT_LETTERS:
        return False
    if len(beside) == 1:
        return gap == "^" or (ahead and gap in ("'", "’"))
    return gap in ("^", ",", ", ") and not words.knows(beside)


def _is_technical(tokens: Sequence[Token], at: int, words: Words) -> bool:
    """Sharp of "Body Sharp Unknown": a technical word behind another that is written the same way."""
    before = tokens[at - 1] if at else None
    return (
        before is not None
        and before.text.istitle()
        and tokens[at].text.istitle()
        and len(before.text) > SHORT_LETTERS
        and words.is_core(fold(before.text))
        and words.is_core(fold(tokens[at].text))
    )


def _ends_a_sentence(tokens: Sequence[Token], one: int, other: int) -> bool:
    """True when a dot between two neighbours is no initial's."""
    return len(tokens[min(one, other)].text) > 1


def _is_between(text: str, three: Sequence[Token], masked: set[int]) -> bool:
    """Thi of Unknown Thi Unknown: a short word that is written like a name between two that are one."""
    first, middle, last = three
    return (
        last.start in masked
        and all(token.text.istitle() and token.text.isalpha() for token in three)
        and len(middle.text) <= SHORT_LETTERS
        and _SPACE_ONLY.fullmatch(text, first.end, middle.start) is not None
        and _SPACE_ONLY.fullmatch(text, middle.end, last.start) is not None
    )


def _is_ambiguous(tokens: Sequence[Token], first: int, token: Token, beside: Token, words: Words) -> bool:
    """Marjorie Long, but not UNKNOWN LONG AXIS: both capitalised, or both behind "for"."""
    if fold(beside.text) not in words.ambiguous or not token.text[:1].isupper() or not token.text.isalpha():
        return False
    if token.text.istitle() and beside.text.istitle():
        return True
    return first > 0 and fold(tokens[first - 1].text) in FOR and beside.text[:1].isupper()
