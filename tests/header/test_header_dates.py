"""Dates move by whole days in the form they came in; what cannot be read is never passed (PS3.5 6.2, PS3.15 E.3.6)."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.header.dates import capped_age, shifted


@pytest.mark.parametrize(
    ("vr", "value", "days", "right"),
    [
        ("DA", b"20200131", 1, b"20200201"),
        ("DA", b"20200228", 1, b"20200229"),  # leap year
        ("DA", b"21000228", 1, b"21000301"),  # 2100 is none
        ("DA", b"20200101 ", -1, b"20191231"),
        ("DA", b"20200131\\20200201", 30, b"20200301\\20200302"),
        ("DA", b"20200101-20200131", 1, b"20200102-20200201"),  # range of a query
        ("DA", b"-20200131", 1, b"-20200201"),
        ("DA", b"2020.01.31", 1, b"2020.02.01"),  # ACR-NEMA form
        ("DA", b" ", 5, b""),
        ("DT", b"20201201093456.000000+1100", 31, b"20210101093456.000000+1100"),  # cases.md 42
        ("DT", b"20200131235959.123456+0100", 1, b"20200201235959.123456+0100"),  # cases.md 11
        ("DT", b"2020", 400, b"2021"),
        ("DT", b"202001", 30, b"202002"),
        ("DT", b"20200131-0500", 1, b"20200201-0500"),
        ("DT", b"2020013110", 1, b"2020020110"),
        ("DT", b"20200131-20200201", 1, b"20200201-20200202"),
        ("TM", b"235959.5", 400, b"235959.5"),
        ("TM", b"10", 400, b"10"),
        ("TM", b"10:15:30", 400, b"10:15:30"),
        ("TM", b"101500-111500", 1, b"101500-111500"),
        ("TM", b"235960", 1, b"235960"),  # leap second
    ],
)
def test_a_value_moves_and_keeps_its_form(vr: str, value: bytes, days: int, right: bytes) -> None:
    assert shifted(vr, value, days) == right


@pytest.mark.parametrize(
    ("vr", "value"),
    [
        ("DA", b"00000000"),  # cases.md 43
        ("DA", b"0000-00-00"),
        ("DA", b"20200230"),
        ("DA", b"20210229"),
        ("DA", b"202001"),
        ("DA", b"31 Jan 1950"),
        ("DA", b"20200131\\ZZSYNTH"),
        ("DA", b"\xd9\xa2\xd9\xa0\xd9\xa2\xd9\xa0"),
        ("DA", "２０２００１３１".encode()),
        ("DA", b"-"),
        ("DT", b"20201301"),
        ("DT", b"20200131 10:15"),
        ("DT", b"20200131101500.1234567"),
        ("DT", b"20200131101500+2500"),
        ("TM", b"240000"),
        ("TM", b"ZZSYNTH"),
        ("TM", b"101500\\LEAK"),
        ("TM", b"1015.5"),
    ],
)
def test_what_is_no_date_or_time_is_not_passed(vr: str, value: bytes) -> None:
    assert shifted(vr, value, 1) is None


def test_a_shift_beyond_the_calendar_counts_as_unreadable() -> None:
    assert shifted("DA", b"00010101", -1) is None
    assert shifted("DA", b"99991231", 1) is None
    assert shifted("DT", b"9999", 400) is None


@given(st.dates(date(1880, 1, 1), date(2200, 1, 1)), st.integers(-3660, 3660))
def test_dates_move_as_the_calendar_does(day: date, days: int) -> None:
    right = (day + timedelta(days=days)).strftime("%Y%m%d").encode()
    assert shifted("DA", day.strftime("%Y%m%d").encode(), days) == right
    assert shifted("DT", day.strftime("%Y%m%d101500.25+0100").encode(), days) == right + b"101500.25+0100"


@given(st.binary(max_size=40), st.sampled_from(["DA", "DT", "TM"]), st.integers(-3660, 3660))
def test_any_bytes_give_a_date_or_nothing(value: bytes, vr: str, days: int) -> None:
    out = shifted(vr, value, days)
    assert out is None or set(out) <= set(b"0123456789.:+-\\")


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (b"093Y", b"090Y"),  # cases.md 40
        (b"090Y", b"090Y"),
        (b"089Y", b"089Y"),
        (b"999M", b"999M"),
        (b"", b""),
        (b"93", None),
        (b"LEAK", None),
    ],
)
def test_ages_over_89_are_one_category(value: bytes, right: bytes | None) -> None:
    assert capped_age(value) == right
