"""What an object says of its own people, numbers, dates and places, and where that stands in its texts.

Parts of names count in any order, case, spelling and with any separator. A part that is a technical word first (HEAD,
Long, Philips) counts only beside another part or initial of the same name. Numbers count whole, across separators, and
by their long runs of digits. Compiled once for the many objects of one study that say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import NamedTuple

from gateway.header.descriptors_dates import number_of
from gateway.header.descriptors_folding import fold, is_ideographic, name_spellings, spellings
from gateway.header.descriptors_tokens import Span, Token, tokens_of
from gateway.header.descriptors_words import Words

INSIDE_LETTERS, ALONE_LETTERS = 6, 3  # shortest name part that counts inside a longer word, and as a word
ID_CHARACTERS, ID_DIGITS, INSIDE_ID_CHARACTERS, GLUED_LETTERS = 5, 3, 8, 8
PHRASE_CHARACTERS, MAX_NAME_PARTS, MAX_ID_TOKENS = 8, 6, 8
_NOT_NAMES = """
dr prof med mr mrs ms md phd jr sr ii iii iv von van vom zu der den de del della di da do dos du la le les el al bin ben
ibn st anon anonym anonymous anonymized anonymised none null unknown unnamed noname removed deidentified
"""
NOT_NAMES = frozenset(_NOT_NAMES.split())
_BETWEEN_NAMES = re.compile(r"[\s^,.;_\-/='\"()]{0,3}")
_BETWEEN_DIGITS = re.compile(r"[\s^,\-./()_:#]{0,2}")
_SLASHED = re.compile(r"(?<![^\W_])[^\W\d_]/[^\W\d_](?![^\W_])")
_ATTACHED = re.compile(r"\.([^\W\d_]{4,})")
_CONTRAST = re.compile(r"\+[^\W\d_]|[^\W\d_]\+|[^\W\d_]-(?![^\W_])")  # +C, C+, C-
_PIECES = re.compile(r"[,;\r\n\t^]+")
_DIGIT_RUNS = re.compile(r"\d+")


class Said(NamedTuple):
    """One value that an object says of itself. `role` is one of NAME, NUMBER, LABEL, PLACE, DATE, LOOSE."""

    role: str
    text: str


# A patient's or order's number counts from four digits on, a device's or a study's label from five characters. LOOSE is
# what a private element holds: only what looks like a name or a number of somebody counts.
NAME, NUMBER, LABEL, PLACE, DATE, LOOSE = "name", "number", "label", "place", "date", "loose"
_LOOSE_NAME = re.compile(r"[^\W\d_][^\W\d_' -]*\^[^\W\d_][^\W\d_' ^-]*")


@dataclass(slots=True, eq=False)
class OwnWords:
    """The own words of one object, ready to be looked for."""

    words: Words
    strong: set[str] = field(default_factory=set)
    weak: dict[str, set[int]] = field(default_factory=dict)
    initials: dict[str, set[int]] = field(default_factory=dict)
    glued: set[str] = field(default_factory=set)
    ideographic: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    short_numbers: set[str] = field(default_factory=set)
    phrases: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    days: set[tuple[int, int, int]] = field(default_factory=set)
    _inside: re.Pattern[str] | None = None
    _prefixes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, said: Iterable[Said], words: Words) -> OwnWords:
        own = cls(words)
        take = {NAME: own._name, NUMBER: own._number, LABEL: own._label, PLACE: own._place, DATE: own._date}
        for number, (role, text) in enumerate(sorted(said)):
            take.get(role, own._loose)(text, number)
        own._compile()
        return own

    def _name(self, text: str, number: int) -> None:
        for group in text.split("="):
            parts = [token.text for token in tokens_of(group)]
            for part in parts:
                self._part(part, number)
            for component in map(str.strip, group.split("^")):
                broken = not component.isascii() and [token.text for token in tokens_of(component)] != [component]
                if broken and len(component) > ALONE_LETTERS - 1:
                    self.ideographic.add(component)  # bytes of another character set than said: no words, yet a name
            joined = "".join(parts)
            if len(joined) >= 2 and any(map(is_ideographic, joined)):
                self.ideographic |= {joined, "".join(reversed(parts))}
            long = [fold(part) for part in parts if len(part) >= 2][:MAX_NAME_PARTS]
            if any(one in self.strong for part in parts for one in name_spellings(part)):
                self.glued |= {a + b for a, b in permutations(long, 2) if len(a + b) >= GLUED_LETTERS}

    def _part(self, part: str, number: int) -> None:
        if any(map(is_ideographic, part)):
            self.ideographic |= {part} if len(part) >= 2 else set()
            return
        for folded in name_spellings(part):
            if folded in NOT_NAMES or folded.isdecimal():
                continue
            self.initials.setdefault(folded[:1], set()).add(number)
            known = self.words.is_core(folded) if len(folded) > ALONE_LETTERS else self.words.knows(folded)
            if len(folded) < ALONE_LETTERS or known:
                if len(folded) > 1:
                    self.weak.setdefault(folded, set()).add(number)
            else:
                self.strong.add(folded)

    def _number(self, text: str, _number: int) -> None:
        self._take_number(text, shortest=4)

    def _label(self, text: str, _number: int) -> None:
        self._take_number(text, shortest=ID_CHARACTERS)

    def _take_number(self, text: str, *, shortest: int) -> None:
        tokens = [fold(token.text) for token in tokens_of(text)]
        if not any(map(str.isdecimal, text)):
            self._place(text, 0)
            return
        for one in {"".join(tokens), *tokens}:
            digits = sum(map(str.isdecimal, one))
            if len(one) >= ID_CHARACTERS and digits >= ID_DIGITS and len(set(one)) > 1:
                self.numbers |= {one} | ({one.lstrip("0")} if len(one.lstrip("0")) >= ID_CHARACTERS else set())
            elif shortest <= len(one) and digits >= (1 if shortest < ID_CHARACTERS else ID_DIGITS):
                self.short_numbers.add(one)
            runs = _DIGIT_RUNS.findall(one)
            if len(runs) > 1 or runs != [one]:
                self.numbers |= {run for run in runs if len(run) >= ID_CHARACTERS}
                self.short_numbers |= {run for run in runs if len(run) == shortest == 4 and len(runs) == 1}

    def _single_word(self, text: str) -> None:
        tokens = tokens_of(text)
        if len(tokens) != 1 or not tokens[0].text.isalpha():
            return
        word = tokens[0].text
        if len(word) > ALONE_LETTERS and not (self.words.knows(word) and len(word) < INSIDE_LETTERS):
            self.strong |= {one for one in spellings(word) if not self.words.is_core(one) and one not in NOT_NAMES}

    def _place(self, text: str, _number: int) -> None:
        self._single_word(text)
        for piece in {text, *_PIECES.split(text)}:
            folded = tuple(fold(token.text) for token in tokens_of(piece))
            if len(folded) > 1 and len(" ".join(folded)) >= PHRASE_CHARACTERS:
                self.phrases.setdefault(folded[0], []).append(folded)
            for one in folded:
                if len(one) >= ID_CHARACTERS and sum(map(str.isdecimal, one)) >= ID_CHARACTERS - 1:
                    self.numbers.add(one)
        digits = "".join(filter(str.isdecimal, text))
        if len(digits) >= 7 and len(digits) * 2 > len(text):  # a telephone number
            self.numbers.add(digits)

    def _date(self, text: str, _number: int) -> None:
        if len(text) >= 8 and text[:8].isdecimal():
            self.days.add((int(text[:4]), int(text[4:6]), int(text[6:8])))

    def _loose(self, text: str, number: int) -> None:
        if _LOOSE_NAME.match(text):
            if not all(self.words.knows(token.text) for token in tokens_of(text) if len(token.text) > 1):
                self._name(text, number)
        elif sum(map(str.isdecimal, text)) >= 4 and any(map(str.isalpha, text)) and len(tokens_of(text)) == 1:
            self._take_number(text, shortest=ID_CHARACTERS)

    def _compile(self) -> None:
        parts = [re.escape(one) for one in self.glued | {one for one in self.strong if len(one) >= INSIDE_LETTERS}]
        parts += [rf"(?<![^\W\d_]){re.escape(one)}(?![^\W\d_])" for one in self.strong if len(one) < INSIDE_LETTERS]
        for one in self.numbers:
            if len(one) >= INSIDE_ID_CHARACTERS and not one.isdecimal():
                parts.append(re.escape(one))
            else:
                before = r"(?<!\d)0*" if one[0].isdecimal() else r"(?<![^\W\d_])"
                after = r"(?!\d)" if one[-1].isdecimal() else r"(?![^\W\d_])"
                parts.append(before + re.escape(one) + after)
        self._inside = re.compile("|".join(sorted(parts, key=len, reverse=True))) if parts else None
        self._prefixes = frozenset(one[:1] for one in self.numbers) | ({"0"} if self.numbers else frozenset())

    # Looking for them

    def spans(self, text: str, tokens: Sequence[Token], least: int = ALONE_LETTERS) -> Iterator[Span]:
        """Where own words stand; of names, those of at least so many letters."""
        for name in self.ideographic:
            at = text.find(name)
            while at >= 0:
                yield at, at + len(name)
                at = text.find(name, at + 1)
        if not tokens:
            return
        yield from self._names(text, tokens, least)
        if self.numbers or self.short_numbers:
            yield from self._numbers(text, tokens)
        if self.phrases:
            yield from self._phrases(tokens)
        if self.days:
            yield from self._days(tokens)

    def is_strong(self, token: str, least: int = ALONE_LETTERS) -> bool:
        """True when a token holds a name of at least so many letters, or a number of the object."""
        found = spellings(token)
        if len(token) < least:
            return False
        if not found.isdisjoint(self.strong) or not found.isdisjoint(self.short_numbers):
            return True
        inside = self._inside
        return inside is not None and any(inside.search(one) for one in found) and not self.words.is_core(fold(token))

    def _names(self, text: str, tokens: Sequence[Token], least: int) -> Iterator[Span]:
        run: list[tuple[Token, bool, frozenset[int], bool]] = []
        for token in tokens:
            strong = self.is_strong(token.text, least)
            weak = frozenset(number for one in spellings(token.text) for number in self.weak.get(one, ()))
            contrast = _CONTRAST.search(text, max(0, token.start - 1), token.end + 2) is not None
            slashed = any(_SLASHED.match(text, max(0, at)) for at in (token.start - 2, token.start))  # W/O, S/P
            capital = token.text.isupper() or text.islower()
            initial = len(token.text) == 1 and capital and fold(token.text) in self.initials
            initial = initial and not contrast and not slashed and not self._begins_a_word(text, token)
            if run and not ((strong or weak or initial) and _goes_on(text, run[-1][0], token)):
                yield from self._run(text, run)
                run = []
            if strong or weak or initial:
                run.append((token, strong, weak, initial))
        yield from self._run(text, run)

    def _begins_a_word(self, text: str, token: Token) -> bool:
        """True for the Q of Q.Clear: a dot and a technical word are attached to it."""
        attached = _ATTACHED.match(text, token.end)
        return attached is not None and self.words.is_core(fold(attached[1]))

    def _run(self, text: str, run: list[tuple[Token, bool, frozenset[int], bool]]) -> Iterator[Span]:
        """Own parts and initials beside each other. A single L or R at the edge is a side, unless a dot follows."""
        pairs = {fold(token.text): weak for token, _, weak, _ in run if weak}
        together = any(a & b for (_, a), (_, b) in permutations(pairs.items(), 2))
        if not together and not any(strong for _, strong, _, _ in run):
            return
        last = len(run) - 1
        for index, (token, strong, weak, initial) in enumerate(run):
            side = initial and not strong and not weak and index in (0, last) and token.text in ("L", "R")
            if side and text[token.end : token.end + 1] != ".":
                continue
            yield token.start, token.end

    def _numbers(self, text: str, tokens: Sequence[Token]) -> Iterator[Span]:
        folded = [fold(token.text) for token in tokens]
        for first in range(len(tokens)):
            if folded[first][:1] not in self._prefixes:
                continue
            joined = ""
            for last in range(first, min(first + MAX_ID_TOKENS, len(tokens))):
                if last > first and not _BETWEEN_DIGITS.fullmatch(text, tokens[last - 1].end, tokens[last].start):
                    break
                joined += folded[last]
                if joined in self.numbers or (folded[first].strip("0") and joined.lstrip("0") in self.numbers):
                    yield tokens[first].start, tokens[last].end

    def _phrases(self, tokens: Sequence[Token]) -> Iterator[Span]:
        folded = [fold(token.text) for token in tokens]
        for first, word in enumerate(folded):
            for phrase in self.phrases.get(word, ()):
                if tuple(folded[first : first + len(phrase)]) == phrase:
                    yield tokens[first].start, tokens[first + len(phrase) - 1].end

    def _days(self, tokens: Sequence[Token]) -> Iterator[Span]:
        """Own dates as three numbers in any order with anything between, or a day beside a month's name."""
        numbers = [number_of(token.text) for token in tokens]
        for at, (one, two) in enumerate(pairwise(numbers)):
            if one is None or two is None:
                continue
            three = numbers[at + 2] if at + 2 < len(numbers) else None
            named = not (tokens[at].text.isdecimal() and tokens[at + 1].text.isdecimal())
            short = all(len(token.text) == 2 for token in tokens[at : at + 3])
            for year, month, day in self.days:
                years = (year, year % 100) if short else (year,)
                if three is not None and any((one, two, three) in _orders(y, month, day) for y in years):
                    yield tokens[at].start, tokens[at + 2].end
                elif named and (one, two) in ((day, month), (month, day)):
                    yield tokens[at].start, tokens[at + 1].end
        for token in tokens:
            if len(token.text) == 8 and token.text.isdecimal():
                yield from ((token.start, token.end) for day in self.days if token.text in _compact(*day))


def _goes_on(text: str, before: Token, token: Token) -> bool:
    """True when a token may belong to the same name: an initial does not begin the next sentence."""
    between = text[before.end : token.start]
    if _BETWEEN_NAMES.fullmatch(between) is None:
        return False
    return len(token.text) > 1 or len(before.text) == 1 or not ("\n" in between or between.startswith("."))


def _orders(year: int, month: int, day: int) -> tuple[tuple[int, int, int], ...]:
    return (year, month, day), (day, month, year), (month, day, year)


def _compact(year: int, month: int, day: int) -> tuple[str, ...]:
    return (
        f"{year:04d}{month:02d}{day:02d}",
        f"{day:02d}{month:02d}{year:04d}",
        f"{month:02d}{day:02d}{year:04d}",
    )
