"""What is planted in the unseen half's texts, and how it is written there: frozen with `unseen`.

Styles of requisitions, worklists, technologists' notes and dictation: names in brackets, behind dashes and underscores,
with degrees; relatives; dates in words and with times; transfers, employers' and visiting places; numbers of charts,
insurances and passports; telephones, mail, web and network addresses.
"""

from __future__ import annotations

import datetime as dt
import random

from bench.midib_corpus.people import Person, digits
from bench.midib_corpus.phrases import DATES, MAILS, NAMES, OTHER, PHONES, PLACES, RECORDS, SSN, Style, spoken

PLANS, LICENCES, LINKS, NETWORK, DEVICES = "HIPAA-I", "HIPAA-K", "HIPAA-N", "HIPAA-O", "HIPAA-M"
Typed = tuple[str, str, str]


def _dashed(text: str, who: Person, *_: object) -> Typed:
    first, last = spoken(who)
    return f"{text} - pt {last} {first}", f"{last} {first}", NAMES


def _bracketed(text: str, who: Person, *_: object) -> Typed:
    first, last = spoken(who)
    return f"{text} ({last}, {first[0]}.)", last, NAMES


def _underscored(text: str, who: Person, *_: object) -> Typed:
    return f"{who.name.last}_{who.name.first}_{text}", who.name.words, NAMES


def _shouted(text: str, who: Person, *_: object) -> Typed:
    return f"{text} PT: {who.name.first.upper()} {who.name.last.upper()}", who.name.words, NAMES


def _referring(text: str, who: Person, *_: object) -> Typed:
    return f"{text}; referring: {who.referring.first[0]}. {who.referring.last}", who.referring.last, NAMES


def _copied(text: str, who: Person, *_: object) -> Typed:
    return f"{text} cc: {who.reading.words}, MD", who.reading.words, NAMES


def _discussed(text: str, who: Person, *_: object) -> Typed:
    return f"{text}. Discussed with Dr {who.performing.last} at 14:20", who.performing.last, NAMES


def _technologist(text: str, who: Person, *_: object) -> Typed:
    return f"{text} scanned by {who.operator.words} RT(R)(CT)", who.operator.words, NAMES


def _mother(text: str, who: Person, *_: object) -> Typed:
    return f"{text}. Consent: mother {who.mother.words}", who.mother.words, NAMES


def _possessive(text: str, who: Person, *_: object) -> Typed:
    return f"Ms. {who.name.last}'s prior reviewed. {text}", who.name.last, NAMES


def _nurse(text: str, who: Person, *_: object) -> Typed:
    return f"{text} IV placed by RN {who.operator.first} {who.operator.last[0]}.", who.operator.first, NAMES


