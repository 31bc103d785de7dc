"""Hours of the week: what is written, when they hold, and when the next ones begin."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.document import Faulty
from gateway.policy.hours import Hours, hours_of


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("hours", "when", "is_open"),
    [  # 2026-11-30 is a Monday
        ("20:00-06:00", "2026-11-30T19:59:59", False),
        ("20:00-06:00", "2026-11-30T20:00:00", True),
        ("20:00-06:00", "2026-12-01T05:59:59", True),
        ("20:00-06:00", "2026-12-01T06:00:00", False),
        ("08:00-12:00", "2026-11-30T08:00:00", True),
        ("08:00-12:00", "2026-11-30T12:00:00", False),
        ("00:00-24:00", "2026-11-30T23:59:59", True),
        ("Sat-Sun 00:00-24:00", "2026-11-30T10:00:00", False),
        ("Sat-Sun 00:00-24:00", "2026-11-29T10:00:00", True),
        ("Mon-Fri 20:00-06:00", "2026-11-28T05:00:00", True),  # Saturday: of Friday's night
        ("Mon-Fri 20:00-06:00", "2026-11-28T21:00:00", False),
        ("Mon-Fri 20:00-06:00", "2026-11-30T05:00:00", False),  # Monday: of Sunday's night, which is none
        ("Fri-Mon 12:00-13:00", "2026-11-29T12:30:00", True),
        ("Fri-Mon 12:00-13:00", "2026-12-01T12:30:00", False),
        ("Sun 22:00-02:00", "2026-11-30T01:00:00", True),
        (["Mon 10:00-11:00", "Mon 13:00-14:00"], "2026-11-30T13:30:00", True),
        (["Mon 10:00-11:00", "Mon 13:00-14:00"], "2026-11-30T12:00:00", False),
    ],
)
def test_a_span_holds_on_its_days(hours: object, when: str, is_open: bool) -> None:
    assert hours_of({"hours": hours}).open_at(at(when)) is is_open


def test_hours_are_those_of_the_clock_on_the_wall_there() -> None:
    hours = hours_of({"hours": "20:00-06:00", "zone": "Europe/Berlin"})
    assert hours.open_at(at("2026-11-30T19:00:00"))  # 20:00 in winter
    assert not hours.open_at(at("2026-07-01T17:59:00"))
    assert hours.open_at(at("2026-07-01T18:00:00"))  # 20:00 in summer
    assert hours.open_at(at("2026-10-25T02:30:00", "Europe/Berlin"))  # the hour that comes twice


def test_no_hours_are_always() -> None:
    assert hours_of({}) == Hours()
    assert Hours().open_at(0.0)
    assert Hours().opens_at(12.5) == 12.5


@pytest.mark.parametrize(
    ("hours", "now", "opens"),
    [
        ("20:00-06:00", "2026-11-30T12:00:30", "2026-11-30T20:00:00"),
        ("20:00-06:00", "2026-11-30T21:00:30", "2026-11-30T21:00:30"),
        ("Sat 08:00-09:00", "2026-11-28T09:00:00", "2026-12-05T08:00:00"),
        ("Mon 00:00-01:00", "2026-11-30T01:00:01", "2026-12-07T00:00:00"),
    ],
)
def test_the_next_hours_are_known(hours: str, now: str, opens: str) -> None:
    assert hours_of({"hours": hours}).opens_at(at(now)) == at(opens)


def test_hours_that_the_clock_leaves_out_in_spring_are_those_of_the_next_week() -> None:
    hours = hours_of({"hours": "Sun 02:00-03:00", "zone": "Europe/Berlin"})  # on 2026-03-29 it goes from 2 to 3
    after_the_last = at("2026-03-22T03:00:00", "Europe/Berlin")
    assert hours.opens_at(after_the_last) == at("2026-04-05T02:00:00", "Europe/Berlin")


@given(begin=st.integers(0, 1439), length=st.integers(1, 1439), when=st.integers(1_700_000_000, 1_800_000_000))
def test_every_day_one_span_is_open_for_its_length(begin: int, length: int, when: int) -> None:
    end = (begin + length) % 1440
    text = f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"
    hours = hours_of({"hours": text})
    since_begin = (when // 60 - begin) % 1440
    assert hours.open_at(when) is (since_begin < length)
    assert hours.opens_at(when) == (when if since_begin < length else when - when % 60 + 60 * (1440 - since_begin))


@pytest.mark.parametrize(
    "entry",
    [
        {"hours": "20-06"},
        {"hours": "20:00-20:00"},
        {"hours": "24:00-01:00"},
        {"hours": "20:60-21:00"},
        {"hours": "20:00-25:00"},
        {"hours": "Moo 20:00-21:00"},
        {"hours": "mon 20:00-21:00"},
        {"hours": "Mon-Xyz 20:00-21:00"},
        {"hours": []},
        {"hours": 72000},
        {"hours": ["20:00-06:00", None]},
        {"hours": "20:00-06:00", "zone": "Europe/Nowhere"},
        {"hours": "20:00-06:00", "zone": "../../etc/passwd"},
        {"hours": "20:00-06:00", "zone": 1},
        {"zone": "Europe/Berlin"},
    ],
)
def test_what_is_none_is_a_fault(entry: dict[str, object]) -> None:
    with pytest.raises(Faulty):
        hours_of(entry)
