"""Houses and towns: the rest of a hospital's name beside a masked word, and names of houses made of known words.

The allow-list alone would leave "Community Hospital" of "Unknown Community Hospital", all of "Lighthouse Bay Hospital"
and the "Mount" of "Mount Unknown".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_tokens import Span, Token
from gateway.header.descriptors_words import SHORT_LETTERS, Words


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ANCHORS = _set(
    """
    hospital hospitals clinic clinics infirmary klinik klinikum kliniken krankenhaus spital kantonsspital hopital
    ospedale ziekenhuis policlinico university universitat center centre institute institut college associates
    foundation trust praxis universitatsklinikum universitaetsklinikum universitatsspital universitaetsspital chu
    szpital sanatorio clinica system systems network partners group surgery practice
    """
)
_LINKS = _set("de la of der des du di del van fur the and")
_SAINTS = _set("st saint san santa sankt")
_HOUSE_TAILS = _set("system systems network partners authority district academy school faculty campus wing building")
_BEFORE_HOUSES = _set("outside other another at from in to by for prior previous same our local the of and")
_TOWNS = _set("mount mt port fort lake saint st san santa los las cape glen north south east west bad sankt")
_TOWN_GAP = re.compile(r"\.?[ \t]{1,2}")
_SPACE = re.compile(r"[\s'’&.-]{1,3}")
MAX_HOUSE_TOKENS, MAX_TOWN_TOKENS = 4, 3
_NO_TOWNS = _set(
    "left right links rechts linke rechte linker rechter gauche droite droit izquierda derecha sinistra destra"
)
_PLACE_PREPOSITIONS = _set("in from at near to aus von nach bei de a em da van uit te z w")


def house(text: str, tokens: Sequence[Token], index: int, masked: set[int], words: Words) -> Iterator[Span]:
    """Words of institutions in a chain with the masked token, when one of them is a hospital or its like."""
    if not tokens[index].text[:1].isupper():
        return
    chain = [one for step in (1, -1) for one in _chain(text, tokens, index, step, masked, words)]
    if any(fold(other.text) in _ANCHORS for other in chain):
        yield min(one.start for one in chain), max(one.end for one in chain)


def known_houses(text: str, tokens: Sequence[Token], words: Words) -> Iterator[Span]:
    """Lighthouse Bay Hospital, St. Elsewhere Infirmary: names of houses that are made of known words."""
    for index, token in enumerate(tokens):
        if fold(token.text) not in _ANCHORS or not token.text[:1].isupper():
            continue
        chain = [one for one in _chain(text, tokens, index, -1, set(), words) if one.text[:1].isupper()]
        first = next(
            (at for at in range(max(0, index - MAX_HOUSE_TOKENS), index) if _is_saint(text, tokens, at)), index
        )
        if first < index:
            chain = list(tokens[first:index])
        if first < index or any(words.is_everyday(fold(one.text)) for one in chain):
            behind = _chain(text, tokens, index, 1, set(), words)
            yield min(one.start for one in chain), max([token.end, *(one.end for one in behind)])
        elif token.text.istitle() and (proper := _proper_name(text, tokens, index, words)) is not None:
            yield proper, token.end


def _proper_name(text: str, tokens: Sequence[Token], index: int, words: Words) -> int | None:
    """Where North Fork Veterans Hospital begins: of known words only, yet two and more that are written like a name and
    say nothing technical, and not all of them what any hospital is called.
    """
    first = index
    while first and index - first < MAX_HOUSE_TOKENS:
        before = tokens[first - 1]
        folded = fold(before.text)
        technical = words.is_core(folded) and folded not in words.ambiguous and folded not in _TOWNS
        if not before.text.istitle() or technical or words.is_part(folded) or folded in _BEFORE_HOUSES:
            break
        if not _is_close(text, before, tokens[first]):
            break
        first -= 1
    named = any(fold(token.text) not in words.generic for token in tokens[first:index])
    return tokens[first].start if index - first > 1 and named else None


def _joins_house(token: Token, masked: set[int], words: Words) -> bool:
    folded = fold(token.text)
    capital = token.text[:1].isupper()
    everyday = capital and words.is_everyday(folded)
    known = (
        (capital and folded in words.generic)
        or folded in _LINKS
        or (token.text.istitle() and folded in _HOUSE_TAILS | _TOWNS)
    )
    return known or token.start in masked or folded == "s" or everyday


def _chain(text: str, tokens: Sequence[Token], index: int, step: int, masked: set[int], words: Words) -> list[Token]:
    """The words that belong to an institution's name, from the neighbour of `index` on in one direction."""
    chain: list[Token] = []
    at = index + step
    while 0 <= at < len(tokens) and abs(at - index) <= MAX_HOUSE_TOKENS and _joins_house(tokens[at], masked, words):
        first, second = tokens[min(at, at - step)], tokens[max(at, at - step)]
        if not _is_close(text, first, second):
            break
        chain.append(tokens[at])
        at += step
    while chain and fold(chain[-1].text) in _LINKS:
        chain.pop()
    return chain


