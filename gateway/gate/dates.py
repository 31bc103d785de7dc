"""Dates of the originals in every form that people and machines write them (cases.md 11, 12, 23, 42, 43)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from gateway.gate.vocabulary import STAND_IN_DATES

_DATE = re.compile(r"(\d{4})([.-]?)(\d\d)\2(\d\d)")

# English, German, French, Spanish, Italian; folded, so without accents.
_MONTHS = tuple(
    tuple(names.split())
    for names in (
        "jan january januar janner janvier janv enero ene gennaio gen",
        "feb february februar fevrier fevr febrero febbraio",
        "mar march marz mrz mars marzo",
        "apr april avril avr abril abr aprile",
        "may mai mayo maggio mag",
        "jun june juni juin junio giugno giu",
        "jul july juli juillet juil julio luglio lug",
        "aug august aout agosto ago",
        "sep sept september septembre septiembre set settembre",
        "oct october okt oktober octobre octubre ottobre ott",
        "nov november novembre noviembre",
        "dec december dez dezember decembre diciembre dic dicembre",
    )
)


def day_of(text: str) -> date | None:
    """The day of one DA or DT value, or of the ACR-NEMA form 2020.01.31; None when it names no day."""
    match = _DATE.match(text.strip(" \0"))
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return None


def says_nothing(day: date) -> bool:
    """True for days that stand for a missing one, here or in other systems."""
    return f"{day:%Y%m%d}" in STAND_IN_DATES or not 1850 <= day.year <= 2150


def forms(day: date, *, birth: bool) -> Iterator[bytes]:
    """Folded spellings of a day. A birth date also in forms that would be too common for other dates.

    20200131, 2020-01-31, 31.1.2020, 1/31/2020, 31 Jan 2020, January 31st, 2020; births: 31011950, 31.01.50, 31-JAN-50.
    """
    year, month, number = f"{day.year:04d}", day.month, day.day
    months, days = {f"{month:02d}", str(month)}, {f"{number:02d}", str(number)}
    found = {f"{year}{month:02d}{number:02d}"}
    for m in months:
        for d in days:
            found |= {f"{year} {m} {d}", f"{d} {m} {year}", f"{m} {d} {year}"}
    for d in (*days, f"{number}st", f"{number}nd", f"{number}rd", f"{number}th"):
        for name in _MONTHS[month - 1]:
            found |= {f"{d} {name} {year}", f"{name} {d} {year}", f"{year} {name} {d}", f"{d}{name}{year}"}
            found |= {f"{name}{d} {year}", f"{d} of {name} {year}", f"{d} de {name} {year}", f"{year}{name}{d}"}
    if birth:
        short = year[2:]
        found |= {f"{number:02d}{month:02d}{year}", f"{month:02d}{number:02d}{year}"}
        found |= {f"{number:02d} {month:02d} {short}", f"{month:02d} {number:02d} {short}"}
        found |= {f"{number} {name} {short}" for name in _MONTHS[month - 1]}
    return (form.encode() for form in found)
