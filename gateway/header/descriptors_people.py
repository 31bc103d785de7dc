"""People and houses beside what is masked: names behind titles, initials beside names, the rest of a hospital's name.

The allow-list alone would leave "White" of "Dr. White", "J." of "J. Unknown", "JD" of "ordered by JD", "Community
Hospital" of "Unknown Community Hospital", and "Long" of "Marjorie Long".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_own import Span, Token
from gateway.header.descriptors_words import SHORT_LETTERS, Words


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Titles in any writing; those that are modalities or abbreviations too only as "Dr." or "Dr".
_TITLES = _set(
    """
    prof professor profdr herr herrn frau fraulein mrs mme mlle madame monsieur senor senora senorita signor signora
    dott dottssa dra srta schwester mister dhr mevr mevrouw drs doctor doktor docteur доктор проф
    """
)
_SHORT_TITLES = _set("dr mr ms sr sra hr fr m")
_DOTTED_ONLY = _set("sr sra hr fr m")
_TITLE_TAILS = _set("dr med habil phil univ dent prof rer nat")
_PARTICLES = _set("von van vom zu der den de del della di da do dos du la le ten ter al el bin ben")
_NOT_A_NAME = _set(
    """
    a an and are as at by for from has have in is of on or requests said says sent the to was wants who will with
    mit hat ist und bittet wurde zur zum nach et avec est a le y con es e i w without no not
    """
)
_AUTHORED = _set(
    """
    by per tech technologist technician mtra mta op operator initials radiographer radiologist performedby readby
    orderedby durch von par por da
    """
)
_FOR = _set("for patient pt pat name patientin by of from")
# Capitalised behind "by" or "per", and yet no name.
_ROLES = _set(
    """
    radiologist radiology physician surgeon doctor nurse technologist technician technique protocol request
    requested order ordered clinic clinician family patient parents mother father report referring referral
    department emergency consultant ward service team neurology neurosurgery oncology cardiology orthopedics surgery
    gastroenterology urology the
    """
)
_ANCHORS = _set(
    """
    hospital hospitals clinic clinics infirmary klinik klinikum kliniken krankenhaus spital kantonsspital hopital
    ospedale ziekenhuis policlinico university universitat center centre institute institut college associates
    foundation trust praxis universitatsklinikum universitaetsklinikum universitatsspital universitaetsspital chu
    szpital sanatorio clinica
    """
)
_LABEL_GAP = re.compile(r"[ \t]*[:=]?[ \t]*")
_CLOSE = re.compile(r"[ \t.,]{0,3}")
_SPACE = re.compile(r"[\s'’&.-]{1,3}(?:de\s|la\s|of\s)?")
MAX_NAME_TOKENS = 3
MAX_HOUSE_TOKENS = 4


def people_in(
    text: str, tokens: Sequence[Token], own: Sequence[Span], unknown: Sequence[Span], words: Words
) -> list[Span]:
    """Spans that go with what stands beside them. `own` and `unknown` are masked already."""
    named = {start for start, _ in own}
    strange = {start for start, _ in unknown}
    found = list(_by_context(text, tokens, named | strange, words))
    if named or strange:
        for index, token in enumerate(tokens):
            if token.start in named or token.start in strange:
                found += _beside(text, tokens, index, named, strange, words)
    gone = named | strange | {start for start, _ in found}
    for author, behind in pairwise(tokens):
        if (
            fold(author.text) in _AUTHORED
            and behind.start in gone
            and _LABEL_GAP.fullmatch(text, author.end, behind.start)
        ):
            found.append((author.start, author.end))  # "by" of nobody would make a name of the next word
    return found


def _by_context(text: str, tokens: Sequence[Token], masked: set[int], words: Words) -> Iterator[Span]:
    """Names behind titles, behind "by" and "tech", behind "for"."""
    for index, token in enumerate(tokens):
        folded = fold(token.text)
        if _is_title(text, token):
            yield from _behind_title(text, tokens, index, masked, words)
        elif folded in _AUTHORED:
            yield from _initials_of_author(text, tokens, index + 1, words)
            yield from _named_behind(text, tokens, index + 1, masked, words, surely=True)
        elif folded in _FOR:
            yield from _named_behind(text, tokens, index + 1, masked, words, surely=False)


def _is_title(text: str, token: Token) -> bool:
    folded = fold(token.text)
    if folded in _TITLES:
        return True
    dotted = text[token.end : token.end + 1] == "."
    if folded not in _SHORT_TITLES:
        return False
    return dotted or (folded not in _DOTTED_ONLY and token.text.istitle())


def _behind_title(text: str, tokens: Sequence[Token], index: int, masked: set[int], words: Words) -> Iterator[Span]:
    """The title and up to three parts of a name; more of them only while they are unknown or could be names."""
    at = index + 1
    while at < len(tokens) and _close(text, tokens, at) and fold(tokens[at].text) in _TITLE_TAILS:
        at += 1
    found = 0
    while at < len(tokens) and found < MAX_NAME_TOKENS and _close(text, tokens, at):
        token = tokens[at]
        folded = fold(token.text)
        if folded in _PARTICLES and at + 1 < len(tokens) and not found:
            at += 1
            continue
        first = not found and token.text.isalpha() and folded not in _NOT_A_NAME
        more = token.start in masked or (found and _could_be_borne(text, token, words)) or _is_initial(text, token)
        if not (first or more) or any(map(str.isdecimal, token.text)):
            break
        found += 1
        at += 1
        if "," in text[token.end : token.end + 1]:
            break
    if found:
        yield tokens[index].start, tokens[at - 1].end


def _could_be_borne(text: str, token: Token, words: Words) -> bool:
    """True for a known word behind a first name: one that people bear, at a phrase's end any that is not technical."""
    folded = fold(token.text)
    if not token.text[:1].isupper() or not token.text.isalpha():
        return False
    ends = token.end == len(text) or text[token.end] in ".,;:/)\r\n"
    return folded in words.ambiguous or (ends and token.text.istitle() and not words.is_core(folded))