def _is_close(text: str, first: Token, second: Token) -> bool:
    """True for neighbours of one name: a dot between them is that of St. or Mt., not the end of a sentence."""
    gap = text[first.end : second.start]
    return _SPACE.fullmatch(gap) is not None and not (gap[0] == "." and len(first.text) > SHORT_LETTERS)


def _is_saint(text: str, tokens: Sequence[Token], index: int) -> bool:
    """True for the St. of "St. Somebody", with nothing else between them."""
    saint, behind = tokens[index], tokens[index + 1]
    beside = re.fullmatch(r"[.\s-]{1,2}", text[saint.end : behind.start])
    return fold(saint.text) in _SAINTS and saint.text.istitle() and behind.text.istitle() and beside is not None


def town(text: str, tokens: Sequence[Token], index: int, words: Words) -> Iterator[Span]:
    """What belongs to a masked word that may be a town's."""
    before = tokens[index - 1] if index else None
    mount = before is not None and before.text.istitle() and (fold(before.text) in _TOWNS or _is_new(tokens, index))
    if before is not None and mount and _TOWN_GAP.fullmatch(text, before.end, tokens[index].start):
        yield before.start, before.end  # the Mount of Mount Unknown
    yield from _town_behind(text, tokens, index, words)


def _is_new(tokens: Sequence[Token], index: int) -> bool:
    """True for the New of "resident of New Unknown"."""
    small = index > 1 and tokens[index - 2].text in _PLACE_PREPOSITIONS | {"of"}
    return small and tokens[index - 1].text == "New"


def _town_behind(text: str, tokens: Sequence[Token], index: int, words: Words) -> Iterator[Span]:
    """All of "in Unknown Bay Point" and "from Nether Unknown": capitalised words behind a preposition, one masked.

    Only where the words before it are written small: elsewhere capitals say nothing. A side and what is technical first
    are no part of it: "in Unknown Pouch Right".
    """
    first = last = index
    while first and last - first < MAX_TOWN_TOKENS and _goes_on(text, tokens, first - 1, first - 1, words):
        first -= 1
    while last + 1 < len(tokens) and last - first < MAX_TOWN_TOKENS and _goes_on(text, tokens, last, last + 1, words):
        last += 1
    if first == last or first == 0:
        return
    before = tokens[first - 1]
    small = before.text in _PLACE_PREPOSITIONS and _TOWN_GAP.fullmatch(text, before.end, tokens[first].start)
    if small and (first == 1 or not tokens[first - 2].text.istitle()):
        yield tokens[first].start, tokens[last].end


def _goes_on(text: str, tokens: Sequence[Token], first: int, new: int, words: Words) -> bool:
    """True for `first` and the token behind it when both may be of a town's name; `new` is the one not yet in it."""
    both = all(token.text.istitle() and token.text.isalpha() for token in tokens[first : first + 2])
    folded = fold(tokens[new].text)
    technical = folded in _NO_TOWNS or (words.is_core(folded) and folded not in words.ambiguous)
    close = _TOWN_GAP.fullmatch(text, tokens[first].end, tokens[first + 1].start) is not None
    return both and not technical and close and _is_close(text, tokens[first], tokens[first + 1])
