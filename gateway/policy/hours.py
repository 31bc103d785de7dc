"""When something may happen: spans of the week in a time zone, such as off-peak hours.

    hours: ["Mon-Fri 20:00-06:00", "Sat-Sun 00:00-24:00"]
    zone: Europe/Berlin

A span that ends before it begins goes on into the next day, and belongs to the day on which it begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.policy.document import Faulty

KEYS = ("hours", "zone")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
FORM = 'write "20:00-06:00" or "Sat-Sun 00:00-24:00"; several in a list'
_SPAN = re.compile(r"(?:([A-Z][a-z]{2})(?:-([A-Z][a-z]{2}))? +)?([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})")
_DAY_MIN = 24 * 60


@dataclass(frozen=True, slots=True)
class Span:
    """Minutes of the day, from `begin` (included) to `end` (not included), on `days` (Monday is 0)."""

    days: frozenset[int]
    begin_min: int
    end_min: int

    def holds(self, day: int, minute: int) -> bool:
        if self.begin_min < self.end_min:
            return day in self.days and self.begin_min <= minute < self.end_min
        return (day in self.days and minute >= self.begin_min) or ((day - 1) % 7 in self.days and minute < self.end_min)


@dataclass(frozen=True, slots=True)
class Hours:
    """Without spans: always."""

    spans: tuple[Span, ...] = ()
    zone: str = "UTC"

    def open_at(self, at: float) -> bool:
        """Whether it is one of these hours at `at`, in UTC seconds."""
        if not self.spans:
            return True
        there = datetime.fromtimestamp(at, _zone(self.zone))
        return any(span.holds(there.weekday(), there.hour * 60 + there.minute) for span in self.spans)

    def opens_at(self, at: float) -> float:
        """When the next of these hours begins, in UTC seconds; `at` when it is one of them. Those of one day may fall
        into the hour that a clock leaves out in spring, and then are a week late.
        """
        if self.open_at(at):
            return at
        minute = at - at % 60
        ahead = (minute + 60.0 * number for number in range(1, 15 * _DAY_MIN + 1))
        return next(one for one in ahead if self.open_at(one))


def hours_of(entry: Mapping[str, Any]) -> Hours:
    """What `hours` and `zone` of an entry say. Raises Faulty."""
    zone = entry.get("zone", "UTC")
    try:
        _zone(zone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise Faulty("zone is no time zone that is known here", "write one such as Europe/Berlin") from None
    if "hours" not in entry:
        if "zone" in entry:
            raise Faulty("zone without hours", FORM)
        return Hours()
    given = entry["hours"]
    spans = given if isinstance(given, list) else [given]
    if not spans:
        raise Faulty("hours is empty, so never", FORM)
    return Hours(tuple(_span(text) for text in spans), zone)


def _span(text: object) -> Span:
    form = _SPAN.fullmatch(text) if isinstance(text, str) else None
    if form is None or not {form[1] or "Mon", form[2] or "Mon"} <= set(DAYS):
        raise Faulty("hours are spans of a day", FORM)
    begin, end = int(form[3]) * 60 + int(form[4]), int(form[5]) * 60 + int(form[6])
    if int(form[4]) > 59 or int(form[6]) > 59 or begin >= _DAY_MIN or end > _DAY_MIN or begin == end:
        raise Faulty("a span begins and ends at two times of the day, 00:00 to 24:00", FORM)
    if form[1] is None:
        return Span(frozenset(range(7)), begin, end)
    first, last = DAYS.index(form[1]), DAYS.index(form[2] or form[1])
    return Span(frozenset((first + number) % 7 for number in range((last - first) % 7 + 1)), begin, end)


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
