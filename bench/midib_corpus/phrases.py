"""Text with something planted in it: what the operator typed, what of it must stay, what must go.

The styles are those seen in the challenge: "<description> for First Last", a trailing yyyymmdd, "Performed at
<hospital>", "Ordered for <patient> by <initials>", LAST^FIRST, "Last, First", postal addresses, SSN, ten-digit ids, and
dates of birth in five formats.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass

from bench.midib_corpus.people import Person, digits
from bench.midib_corpus.words import Half

# Reporting categories (HIPAA Safe Harbor letters).
NAMES, PLACES, DATES, PHONES, MAILS, SSN, RECORDS, OTHER = (f"HIPAA-{letter}" for letter in "ABCDFGHR")


@dataclass(frozen=True, slots=True)
class Phrase:
    """`text` is what was typed; `kept` and `planted` are looked for in the output; `clean` is a perfect answer."""

    text: str
    kept: str
    planted: str
    category: str
    clean: str


Style = Callable[[str, Person, random.Random, dt.date], tuple[str, str, str]]


def spoken(who: Person) -> tuple[str, str]:
    """First and last name as they are written in text: in the own script where the name has one."""
    if not who.foreign:
        return who.name.first, who.name.last
    last, first = who.foreign.split("=")[0].split("^")
    return first, last


def _for_patient(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    name = " ".join(spoken(who))
    return f"{text} for {name}", name, NAMES


def _reversed(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    first, last = spoken(who)
    return f"{text} {last}, {first}", f"{first} {last}", NAMES


def _dicom_name(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    return f"{who.name.dicom} {text}", who.name.words, NAMES


def _ordered(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    return f"{text} Ordered for {who.name.words} by {who.referring.initials}", who.name.words, NAMES


def _physician(text: str, who: Person, rng: random.Random, _: object) -> tuple[str, str, str]:
    doctor = rng.choice((who.referring, who.reading, who.performing))
    return f"{text} per Dr. {doctor.words}", doctor.words, NAMES


def _technologist(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    return f"{text} / tech {who.operator.last}", who.operator.last, NAMES


def _studied(text: str, _: object, rng: random.Random, day: dt.date) -> tuple[str, str, str]:
    del rng
    return f"{text} {day:%Y%m%d}", f"{day:%Y%m%d}", DATES


def _studied_words(text: str, _: object, rng: random.Random, day: dt.date) -> tuple[str, str, str]:
    shown = day.strftime(rng.choice(("%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%d", "%d-%b-%Y", "%m/%d/%y")))
    return f"{text}, {shown}", shown, DATES


def _born(text: str, who: Person, rng: random.Random, _: object) -> tuple[str, str, str]:
    shown = who.born.strftime(rng.choice(("%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%d", "%d-%b-%Y", "%Y%m%d")))
    return f"{text} DOB: {shown}", shown, DATES


def _performed_at(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    return f"{text} Performed at {who.hospital}", who.hospital, PLACES


def _record(text: str, who: Person, rng: random.Random, _: object) -> tuple[str, str, str]:
    return f"{text} {rng.choice(('MRN', 'ID', 'Pat.#', 'MRN:'))} {who.mrn}", who.mrn, RECORDS


def _phone(text: str, who: Person, rng: random.Random, _: object) -> tuple[str, str, str]:
    if who.calls:
        name, number = rng.choice(who.calls)
        return f"{text} {name} {number}", number, PHONES
    shown = rng.choice((who.phone, who.phone.replace("(", "").replace(") ", "-")))
    return f"{text} call {shown}", shown[-8:], PHONES


def _ssn(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    return f"{text} SSN {who.ssn}", who.ssn, SSN


def _mail(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    return f"{text} {who.mail}", who.mail.split("@")[0], MAILS


def _address(text: str, who: Person, *_: object) -> tuple[str, str, str]:
    return f"{text} {who.address}", f"{who.street} {who.city}", PLACES


def _accession(text: str, _: object, rng: random.Random, day: dt.date) -> tuple[str, str, str]:
    number = f"{day:%y}-{digits(rng, 8)}"
    return f"{text} Acc# {number}", number, OTHER


# How often each comes: names and dates are the most frequent in the challenge.
STYLES: tuple[tuple[Style, int], ...] = (
    (_for_patient, 14),
    (_reversed, 7),
    (_dicom_name, 7),
    (_ordered, 8),
    (_physician, 8),
    (_technologist, 4),
    (_studied, 12),
    (_studied_words, 10),
    (_born, 7),
    (_performed_at, 8),
    (_record, 6),
    (_phone, 4),
    (_ssn, 4),
    (_mail, 3),
    (_address, 4),
    (_accession, 4),
)


def styles_of(half: Half) -> tuple[tuple[Style, int], ...]:
    """Those of a half; two have modules of their own, which are made of this one's parts."""
    from bench.midib_corpus import fresh_phrases, unseen_phrases

    return {"unseen": unseen_phrases.STYLES, "fresh": fresh_phrases.STYLES}.get(half, STYLES)


def clashes(kept: str, planted: str) -> bool:
    """True when the two cannot be told apart by substrings: then no output could pass both checks."""
    low = kept.lower()
    return any(word in low for word in planted.lower().replace(",", " ").split())


def planted_in(text: str, who: Person, rng: random.Random, day: dt.date, *, limit: int = 64) -> Phrase | None:
    """`text` with something planted, at most `limit` characters long; None where no style fits."""
    styles = styles_of(who.half)
    for _ in range(12):
        style = rng.choices([style for style, _ in styles], [weight for _, weight in styles])[0]
        typed, planted, category = style(text, who, rng, day)
        if len(typed.encode()) <= limit and not clashes(text, planted):
            return Phrase(typed, text, planted, category, text)
    return None


def letter(text: str, more: str, who: Person, rng: random.Random, day: dt.date) -> Phrase | None:
    """A few lines (LT, ST, UT): a planted sentence between two that stay; sometimes an age above 89 too."""
    middle = planted_in(text, who, rng, day, limit=400)
    if middle is None or clashes(more, middle.planted):
        return None
    end = rng.choice((".\r\n", ". ", "\r\n"))
    return Phrase(f"{middle.text}{end}{more}", f"{text} {more}", middle.planted, middle.category, f"{text}{end}{more}")
