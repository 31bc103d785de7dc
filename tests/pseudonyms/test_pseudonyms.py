"""Keyed pseudonyms: golden values from an independent computation, and what must hold for every input."""

from __future__ import annotations

import re
import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pseudonyms import Keys, Pseudonyms, derive, key_weakness

MASTER = bytes(range(32))
OTHER = bytes(range(1, 33))
PROJECT = Pseudonyms.of_project(MASTER, "lung-2026")

uids = st.from_regex(r"\A(0|[1-9][0-9]{0,9})(\.(0|[1-9][0-9]{0,9})){1,5}\Z").filter(
    lambda uid: not uid.startswith("1.2.840.10008.")
)
masters = st.binary(min_size=32, max_size=64).filter(lambda key: not key_weakness(key))


def test_values_equal_those_computed_with_openssl() -> None:
    # printf of length-prefixed parts | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f, and so on.
    assert PROJECT.key.hex() == "51cecd6502c6dbf35566dad1b1d77470a1de4ba19d09c7aa9a342bc9001dfe00"
    assert PROJECT.uid("1.2.3.4") == "2.25.59413564414251738199911176197723405031"
    assert PROJECT.patient_id("4711", prefix="BT-") == "BT-6S6GV9YQ2FF1XFS3"
    assert PROJECT.shift_days("4711", -365, 365) == -141
    assert Keys(MASTER).seal.hex() == "908660ace4aec893b7c700f958e1d462da70faf7b80f101d7490793dcf627c8c"
    assert Keys(MASTER).opaque("study", "1.2.3.4") == "24978be949f388b1eba219e8"


@given(masters, uids)
def test_a_uid_obeys_the_syntax_of_ps3_5_9_1_and_is_a_uuid_of_version_8(master: bytes, original: str) -> None:
    new = Pseudonyms.of_project(master, "p").uid(original)
    assert len(new) <= 64
    assert re.fullmatch(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))+", new)
    root, arc, number = new.split(".")
    assert (root, arc) == ("2", "25")  # PS3.5 B.2
    parsed = uuid.UUID(int=int(number))
    assert (parsed.version, parsed.variant) == (8, uuid.RFC_4122)


@given(st.from_regex(r"\A1\.2\.840\.10008(\.(0|[1-9][0-9]{0,4})){1,4}\Z"))
def test_uids_that_dicom_defines_stay(structural: str) -> None:
    assert PROJECT.uid(structural) == structural


def test_a_uid_that_only_looks_like_dicoms_is_replaced() -> None:
    assert PROJECT.uid("1.2.840.100080.1").startswith("2.25.")
    assert PROJECT.uid("1.2.840.10008").startswith("2.25.")


@pytest.mark.parametrize("empty", ["", " ", "\0", "\0\0 "])
def test_an_empty_uid_stays_empty(empty: str) -> None:
    assert PROJECT.uid(empty) == ""


@given(uids, st.sampled_from(["", "\0", " ", "  "]))
def test_padding_does_not_matter(uid: str, padding: str) -> None:
    assert PROJECT.uid(uid + padding) == PROJECT.uid(uid)
    assert PROJECT.patient_id(uid + padding) == PROJECT.patient_id(uid)
    assert PROJECT.shift_days(uid + padding, -9, 9) == PROJECT.shift_days(uid, -9, 9)


@given(st.lists(uids, min_size=2, max_size=20, unique=True))
def test_different_uids_get_different_ones(originals: list[str]) -> None:
    assert len({PROJECT.uid(uid) for uid in originals}) == len(originals)


@given(st.text(min_size=1, max_size=64).filter(lambda text: text.strip(" \0")))
def test_projects_and_keys_share_nothing(value: str) -> None:
    mappings = [
        PROJECT,
        Pseudonyms.of_project(MASTER, "lung-2027"),
        Pseudonyms.of_project(OTHER, "lung-2026"),
    ]
    assert len({mapping.patient_id(value) for mapping in mappings}) == 3
    assert len({mapping.uid("1.9" + str(len(value))) for mapping in mappings}) == 3


@given(st.text(max_size=64))
def test_a_patient_id_is_16_characters_nobody_confuses_and_fits_lo(original: str) -> None:
    new = PROJECT.patient_id(original, prefix="X-")
    assert re.fullmatch(r"X-[0-9A-HJKMNP-TV-Z]{16}", new)
    assert len(new) <= 64


@given(st.text(max_size=20), st.integers(-4000, 4000), st.integers(0, 4000))
def test_a_shift_lies_in_its_range_and_is_never_zero(patient: str, low: int, width: int) -> None:
    high = low + width
    if low == high == 0:
        return
    days = PROJECT.shift_days(patient, low, high)
    assert low <= days <= high
    assert days != 0


def test_shifts_are_uniform_over_the_whole_range() -> None:
    # 12 000 people over 12 days: 1000 each; chi-square with 11 degrees of freedom exceeds 31.3 once in 1000.
    counts = Counter(PROJECT.shift_days(f"patient {n}", -6, 6) for n in range(12_000))
    assert sorted(counts) == [-6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6]
    assert sum((seen - 1000) ** 2 / 1000 for seen in counts.values()) < 31.3


@pytest.mark.parametrize(("low", "high", "only"), [(-1, 0, -1), (0, 1, 1), (7, 7, 7), (-7, -7, -7)])
def test_a_range_with_one_day_left_gives_that_day(low: int, high: int, only: int) -> None:
    assert {PROJECT.shift_days(str(n), low, high) for n in range(50)} == {only}


@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 0), (365, -365)])
def test_a_range_without_a_day_is_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="date shift"):
        PROJECT.shift_days("4711", low, high)


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4), st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_purposes_never_run_into_each_other(one: list[str], other: list[str]) -> None:
    assert (derive(MASTER, *one) == derive(MASTER, *other)) == (one == other)


@given(st.text(max_size=64))
def test_an_opaque_key_is_24_hex_characters_and_says_nothing(value: str) -> None:
    key = Keys(MASTER).opaque("study", value)
    assert re.fullmatch(r"[0-9a-f]{24}", key)
    assert key != Keys(MASTER).opaque("sop", value)
    assert key != Keys(OTHER).opaque("study", value)


@pytest.mark.parametrize(
    ("master", "why"),
    [
        (b"", "0 bytes"),
        (bytes(range(31)), "31 bytes"),
        (b"\0" * 32, "few byte values"),
        (b"secret" * 6, "few byte values"),
        (bytes(range(16)) * 2, "pattern"),
        (bytes(range(32)) * 3, "pattern"),
    ],
)
def test_a_weak_key_is_refused_with_the_reason(master: bytes, why: str) -> None:
    assert why in key_weakness(master)


@given(st.binary(min_size=32, max_size=32).filter(lambda key: len(set(key)) >= 20))
def test_a_random_key_is_not_weak(master: bytes) -> None:
    assert key_weakness(master) == ""
