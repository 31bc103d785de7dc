"""What is planted in the fresh half's texts, and how it is written there: frozen with `fresh`.

Styles of dictation, worklists, referral letters and export names: signatures, consultants' Mr and Miss, relatives,
glued names; weekdays, last periods, months; accounts, encounters, members of insurances, the last four digits; mobiles
of several countries; towns, streets and hospitals behind a dash or an "@".
"""

from __future__ import annotations

import datetime as dt
import random

from bench.midib_corpus.people import Person, digits
from bench.midib_corpus.phrases import DATES, MAILS, NAMES, OTHER, PHONES, PLACES, RECORDS, SSN, Style, spoken

PLANS, ACCOUNTS, LICENCES, LINKS, NETWORK, DEVICES = "HIPAA-I", "HIPAA-J", "HIPAA-K", "HIPAA-N", "HIPAA-O", "HIPAA-M"
Typed = tuple[str, str, str]


def _led(text: str, who: Person, *_: object) -> Typed:
    first, last = spoken(who)
    return f"{last.upper()}, {first.upper()} - {text}", f"{last.upper()} {first.upper()}", NAMES


def _equals(text: str, who: Person, *_: object) -> Typed:
    first, last = spoken(who)
    return f"{text} NAME={last} {first}", f"{last} {first}", NAMES


def _glued(text: str, who: Person, *_: object) -> Typed:
    return f"{text} {who.name.last}{who.name.first}", f"{who.name.last}{who.name.first}", NAMES


def _dotted(text: str, who: Person, *_: object) -> Typed:
    return f"{text} {who.name.first[0]}.{who.name.last}", who.name.last, NAMES


def _dictated(text: str, who: Person, *_: object) -> Typed:
    return f"{text} Dictated by: {who.reading.last}, {who.reading.first} M.D.", who.reading.words, NAMES


def _signed(text: str, who: Person, rng: random.Random, day: dt.date) -> Typed:
    when = f"{day:%d-%b-%Y} {rng.randint(7, 19):02d}:{rng.randint(0, 59):02d}"
    return f"{text} E-signed {who.reading.words} {when}", f"{who.reading.words} {day:%d-%b-%Y}", NAMES


def _requested(text: str, who: Person, *_: object) -> Typed:
    return f"Req Dr {who.referring.last}: {text}", who.referring.last, NAMES


