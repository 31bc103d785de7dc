"""Names by what stands before them: a title, "by" and "tech", "for" and "patient"; and initials.

The allow-list alone would leave "White" of "Dr. White", "JD" of "ordered by JD", "Sharp" of "tech Sharp".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gateway.header.descriptors_cues import (
    AUTHORED,
    COMPANIONS,
    DEGREES,
    DOTTED_ONLY,
    FOR,
    NOT_A_NAME,
    NURSES,
    PARTICLES,
    RELATIVES,
    ROLES,
    SHORT_TITLES,
    SPLIT_TITLES,
    TITLE_TAILS,
    TITLES,
)
from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_signatures import (
    CLOSE,
    LABEL_GAP,
    initials_alone,
    initials_of_author,
    initials_of_whom,
    is_initial,
)
from gateway.header.descriptors_terms import term_at
from gateway.header.descriptors_tokens import Span, Token
from gateway.header.descriptors_words import SHORT_LETTERS, Words

_FEMININE_TAIL = re.compile(r"\.\s?(?:ra|ssa|na|a)(?![^\W_])", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s(?![^\W_])", re.IGNORECASE)
_LABELLED, _LISTED = re.compile(r"[ \t]?:[ \t]?"), re.compile(r"\s*(?:\Z|[.;,)\]\r\n])")
_BEFORE_NUMBER = re.compile(r"[ \t]+\d")  # a date, mostly
MAX_NAME_TOKENS = 3


def named_by_context(
    text: str, tokens: Sequence[Token], cues: Sequence[int], masked: set[int], words: Words
) -> Iterator[Span]:
    """Names behind titles, "by" and "tech", "for"; `cues` are `cues_in` the tokens."""
    for index in cues:
        token = tokens[index]
        folded = fold(token.text)
        if _is_title(text, token) and not _is_behind_a_name(text, tokens, index, masked):
            yield from _behind_title(text, tokens, index, masked, words)
        elif folded in AUTHORED:
            if folded in PARTICLES and term_at(text, tokens, index, words):  # von Hippel-Lindau
                continue
            yield from initials_of_author(text, tokens, index + 1, words)
            yield from _named_behind(text, tokens, index + 1, masked, words, surely=True)
        elif _is_listed(text, tokens, index, words):
            yield tokens[index - 1].start, token.end
        elif is_initial(text, token, words):
            yield from initials_alone(text, tokens, index, words)
        elif folded in FOR or folded in RELATIVES:
            if folded in FOR:
                yield from initials_of_whom(text, tokens, index, words)
            yield from _named_behind(text, tokens, index + 1, masked, words, surely=False)
            if folded in RELATIVES and index + 1 < len(tokens):
                yield from _relative(text, tokens, index + 1, masked, words)
        elif folded in COMPANIONS and index + 1 < len(tokens):
            yield from _relative(text, tokens, index + 1, masked, words)
        elif folded in NURSES and _is_nurse(text, tokens, index, words):
            yield from _behind_title(text, tokens, index, masked, words)


def _is_listed(text: str, tokens: Sequence[Token], index: int, words: Words) -> bool:
    """True for the W of "RT: Sharp, W": behind a label a word that people bear, and an initial that is no side."""
    token = tokens[index]
    if len(token.text) != 1 or not token.text.isupper() or token.text in ("L", "R") or index < 2:
        return False
    name, label = tokens[index - 1], tokens[index - 2]
    return (
        name.text.istitle()
        and fold(name.text) in words.ambiguous
        and text[name.end : token.start] in (",", ", ")
        and _LABELLED.fullmatch(text, label.end, name.start) is not None
        and _LISTED.match(text, token.end) is not None
    )


def _is_nurse(text: str, tokens: Sequence[Token], index: int, words: Words) -> bool:
    """True for RN Hope W. and RN Hope, not for RN Cystogram, where RN is a radionuclide."""
    behind = tokens[index + 1 : index + 3]
    followed = len(behind) > 1 and is_initial(text, behind[1], words)
    return bool(behind) and behind[0].text.istitle() and (followed or not words.is_core(fold(behind[0].text)))


def _is_behind_a_name(text: str, tokens: Sequence[Token], index: int, masked: set[int]) -> bool:
    """True for the M. of "Unknown M. Knie", an initial and no Monsieur."""
    before = tokens[index - 1] if index and len(tokens[index].text) == 1 else None
    return before is not None and before.start in masked and _close(text, tokens, index)


def _is_title(text: str, token: Token) -> bool:
    folded = fold(token.text)
    if folded in TITLES:
        return True
    if folded in SPLIT_TITLES and _FEMININE_TAIL.match(text, token.end):
        return True
    if folded not in SHORT_TITLES:
        return False
    return text[token.end : token.end + 1] == "." or (folded not in DOTTED_ONLY and token.text.istitle())


def _behind_title(text: str, tokens: Sequence[Token], index: int, masked: set[int], words: Words) -> Iterator[Span]:
    """The title and up to three parts of a name; more of them only while they are unknown or could be names."""
    at = index + 1
    while at < len(tokens) and _close(text, tokens, at) and fold(tokens[at].text) in TITLE_TAILS:
        at += 1
    found = 0
    title = tokens[index].text  # in capitals they are modalities too, and "by MS." ends a sentence
    sure = fold(title) not in SHORT_TITLES or not (title.isupper() or len(title) == 1)
    while at < len(tokens) and found < MAX_NAME_TOKENS and _close(text, tokens, at):
        token = tokens[at]
        folded = fold(token.text)
        if folded in PARTICLES and at + 1 < len(tokens) and not found:
            at += 1
            continue
        first = (
            not found
            and token.text.isalpha()
            and folded not in NOT_A_NAME
            and (sure or _is_borne(token, words, initial=len(title) == 1))
        )
        more = (
            token.start in masked or (found and _could_be_borne(text, token, words)) or is_initial(text, token, words)
        )
        if not (first or more) or any(map(str.isdecimal, token.text)):
            break
        found += 1
        at += 1
        ends_sentence = text[token.end : token.end + 1] == "." and len(token.text) > SHORT_LETTERS
        if ends_sentence or text[token.end : token.end + 1] == ",":
            break
    if found:
        possessive = _POSSESSIVE.match(text, tokens[at - 1].end)
        yield tokens[index].start, possessive.end() if possessive else tokens[at - 1].end


def _is_borne(token: Token, words: Words, *, initial: bool) -> bool:
    """White of "MS White" and of "M. White"; not hip of "White M. hip", not the muscle of "M. psoas" (`initial`)."""
    folded = fold(token.text)
    if initial:
        return token.text[:1].isupper() and (folded in words.ambiguous or not words.knows(folded))
    return folded in words.ambiguous and (token.text.isupper() or not words.is_core(folded))


def _could_be_borne(text: str, token: Token, words: Words) -> bool:
    """True for a known word behind a first name: one that people bear, at a phrase's end any that is not technical."""
    folded = fold(token.text)
    if not token.text[:1].isupper() or not token.text.isalpha():
        return False
    ends = token.end == len(text) or text[token.end] in ".,;:/)\r\n" or _BEFORE_NUMBER.match(text, token.end)
    return folded in words.ambiguous or (bool(ends) and token.text.istitle() and not words.is_core(folded))


