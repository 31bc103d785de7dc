"""Where the own words of an object (`descriptors_own`) stand in one of its texts. Time grows with the text's length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations

from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_own import ALONE_LETTERS, COMPACT, OwnWords
from gateway.header.descriptors_tokens import NO_TRAIT, Span, Token, Trait

MAX_ID_TOKENS, MAX_NAME_PIECES, APART_LETTERS = 8, 20, 5
_BETWEEN_NAMES = re.compile(r"[\s^,.;_\-/='\"()]{0,3}")
_BETWEEN_DIGITS = re.compile(r"[\s^,\-./()_:#]{0,2}")
_APART = re.compile(r"[\s^._\-/'’´`·]")
_SLASHED = re.compile(r"(?<![^\W_])[^\W\d_]/[^\W\d_](?![^\W_])")
_ATTACHED = re.compile(r"\.([^\W\d_]{4,})")
_LISTED = re.compile(r"\s*(?:\Z|[.;,)\]\r\n])")
_CONTRAST = re.compile(r"\+[^\W\d_]|[^\W\d_]\+|[^\W\d_]-(?![^\W_])")  # +C, C+, C-

Part = tuple[Token, bool, frozenset[int], bool]  # of a name: strong, the names it is weak in, an initial


def own_spans(own: OwnWords, text: str, tokens: Sequence[Token], least: int = ALONE_LETTERS) -> list[Span]:
    """Where own words stand; of names, those of at least so many letters."""
    found: list[Span] = []
    for name in own.ideographic:
        at = text.find(name)
        while at >= 0:
            found.append((at, at + len(name)))
            at = text.find(name, at + 1)
    known = own.traits.get
    traits = [known(token.text) or own.trait(token.text) for token in tokens]
    marked = [at for at, trait in enumerate(traits) if trait is not NO_TRAIT]
    if not marked:
        return found
    found += _names(own, text, tokens, traits, marked, least)
    for at in marked:
        trait = traits[at]
        if trait.number:
            found += _numbers(own, text, tokens, at)
        if trait.apart:
            found += _apart(own, text, tokens, at)
        if trait.phrase:
            found += _phrases(own, tokens, at)
        if trait.date is not None:
            found += _days(own, tokens, traits, at)
    return found


def _names(
    own: OwnWords, text: str, tokens: Sequence[Token], traits: Sequence[Trait], marked: Sequence[int], least: int
) -> Iterator[Span]:
    run: list[Part] = []
    previous = -1
    for at in marked:
        token, trait = tokens[at], traits[at]
        strong = trait.strong and len(token.text) >= least
        initial = trait.initial and _is_initial(own, text, token)
        if not (strong or trait.weak or initial):
            continue
        if run and (at != previous + 1 or not _goes_on(text, run[-1][0], token)):
            yield from _run(own, text, run)
            run = []
        run.append((token, strong, trait.weak, initial))
        previous = at
    yield from _run(own, text, run)


def _is_initial(own: OwnWords, text: str, token: Token) -> bool:
    """True for a capital that is no contrast (C+), no half of S/P and W/O, and not the Q of Q.Clear."""
    capital = token.text.isupper() or text.islower()
    if not capital or _CONTRAST.search(text, max(0, token.start - 1), token.end + 2):
        return False
    if any(_SLASHED.match(text, max(0, at)) for at in (token.start - 2, token.start)):
        return False
    attached = _ATTACHED.match(text, token.end)
    if attached is None or not own.words.is_core(fold(attached[1])):
        return True
    return not own.trait(attached[1]).weak.isdisjoint(own.initials.get(fold(token.text), ()))  # K.Hand, of Kevin Hand


def _has_initial(own: OwnWords, text: str, run: Sequence[Part]) -> bool:
    """True for K. Hand and Hand, K.: an initial with its dot beside a capitalised part of the same name. Behind a comma
    it needs no dot where nothing goes on, unless it may be a side.
    """
    for (one, _, weak, initial), (other, _, weak_too, initial_too) in pairwise(run):
        for short, long, names in ((one, other, weak_too), (other, one, weak)):
            if len(short.text) != 1:
                continue
            marked = text[short.end : short.end + 1] == "." or _ends_a_list(text, long, short)
            named = marked and (initial or initial_too) and long.text[:1].isupper() and len(long.text) > 1
            if named and names & own.initials.get(fold(short.text), set()):
                return True
    return False


def _ends_a_list(text: str, long: Token, short: Token) -> bool:
    """True for the K of "Hand, K" before a mark or the end, not for a side: "Hand, L"."""
    listed = text[long.end : short.start] in (",", ", ") and short.text not in ("L", "R")
    return listed and _LISTED.match(text, short.end) is not None


def _run(own: OwnWords, text: str, run: Sequence[Part]) -> Iterator[Span]:
    """Own parts and initials beside each other. A single L or R at the edge is a side, unless a dot follows."""
    pairs = {fold(token.text): weak for token, _, weak, _ in run if weak}
    together = any(a & b for (_, a), (_, b) in permutations(pairs.items(), 2)) or _has_initial(own, text, run)
    if not together and not any(strong for _, strong, _, _ in run):
        return
    last = len(run) - 1
    for index, (token, strong, weak, initial) in enumerate(run):
        side = initial and not strong and not weak and index in (0, last) and token.text in ("L", "R")
        if side and text[token.end : token.end + 1] != ".":
            continue
        yield token.start, token.end


def _goes_on(text: str, before: Token, token: Token) -> bool:
    """True when a token may belong to the same name: an initial does not begin the next sentence."""
    between = text[before.end : token.start]
    if _BETWEEN_NAMES.fullmatch(between) is None:
        return False
    return len(token.text) > 1 or len(before.text) == 1 or not ("\n" in between or between.startswith("."))


def _numbers(own: OwnWords, text: str, tokens: Sequence[Token], first: int) -> Iterator[Span]:
    """Own numbers that begin with the token `first`, across separators."""
    some = fold(tokens[first].text).strip("0")
    joined = ""
    for last in range(first, min(first + MAX_ID_TOKENS, len(tokens))):
        if last > first and not _BETWEEN_DIGITS.fullmatch(text, tokens[last - 1].end, tokens[last].start):
            break
        joined += fold(tokens[last].text)
        if joined in own.numbers or (some and joined.lstrip("0") in own.numbers):
            yield tokens[first].start, tokens[last].end


def _apart(own: OwnWords, text: str, tokens: Sequence[Token], first: int) -> Iterator[Span]:
    """Own names that are written apart, from the token `first` on: Mc Donald, O'Brien, Leak-test, M Ü L L E R."""
    joined = fold(tokens[first].text)
    for last in range(first + 1, min(first + MAX_NAME_PIECES, len(tokens))):
        if not _APART.fullmatch(text, tokens[last - 1].end, tokens[last].start):
            break
        joined += fold(tokens[last].text)
        if len(joined) >= APART_LETTERS and (joined in own.strong or joined in own.glued):
            yield tokens[first].start, tokens[last].end