def _consultant(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    return f"{text} / cons. {rng.choice(('Mr', 'Miss', 'Prof'))} {who.performing.last}", who.performing.last, NAMES


def _accompanied(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    relative = rng.choice(("sister", "daughter", "carer", "husband"))
    return f"{text}, accompanied by {relative} {who.mother.first}", who.mother.first, NAMES


def _kin(text: str, who: Person, *_: object) -> Typed:
    return f"{text}. NOK: {who.mother.words}", who.mother.words, NAMES


def _attended(text: str, who: Person, *_: object) -> Typed:
    return f"{text}. Mr {who.name.last} attended alone", who.name.last, NAMES


def _helper(text: str, who: Person, *_: object) -> Typed:
    return f"{text} w/ assist {who.operator.first}", who.operator.first, NAMES


def _crew(text: str, who: Person, *_: object) -> Typed:
    return f"{text} RT: {who.operator.last}, {who.operator.first[0]}", who.operator.last, NAMES


def _weekday(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    shown = day.strftime(rng.choice(("%d %b %Y", "%d/%m/%Y", "%b %d, %Y")))
    return f"{text} {day:%a} {shown}", shown, DATES


def _period(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    shown = (day - dt.timedelta(days=70)).strftime(rng.choice(("%d %b %Y", "%m/%d/%y", "%d.%m.%Y")))
    return f"{text} LMP {shown}", shown, DATES


def _injured(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    shown = (day - dt.timedelta(days=9)).strftime(rng.choice(("%m/%d/%Y", "%Y/%m/%d", "%d-%m-%y")))
    return f"{text} DOI: {shown}", shown, DATES


def _since(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    shown = day.strftime(rng.choice(("%m/%Y", "%b %Y", "%B %Y")))
    return f"{text} since {shown}", shown, DATES


def _previous(text: str, _: Person, rng: random.Random, day: dt.date) -> Typed:
    shown = (day - dt.timedelta(days=366)).strftime(rng.choice(("%d%b%y", "%y%m%d", "%Y%m%d%H%M%S")))
    return f"{text} (prev {shown})", shown, DATES


def _ordinal(text: str, _: Person, __: random.Random, day: dt.date) -> Typed:
    end = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day not in (11, 12, 13) else 0, "th")
    return f"{text} done {day:%B} {day.day}{end} {day.year}", f"{day:%B} {day.day}{end} {day.year}", DATES


def _born(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    shown = who.born.strftime(rng.choice(("%Y/%m/%d", "%d.%m.%y", "%d %B %Y", "%b-%d-%Y")))
    return f"{text} {rng.choice(('DOB-', 'd.o.b ', 'Birth Date ', 'BD '))}{shown}", shown, DATES


def _at(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    return f"{text} {rng.choice(('@', 'ref from', 'priors from'))} {who.hospital}", who.hospital, PLACES


def _heading(text: str, who: Person, *_: object) -> Typed:
    return f"{who.hospital} - {text}", who.hospital, PLACES


def _resident(text: str, who: Person, *_: object) -> Typed:
    return f"{text}. Resident of {who.city}", who.city, PLACES


def _housed(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    return f"{text} addr: {digits(rng, 3)} {who.street}, {who.city}", f"{who.street} {who.city}", PLACES


def _number(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    return f"{text} {rng.choice(('(MRN#', '(Patient Number ', '(PatID='))}{who.mrn})", who.mrn, RECORDS


def _national(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"{digits(rng, 3)} {digits(rng, 3)} {digits(rng, 4)}"
    return f"{text} NHS No {shown}", shown, RECORDS


def _account(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = digits(rng, 9)
    return f"{text} {rng.choice(('FIN', 'Acct', 'CSN:', 'HAR'))} {shown}", shown, ACCOUNTS


def _order(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"{rng.choice(('ACC', 'ORD', 'RIS-'))}{digits(rng, 7)}"
    return f"{text} {shown}", shown, OTHER


def _member(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"{rng.choice(('W', 'XQH', 'R'))}{digits(rng, 9)}"
    return f"{text} {rng.choice(('member', 'Subscriber ID', 'BCBS'))} {shown}", shown, PLANS


def _plate(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"KX{digits(rng, 2)} HVD"
    return f"{text}, parked reg {shown}", shown, LICENCES


def _implant(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"BLH{digits(rng, 6)}S"
    return f"{text} ICD serial no: {shown}", shown, DEVICES


def _phone(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    number = rng.choice(
        (
            f"0161 496 0{digits(rng, 3)}",
            f"07{digits(rng, 3)} {digits(rng, 3)} {digits(rng, 3)}",
            f"+1-{digits(rng, 3)}-{digits(rng, 3)}-{digits(rng, 4)}",
            f"{digits(rng, 3)}-{digits(rng, 4)}",
            f"+91 {digits(rng, 5)} {digits(rng, 5)}",
            f"{digits(rng, 3)}/{digits(rng, 3)}-{digits(rng, 4)}",
        )
    )
    return f"{text} {rng.choice(('ring', 'Mob', 'h:', 'Phone number', 'c/b'))} {number}", number[-8:], PHONES


def _mail(text: str, who: Person, *_: object) -> Typed:
    name = f"{who.name.first.lower()}_{who.name.last.lower().replace(chr(39), '')}"
    return f"{text} <{name}@letterbox.example>", name, MAILS


def _profile(text: str, who: Person, *_: object) -> Typed:
    name = f"{who.name.first}.{who.name.last}".lower()
    return f"{text} see patientportal.example/u/{name}", name, LINKS


def _network(text: str, _: Person, rng: random.Random, __: object) -> Typed:
    shown = f"172.{rng.randint(16, 31)}.{rng.randint(20, 250)}.{rng.randint(20, 250)}"
    return f"{text} via {shown}", shown, NETWORK


def _social(text: str, who: Person, rng: random.Random, _: object) -> Typed:
    if rng.random() < 0.5:
        return f"{text} SSN:{who.ssn}", who.ssn, SSN
    return f"{text} last 4 SSN {who.ssn[-4:]}", who.ssn[-4:], SSN


STYLES: tuple[tuple[Style, int], ...] = (
    *((_led, 8), (_equals, 5), (_glued, 3), (_dotted, 5), (_dictated, 6), (_signed, 4), (_requested, 7)),
    *((_consultant, 5), (_accompanied, 4), (_kin, 4), (_attended, 4), (_helper, 3), (_crew, 5), (_weekday, 6)),
    *((_period, 4), (_injured, 5), (_since, 5), (_previous, 5), (_ordinal, 4), (_born, 7), (_at, 8), (_heading, 4)),
    *((_resident, 4), (_housed, 5), (_number, 7), (_national, 3), (_account, 5), (_order, 4), (_member, 4)),
    *((_plate, 1), (_implant, 2), (_phone, 8), (_mail, 4), (_profile, 2), (_network, 2), (_social, 5)),
)
