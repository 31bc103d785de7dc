"""DA, DT and TM values moved by whole days, in their own form (PS3.5 6.2, PS3.15 E.3.6).

Precision, fraction, zone, padding rules and the number of values stay; times of day stay, because the shift is in whole
days. What cannot be read as a date or time is never passed on: every function answers None, and the caller removes or
replaces the whole element. A year outside 0001-9999 after the shift counts as unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

_DA = re.compile(r"(\d{4})(\d\d)(\d\d)")
_DA_OLD = re.compile(r"(\d{4})\.(\d\d)\.(\d\d)")  # ACR-NEMA 300, still allowed for reading (PS3.5 6.2 note on DA)
_TIME = r"(?:[01]\d|2[0-3])(?:[0-5]\d(?:(?:[0-5]\d|60)(?:\.\d{1,6})?)?)?"
_TM = re.compile(_TIME)
_TM_OLD = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:\.\d{1,6})?)?")
_ZONE = r"(?:[+-](?:0\d|1[0-4])[0-5]\d)?"
_DT = re.compile(r"(\d{4})(?:(\d\d)(?:(\d\d)(" + _TIME + r")?)?)?(" + _ZONE + ")")
_AGE = re.compile(r"(\d{3})([DWMY])")

MAX_AGE_YEARS = 90  # 45 CFR 164.514(b)(2): ages over 89 form one category


def _moved(year: str, month: str, day: str, days: int) -> date | None:
    try:
        return date(int(year), int(month), int(day)) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None


def _stamp(moved: date, separator: str = "") -> str:
    return f"{moved.year:04d}{separator}{moved.month:02d}{separator}{moved.day:02d}"


def _shift_da(text: str, days: int) -> str | None:
    match = _DA.fullmatch(text)
    separator = ""
    if match is None:
        match, separator = _DA_OLD.fullmatch(text), "."
    if match is None:
        return None
    moved = _moved(match[1], match[2], match[3], days)
    return None if moved is None else _stamp(moved, separator)


def _shift_dt(text: str, days: int) -> str | None:
    """A date of year or month precision moves from its middle, and is written as precisely as it came."""
    match = _DT.fullmatch(text)
    if match is None:
        return None
    year, month, day, clock, zone = match[1], match[2], match[3], match[4] or "", match[5]
    moved = _moved(year, month or "07", day or ("15" if month else "01"), days)
    if moved is None:
        return None
    written = _stamp(moved)
    return written[: 8 if day else 6 if month else 4] + clock + zone


def _keep_tm(text: str, _days: int) -> str | None:
    return text if _TM.fullmatch(text) or _TM_OLD.fullmatch(text) else None


_ONE: dict[str, Callable[[str, int], str | None]] = {"DA": _shift_da, "DT": _shift_dt, "TM": _keep_tm}


def _shift_one(vr: str, text: str, days: int) -> str | None:
    """One value, or a range "A-B", "A-", "-B" of a query that ended up in an object (PS3.4 C.2.2.2.5)."""
    shift = _ONE[vr]
    bare = text.strip(" \0")
    if not bare:
        return ""
    whole = shift(bare, days)
    if whole is not None:
        return whole
    for at in (place for place, sign in enumerate(bare) if sign == "-"):
        ends = [shift(end, days) if end else "" for end in (bare[:at], bare[at + 1 :])]
        if None not in ends and any(ends):
            return f"{ends[0]}-{ends[1]}"
    return None


def shifted(vr: str, value: bytes, days: int) -> bytes | None:
    """A whole DA, DT or TM value field moved by `days`, unpadded; None when any of its values cannot be read.

    With `days` 0 this answers whether the field is made of dates or times at all.
    """
    try:
        text = value.decode("ascii")
    except UnicodeDecodeError:
        return None
    out = []
    for one in text.split("\\"):
        moved = _shift_one(vr, one, days)
        if moved is None:
            return None
        out.append(moved)
    return "\\".join(out).encode("ascii")


def capped_age(value: bytes) -> bytes | None:
    """An AS value field with ages over 89 years written as 090Y; None when it is no age."""
    text = value.decode("latin-1").strip(" \0")
    if not text:
        return value
    match = _AGE.fullmatch(text)
    if match is None:
        return None
    return f"{MAX_AGE_YEARS:03d}Y".encode() if match[2] == "Y" and int(match[1]) >= MAX_AGE_YEARS else text.encode()