def _phrases(own: OwnWords, tokens: Sequence[Token], first: int) -> Iterator[Span]:
    for phrase in own.phrases[fold(tokens[first].text)]:
        if tuple(fold(token.text) for token in tokens[first : first + len(phrase)]) == phrase:
            yield tokens[first].start, tokens[first + len(phrase) - 1].end


def _days(own: OwnWords, tokens: Sequence[Token], traits: Sequence[Trait], at: int) -> Iterator[Span]:
    """Own dates as three numbers in any order with anything between, or a day beside a month's name."""
    one, two, three = ([trait.date for trait in traits[at : at + 3]] + [None, None])[:3]
    if one == COMPACT:
        token = tokens[at]
        yield from ((token.start, token.end) for day in own.days if token.text in _compact(*day))
        return
    if two is None or two == COMPACT:
        return
    named = not (tokens[at].text.isdecimal() and tokens[at + 1].text.isdecimal())
    short = all(len(token.text) == 2 for token in tokens[at : at + 3])
    for year, month, day in own.days:
        years = (year, year % 100) if short else (year,)
        if three is not None and any((one, two, three) in _orders(y, month, day) for y in years):
            yield tokens[at].start, tokens[at + 2].end
        elif named and (one, two) in ((day, month), (month, day)):
            yield tokens[at].start, tokens[at + 1].end


def _orders(year: int, month: int, day: int) -> tuple[tuple[int, int, int], ...]:
    return (year, month, day), (day, month, year), (month, day, year)


def _compact(year: int, month: int, day: int) -> tuple[str, ...]:
    return (
        f"{year:04d}{month:02d}{day:02d}",
        f"{day:02d}{month:02d}{year:04d}",
        f"{month:02d}{day:02d}{year:04d}",
    )