def _close(text: str, tokens: Sequence[Token], at: int) -> bool:
    return _CLOSE.fullmatch(text, tokens[at - 1].end, tokens[at].start) is not None


def _is_initial(text: str, token: Token) -> bool:
    return len(token.text) == 1 and token.text.isupper() and text[token.end : token.end + 1] == "."


def _initials_of_author(text: str, tokens: Sequence[Token], at: int, words: Words) -> Iterator[Span]:
    """Initials of whoever did it: by JD, tech: J.S., performed by MK."""
    if at >= len(tokens) or not _LABEL_GAP.fullmatch(text, tokens[at - 1].end, tokens[at].start):
        return
    token = tokens[at]
    if token.text.isupper() and 2 <= len(token.text) <= 3 and not words.knows(token.text):
        yield token.start, token.end
    while at < len(tokens) and _is_initial(text, tokens[at]):
        yield tokens[at].start, tokens[at].end + 1
        at += 1


def _named_behind(
    text: str, tokens: Sequence[Token], at: int, masked: set[int], words: Words, *, surely: bool
) -> Iterator[Span]:
    """Capitalised words behind "by", "tech", "for": Sharp of "tech Sharp", Marrow of "for Enrique Marrow".

    `surely`: the first of them is a name even when everybody knows it as a word. A known one behind a masked one is a
    name when the phrase ends there, or when it is one of those that people bear.
    """
    found = 0
    while (
        at < len(tokens)
        and found < MAX_NAME_TOKENS
        and _LABEL_GAP.fullmatch(text, tokens[at - 1].end, tokens[at].start)
    ):
        token = tokens[at]
        folded = fold(token.text)
        if not token.text.istitle() or not token.text.isalpha() or len(token.text) < SHORT_LETTERS:
            return
        if token.start not in masked:
            first = surely and folded not in _ROLES and (folded in words.ambiguous or not words.is_core(folded))
            if not (_could_be_borne(text, token, words) if found else first):
                return
            yield token.start, token.end
        found += 1
        at += 1


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
        if _is_joined(gap, beside.text, words, ahead=other < index):
            yield beside.start, beside.end
        elif not _CLOSE.fullmatch(gap):
            continue
        elif _is_initial(text, beside):
            yield beside.start, beside.end + 1
        elif token.start not in named and _is_ambiguous(tokens, min(index, other), token, beside, words):
            yield beside.start, beside.end
    behind = tokens[index + 1] if index + 1 < len(tokens) else None
    if behind is not None and behind.text in ("s", "S") and text[token.end : behind.start] in ("'", "’"):
        yield behind.start, behind.end
    yield from _house(text, tokens, index, named | strange, words)


def _is_joined(gap: str, beside: str, words: Words, *, ahead: bool) -> bool:
    """DOE^ and ^Q of DOE^JOHN^Q, LEE, of LEE, MARY; O' of O'Connor: too short to be unknown by themselves."""
    if not beside.isalpha() or not beside[:1].isupper() or len(beside) > SHORT_LETTERS:
        return False
    if len(beside) == 1:
        return gap == "^" or (ahead and gap in ("'", "’"))
    return gap in ("^", ",", ", ") and not words.knows(beside)


def _is_ambiguous(tokens: Sequence[Token], first: int, token: Token, beside: Token, words: Words) -> bool:
    """Marjorie Long, but not UNKNOWN LONG AXIS: both capitalised, or both behind "for"."""
    if fold(beside.text) not in words.ambiguous or not token.text[:1].isupper() or not token.text.isalpha():
        return False
    if token.text.istitle() and beside.text.istitle():
        return True
    return first > 0 and fold(tokens[first - 1].text) in _FOR and beside.text[:1].isupper()


def _house(text: str, tokens: Sequence[Token], index: int, masked: set[int], words: Words) -> Iterator[Span]:
    """Words of institutions in a chain with the masked token, when one of them is a hospital or its like."""
    if not tokens[index].text[:1].isupper():
        return
    chain: list[Token] = []
    for step in (1, -1):
        at = index + step
        while 0 <= at < len(tokens) and abs(at - index) <= MAX_HOUSE_TOKENS:
            folded = fold(tokens[at].text)
            joins = folded in words.generic or tokens[at].start in masked or folded == "s"
            first, second = tokens[min(at, at - step)], tokens[max(at, at - step)]
            if not joins or not _SPACE.fullmatch(text, first.end, second.start):
                break
            chain.append(tokens[at])
            at += step
    if any(fold(other.text) in _ANCHORS for other in chain):
        yield min(one.start for one in chain), max(one.end for one in chain)
