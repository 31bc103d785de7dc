"""What an object says of its own people, numbers, dates and places, as words that its texts may not repeat.

Parts of names count in any order, case, spelling and with any separator. A part that is a technical word first (HEAD,
Long, Philips) counts only beside another part or initial of the same name. Numbers count whole, across separators, and
by their long runs of digits. Gathered once for the many objects of one study that say the same; where they stand in a
text is found by `descriptors_own_spans`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

from gateway.header.descriptors_dates import number_of
from gateway.header.descriptors_folding import fold, is_ideographic, name_spellings, spellings
from gateway.header.descriptors_tokens import NO_TRAIT, Trait, tokens_of
from gateway.header.descriptors_words import Words

INSIDE_LETTERS, ALONE_LETTERS = 6, 3  # shortest name part that counts inside a longer word, and as a word
ID_CHARACTERS, ID_DIGITS, INSIDE_ID_CHARACTERS, GLUED_LETTERS = 5, 3, 8, 8
PHRASE_CHARACTERS, MAX_NAME_PARTS = 8, 6
MAX_REMEMBERED, MAX_REMEMBERED_LETTERS = 4096, 64  # tokens, and of how many characters one may be
COMPACT_DIGITS, COMPACT = 8, -1  # of a date written together, which is no number of a date
_NOT_NAMES = """
dr prof med mr mrs ms md phd jr sr ii iii iv von van vom zu der den de del della di da do dos du la le les el al bin ben
ibn st anon anonym anonymous anonymized anonymised none null unknown unnamed noname removed deidentified
"""
NOT_NAMES = frozenset(_NOT_NAMES.split())
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
    _initials_of_numbers: frozenset[str] = frozenset()
    _beginnings: frozenset[str] = frozenset()  # of names, without the last letter at least
    _anywhere: tuple[str, ...] = ()  # names and numbers that count inside a longer word
    _bounded: tuple[tuple[str, Callable[[str], bool], Callable[[str], bool], bool], ...] = ()
    traits: dict[str, Trait] = field(default_factory=dict)  # by token: ask `trait` for those that are not there

    @classmethod
    def of(cls, said: Iterable[Said], words: Words) -> OwnWords:
        own = cls(words)
        take = {NAME: own._name, NUMBER: own._number, LABEL: own._label, PLACE: own._place, DATE: own._date}
        for number, (role, text) in enumerate(sorted(said)):
            take.get(role, own._loose)(text, number)
        own._prepare()
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
        whole = "".join(tokens)
        for one in {whole, *tokens}:
            digits = sum(map(str.isdecimal, one))
            if len(one) >= ID_CHARACTERS and digits >= ID_DIGITS and len(set(one)) > 1:
                self.numbers |= {one} | ({one.lstrip("0")} if len(one.lstrip("0")) >= ID_CHARACTERS else set())
            elif len(tokens) > 1 and one == whole and len(one) >= ID_CHARACTERS > shortest:
                self.numbers.add(one)  # COOKIE-47 of a patient
            elif shortest <= len(one) and digits >= (1 if shortest < ID_CHARACTERS else ID_DIGITS):
                self.short_numbers.add(one)
            runs = _DIGIT_RUNS.findall(one)
            if len(runs) > 1 or runs != [one]:
                self.numbers |= {run for run in runs if len(run) >= ID_CHARACTERS}
                self.short_numbers |= {run for run in runs if len(run) == shortest == 4 and len(runs) == 1}
            if len(one) >= INSIDE_LETTERS:
                self._single_word(one)  # COOKIE of it

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

    def _prepare(self) -> None:
        self._beginnings = frozenset(one[:end] for one in self.strong | self.glued for end in range(1, len(one)))
        anywhere = self.glued | {one for one in self.strong if len(one) >= INSIDE_LETTERS}
        anywhere |= {one for one in self.numbers if len(one) >= INSIDE_ID_CHARACTERS and not one.isdecimal()}
        self._anywhere = tuple(sorted(anywhere))
        if self.numbers:
            self._initials_of_numbers = frozenset({"0", *(one[0] for one in self.numbers)})
        names = [(one, _is_letter, _is_letter, False) for one in self.strong if len(one) < INSIDE_LETTERS]
        numbers = [(one, _like(one[0]), _like(one[-1]), one[0].isdecimal()) for one in self.numbers - anywhere]
        self._bounded = tuple(sorted([*names, *numbers], key=lambda part: part[0]))

    def trait(self, token: str) -> Trait:
        """What a token is to the object. Remembered: the texts of a study are made of few words."""
        found = self.traits.get(token)
        if found is None:
            found = self._trait(token)
            if len(token) > MAX_REMEMBERED_LETTERS:
                return found
            if len(self.traits) >= MAX_REMEMBERED:
                self.traits.clear()
            self.traits[token] = found
        return found

    def _trait(self, token: str) -> Trait:
        folded = fold(token)
        if token.isascii():  # of one spelling
            weak = frozenset(self.weak.get(folded, ()))
        else:
            weak = frozenset(number for one in spellings(token) for number in self.weak.get(one, ()))
        found = Trait(
            self._is_strong(token),
            weak,
            len(token) == 1 and folded in self.initials,
            self._begins_number(folded),
            folded in self.phrases,
            folded in self._beginnings,
            self._date_number(token),
        )
        return NO_TRAIT if found == NO_TRAIT else found

    def _begins_number(self, folded: str) -> bool:
        """Zeros before a number do not count, unless nothing else is there."""
        if folded[:1] not in self._initials_of_numbers:
            return False
        begins = (folded, folded.lstrip("0") or folded)
        return any(one.startswith(begins) for one in self.numbers)

    def _date_number(self, token: str) -> int | None:
        if not self.days:
            return None
        return COMPACT if len(token) == COMPACT_DIGITS and token.isdecimal() else number_of(token)

    def is_strong(self, token: str, least: int = ALONE_LETTERS) -> bool:
        """True when a token holds a name of at least so many letters, or a number of the object."""
        return len(token) >= least and self.trait(token).strong

    def _is_strong(self, token: str) -> bool:
        found = spellings(token)
        if not found.isdisjoint(self.strong) or not found.isdisjoint(self.short_numbers):
            return True
        return len(token) > 1 and any(map(self._is_inside, found)) and not self.words.is_core(fold(token))

    def _is_inside(self, word: str) -> bool:
        """True when a folded word holds a name or number: a short name not between letters, a number not between
        digits, whatever zeros stand before it."""
        for one in self._anywhere:  # a loop, for it is asked of every new word
            if one in word:
                return True
        for one, goes_before, goes_behind, zeros in self._bounded:
            at = word.find(one)
            while at >= 0:
                end = at + len(one)
                before = word[:at].rstrip("0") if zeros else word[:at]
                if not goes_before(before[-1:]) and not goes_behind(word[end : end + 1]):
                    return True
                at = word.find(one, at + 1)
        return False


def _is_letter(char: str) -> bool:
    return char.isalnum() and not char.isdecimal()


def _like(char: str) -> Callable[[str], bool]:  # what may not go on beside a number that ends with it
    return str.isdecimal if char.isdecimal() else _is_letter