def _compared(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    shown = day.strftime(rng.choice(("%B %d, %Y", "%d %B %Y", "%d/%m/%y", "%Y.%m.%d", "%b %d %Y")))
    return f"{text} compared to {shown}", shown, DATES


def _stamped(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    return f"{day:%Y-%m-%d} {rng.randint(10, 18)}:{rng.randint(10, 59)} {text}", f"{day:%Y-%m-%d}", DATES


def _surgery(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    shown = day.strftime(rng.choice(("%m-%d-%Y", "%d%b%Y", "%m.%d.%Y")))
    return f"{text} s/p surgery {shown}", shown, DATES


def _born(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    shown = who.born.strftime(rng.choice(("%d %b %Y", "%m-%d-%Y", "%d.%m.%Y", "%B %d %Y")))
    return f"{text} {rng.choice(('born', 'b.', 'D.O.B.', 'birthdate', 'geb.'))} {shown}", shown, DATES


def _transferred(text: str, who: Person, *_: object) -> Typed:
    return f"{text} transferred from {who.hospital}", who.hospital, PLACES


def _outside(text: str, who: Person, *_: object) -> Typed:
    return f"Outside films {who.hospital}: {text}", who.hospital, PLACES


def _lives(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    return f"{text}, lives at {digits(rng, 2)} {who.street}", who.street, PLACES


def _town(text: str, who: Person, *_: object) -> Typed:
    return f"{text} seen in {who.city} ER", who.city, PLACES


def _chart(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    return f"{text} {rng.choice(('chart no.', 'Hosp#', 'UR', 'file', 'Pt ID:'))} {who.mrn}", who.mrn, RECORDS


def _grouped_record(text: str, who: Person, *_: object) -> Typed:
    shown = f"{who.mrn[:3]}-{who.mrn[3:6]}-{who.mrn[6:]}"
    return f"{text} MR# {shown}", shown, RECORDS


def _bare_record(text: str, who: Person, *_: object) -> Typed:
    return f"{text} [{who.mrn}]", who.mrn, RECORDS


def _plan(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"{digits(rng, 1)}EG{digits(rng, 1)}-TE{digits(rng, 1)}-MK{digits(rng, 2)}"
    return f"{text} {rng.choice(('Medicare', 'MBI', 'ins. ID'))} {shown}", shown, PLANS


def _passport(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"X{digits(rng, 7)}"
    return f"{text} {rng.choice(('passport', 'DL', 'licence'))} {shown}", shown, LICENCES


def _accession(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"{rng.choice('ERCM')}{digits(rng, 8)}"
    return f"{text} acc. no {shown}", shown, OTHER


def _serial(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"PJN{digits(rng, 6)}H"
    return f"{text} pacemaker SN {shown}", shown, DEVICES


def _phone(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    number = rng.choice(
        (
            f"{digits(rng, 3)}.{digits(rng, 3)}.{digits(rng, 4)}",
            f"+44 20 7946 0{digits(rng, 3)}",
            f"({digits(rng, 3)}){digits(rng, 3)}-{digits(rng, 4)}",
            f"{digits(rng, 3)} {digits(rng, 4)}",
            f"+61 4{digits(rng, 2)} {digits(rng, 3)} {digits(rng, 3)}",
        )
    )
    return f"{text} {rng.choice(('tel.', 'Call results to', 'cell', 'contact', 'Ph:'))} {number}", number[-8:], PHONES


def _pager(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    number = digits(rng, 4)
    return f"{text} {rng.choice(('ext', 'pager', 'beeper'))} {number}", number, PHONES


def _mail(text: str, who: Person, *_: object) -> Typed:
    return f"{text} email: {who.name.first[0].lower()}{who.name.last.lower()}@hushmail.example", who.name.last, MAILS


def _link(text: str, who: Person, *_: object) -> Typed:
    return f"{text} https://portal.hospital.example/pt/{who.mrn}", who.mrn, LINKS


def _network(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"10.{rng.randint(100, 250)}.{rng.randint(20, 250)}.{rng.randint(20, 250)}"
    return f"{text} sent from {shown}", shown, NETWORK


def _social(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    shown = rng.choice((who.ssn, who.ssn.replace("-", " ")))
    return f"{text} {rng.choice(('SS#', 'Soc Sec', 'social security no.'))} {shown}", shown, SSN


STYLES: tuple[tuple[Style, int], ...] = (
    *((_dashed, 8), (_bracketed, 6), (_underscored, 5), (_shouted, 6), (_referring, 6), (_copied, 5), (_discussed, 6)),
    *((_technologist, 5), (_mother, 4), (_possessive, 4), (_nurse, 3), (_compared, 10), (_stamped, 6), (_surgery, 5)),
    *((_born, 7), (_transferred, 6), (_outside, 4), (_lives, 5), (_town, 4), (_chart, 6), (_grouped_record, 3)),
    *((_bare_record, 4), (_plan, 3), (_passport, 3), (_accession, 4), (_serial, 2), (_phone, 6), (_pager, 3)),
    *((_mail, 3), (_link, 2), (_network, 2), (_social, 4)),
)