def _close(text: str, tokens: Sequence[Token], at: int) -> bool:
    return bool(CLOSE.fullmatch(text, tokens[at - 1].end, tokens[at].start))


def _closes_a_name(text: str, tokens: Sequence[Token], at: int, *, surely: bool) -> bool:
    """True for the Major of "by Unknown Major RT(R)", "mother Unknown Major": a degree or the end is behind it."""
    named = surely or fold(tokens[at - 2].text) in RELATIVES
    degree = at + 1 < len(tokens) and tokens[at + 1].text.isupper() and fold(tokens[at + 1].text) in DEGREES
    ends = at + 1 == len(tokens) or text[tokens[at].end : tokens[at].end + 1] in (".", ",", ";", ")", "\r", "\n")
    return named and (degree or ends)


def _relative(text: str, tokens: Sequence[Token], at: int, masked: set[int], words: Words) -> Iterator[Span]:
    """Hope of "daughter Hope", of "NOK: Hope Unknown" and of "nurse Hope": a word that people bear, written like a
    name."""
    token = tokens[at]
    folded = fold(token.text)
    named = token.text.istitle() and folded in words.ambiguous and not words.is_core(folded)
    if named and token.start not in masked and LABEL_GAP.fullmatch(text, tokens[at - 1].end, token.start):
        yield token.start, token.end


def _named_behind(
    text: str, tokens: Sequence[Token], at: int, masked: set[int], words: Words, *, surely: bool
) -> Iterator[Span]:
    """Capitalised words behind "by", "tech", "for": Sharp of "tech Sharp", Marrow of "for Enrique Marrow".

    `surely`: the first of them is a name even when everybody knows it as a word. A known one behind a masked one is a
    name when the phrase ends there, or when it is one of those that people bear.
    """
    found = 0
    while (
        at < len(tokens) and found < MAX_NAME_TOKENS and LABEL_GAP.fullmatch(text, tokens[at - 1].end, tokens[at].start)
    ):
        token = tokens[at]
        folded = fold(token.text)
        if not token.text.istitle() or not token.text.isalpha() or len(token.text) < SHORT_LETTERS:
            return
        if token.start not in masked:
            borne = folded in words.ambiguous or not words.is_core(folded)
            first = surely and folded not in ROLES and borne
            part = words.is_part(folded) and folded not in words.ambiguous  # Chest of "by Unknown Chest"
            last = found and folded not in ROLES and not part and _closes_a_name(text, tokens, at, surely=surely)
            if not (last or _could_be_borne(text, token, words) if found else first):
                return
            yield token.start, token.end
        found += 1
        at += 1
