"""One identity per patient, and what a hospital knows about it: all that a cleaned object must not say."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field

from bench.midib_corpus import fresh, unseen, widened, words
from bench.midib_corpus.words import Half, Words


@dataclass(frozen=True)
class Name:
    first: str
    last: str

    @property
    def dicom(self) -> str:
        return f"{self.last.upper()}^{self.first.upper()}"

    @property
    def initials(self) -> str:
        return self.first[0] + self.last[0]

    @property
    def words(self) -> str:
        return f"{self.first} {self.last}"


@dataclass(frozen=True)
class Person:
    """A patient. `born` and `studied` are real dates; nothing that leaves may show them."""

    name: Name
    sex: str
    born: dt.date
    mrn: str
    ssn: str
    phone: str
    mail: str
    address: str
    street: str
    city: str
    mother: Name
    referring: Name
    performing: Name
    reading: Name
    operator: Name
    hospital: str
    ward: str
    character_set: str = "ISO_IR 100"
    foreign: str = ""  # Patient's Name as it is, where it is not Latin
    aliases: tuple[str, ...] = field(default=())
    calls: tuple[
        tuple[str, str], ...
    ] = ()  # (what a telephone is called, its number), where the half has several forms
    half: Half = "final"

    def age(self, day: dt.date) -> int:
        return day.year - self.born.year - ((day.month, day.day) < (self.born.month, self.born.day))


def digits(rng: random.Random, count: int) -> str:
    """`count` digits, the first not 0."""
    return str(rng.randint(1, 9)) + "".join(rng.choice("0123456789") for _ in range(count - 1))


def filled(rng: random.Random, form: str) -> str:
    """A telephone number: a digit for every `#`; not 0, 1 or 9 at the front, which some countries do not begin with."""
    first = form.find("#")
    return "".join(
        str(rng.randint(2, 8)) if at == first else str(rng.randint(0, 9)) if sign == "#" else sign
        for at, sign in enumerate(form)
    )


def day_in(rng: random.Random, first: int, last: int) -> dt.date:
    """A day in the years first..last."""
    start = dt.date(first, 1, 1).toordinal()
    return dt.date.fromordinal(rng.randint(start, dt.date(last, 12, 31).toordinal()))


def person(rng: random.Random, half: Half) -> Person:
    """One patient; about one in eight has a name in another script, one in fifteen is over 89."""
    own = Words(half)
    lasts = rng.sample(own.of(words.LAST, (), unseen.LAST, fresh.LAST), 6)
    firsts = [
        *rng.sample(own.of(words.FEMALE, (), unseen.FEMALE, fresh.FEMALE), 3),
        *rng.sample(own.of(words.MALE, (), unseen.MALE, fresh.MALE), 3),
    ]
    rng.shuffle(firsts)
    names = [Name(first, last) for first, last in zip(firsts, lasts, strict=True)]
    street = rng.choice(own.of(words.STREETS, (), unseen.STREETS, fresh.STREETS))
    city = rng.choice(own.of(words.CITIES, (), unseen.CITIES, fresh.CITIES))
    address = f"{digits(rng, 3)} {street} {city}, {rng.choice(words.STATES)} {digits(rng, 5)}"
    calls = (
        () if half != "development" else tuple((name, filled(rng, form)) for name, form in rng.sample(widened.CALLS, 4))
    )
    character_set, foreign = (
        rng.choice(own.of(words.FOREIGN, (), unseen.FOREIGN, fresh.FOREIGN))
        if rng.random() < 0.12
        else ("ISO_IR 100", "")
    )
    return Person(
        name=names[0],
        sex="F" if names[0].first in {*words.FEMALE, *unseen.FEMALE, *fresh.FEMALE} else "M",
        born=day_in(rng, 1915, 1922) if rng.random() < 0.07 else day_in(rng, 1932, 1999),
        mrn=digits(rng, 10),
        ssn=f"{digits(rng, 3)}-{digits(rng, 2)}-{digits(rng, 4)}",
        phone=f"({digits(rng, 3)}) {digits(rng, 3)}-{digits(rng, 4)}",
        mail=f"{names[0].first.lower()}.{names[0].last.lower()}@{rng.choice(words.MAILS)}",
        address=address,
        street=street,
        city=city,
        mother=names[1],
        referring=names[2],
        performing=names[3],
        reading=names[4],
        operator=names[5],
        hospital=rng.choice(own.of(words.HOSPITALS, (), unseen.HOSPITALS, fresh.HOSPITALS)),
        ward=rng.choice(own.of(words.WARDS, (), unseen.WARDS, fresh.WARDS)),
        character_set=character_set,
        foreign=foreign,
        calls=calls,
        half=half,
    )
