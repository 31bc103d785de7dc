"""Invariants of the gate: a distinctive plant is found anywhere; any bytes end in a judgement or in our errors."""

from __future__ import annotations

import copy
import random
import tempfile
from pathlib import Path

import pytest
from gate_cases import SYNTAXES, encode, findings, identified_ct, implicit_item, item, plain_scrub, private, verdict
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence as Items

from gateway.errors import StudyError
from gateway.gate.finder import Finder
from gateway.gate.folding import fold
from gateway.gate.vocabulary import common_words

BASE = identified_ct()
ORIGINAL, CLEAN = encode(BASE), encode(plain_scrub(BASE))

WORD = st.text("bcdfghjklmnpqrstvwxz", min_size=7, max_size=12).filter(lambda word: word.encode() not in common_words())
NUMBER = st.text("0123456789", min_size=4, max_size=9)
AROUND = st.text(" .,;:_-/()'\"!?", max_size=4)
CASES = st.sampled_from([str.upper, str.lower, str.title, str.swapcase])
ORDERS = st.sampled_from(
    ["{0}", "{1}", "{0}^{1}", "{1} {0}", "{0}, {1}", "{1}_{0}", "Dr. {1} {0} jun.", "{0}{1}", "{1}{0}"]
)


def in_text(tag: int, vr: str):
    return lambda ds, text: ds.add_new(tag, vr, text)


def in_depth(ds: Dataset, text: str) -> None:
    inner = item(0x0040A160, "UT", text)
    for _ in range(7):
        inner = item(0x0040A730, "SQ", Items([Dataset(), inner]))
    ds.update(inner)


def even(data: bytes) -> bytes:
    return data + b"\0" * (len(data) % 2)


HIDING_PLACES = [
    in_text(0x0008103E, "LO"),
    in_text(0x00204000, "LT"),
    in_text(0x00180024, "SH"),
    in_text(0x00081190, "UR"),
    in_depth,
    lambda ds, text: private(ds, 0x10, "OB", even(b"\x01\x02" + text.encode() + b"\xfe")),
    lambda ds, text: private(ds, 0x10, "UN", even(b"\x80" + text.encode("utf-16-le"))),
    lambda ds, text: private(ds, 0x10, "OW", even(text.encode("utf-16-be"))),
    lambda ds, text: private(ds, 0x10, "UN", implicit_item((0x0040, 0xA160), even(text.encode()))),
    lambda ds, text: ds.add_new(0xFFFCFFFC, "OB", even(text.encode())),
]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    family=WORD,
    given_name=WORD,
    order=ORDERS,
    case=CASES,
    before=AROUND,
    after=AROUND,
    hide=st.sampled_from(HIDING_PLACES),
    syntax=st.sampled_from(sorted(SYNTAXES.values())),
)
def test_a_distinctive_name_is_found_wherever_and_however_it_is_written(
    tmp_path, family, given_name, order, case, before, after, hide, syntax
):
    assume(not any(word in fold("Dr jun").decode() for word in (family, given_name)))
    original = copy.deepcopy(BASE)
    original.PatientName = f"{family}^{given_name}"
    candidate = plain_scrub(original)
    assert findings(tmp_path, encode(original), encode(candidate, syntax)) == {}
    hide(candidate, before + case(order.format(family, given_name)) + after)
    assert findings(tmp_path, encode(original), encode(candidate, syntax))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    letters=st.text("BCDFGHJKLMNPQRSTVWXZ", min_size=2, max_size=4), digits=NUMBER, hide=st.sampled_from(HIDING_PLACES)
)
@example(letters="LEAK", digits="0001", hide=HIDING_PLACES[0])
def test_a_patient_id_is_found_wherever_it_stands(tmp_path, letters, digits, hide):
    assume(len(set(digits)) > 2)
    original = copy.deepcopy(BASE)
    original.PatientID = letters + digits
    candidate = plain_scrub(original)
    assert findings(tmp_path, encode(original), encode(candidate)) == {}
    hide(candidate, f"no. {letters.lower()}{digits} ")
    assert findings(tmp_path, encode(original), encode(candidate))


def either_judged_or_ours(original: bytes, candidate: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            judgement = verdict(Path(folder), original, candidate)
        except StudyError:
            return
    assert (judgement.clearance is None) == bool(judgement.reason)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(), which=st.sampled_from(["original", "candidate"]), syntax=st.sampled_from(sorted(SYNTAXES.values()))
)
def test_flipped_cut_and_inserted_bytes_never_end_in_a_foreign_error(data, which, syntax):
    source = bytearray(encode(BASE if which == "original" else plain_scrub(BASE), syntax))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(0, len(source) - 1)))
        kind = data.draw(st.sampled_from(["set", "cut", "insert", "repeat"]))
        if kind == "set":
            source[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
        elif kind == "cut":
            del source[at : at + data.draw(st.integers(1, 300))]
        elif kind == "insert":
            source[at:at] = data.draw(st.binary(min_size=1, max_size=20))
        else:
            source[at:at] = source[at : at + 40] * data.draw(st.integers(1, 5))
    mutated = bytes(source)
    either_judged_or_ours(mutated if which == "original" else ORIGINAL, mutated if which == "candidate" else CLEAN)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_any_data_set_bytes_end_in_a_judgement_or_in_our_error(data):
    head = CLEAN[:330]
    either_judged_or_ours(ORIGINAL, head + data)
    either_judged_or_ours(head + data, CLEAN)


@pytest.mark.parametrize("kind", ["defined", "undefined", "unknown", "hostile"])
def test_deep_and_crafted_nesting_is_held_in_bounded_time(kind):
    value = b""
    for _ in range(3000 if kind != "hostile" else 90):
        if kind == "undefined":
            break
        inner = implicit_item((0x0040, 0xA730), value) if kind != "unknown" else implicit_item((0x0029, 0x1010), value)
        value = inner + (b"\xff\xff" if kind == "hostile" else b"")
        if len(value) > 1 << 20:
            break
    if kind == "undefined":
        value = (b"\x40\x00\x30\xa7SQ\0\0\xff\xff\xff\xff\xfe\xff\x00\xe0\xff\xff\xff\xff") * 5000
        either_judged_or_ours(ORIGINAL, CLEAN + value)
        return
    ds = plain_scrub(BASE)
    private(ds, 0x10, "UN", even(value))
    either_judged_or_ours(ORIGINAL, encode(ds))
    either_judged_or_ours(encode(ds), CLEAN)


@settings(max_examples=200)
@given(st.lists(st.binary(min_size=1, max_size=9), max_size=12), st.binary(max_size=200))
def test_the_finder_finds_what_a_plain_search_finds(patterns, text):
    expected = {(at, p) for p in set(patterns) for at in range(len(text)) if text.startswith(p, at)}
    assert set(Finder(patterns).find(text)) == expected


def test_the_finder_bears_many_and_nested_patterns():
    rng = random.Random(7)
    uids = [b"1 2 840 113619 2 55 3 %d %d" % (rng.randrange(10**9), i) for i in range(20_000)]
    prefixes = [b"a" * n for n in range(1, 3000)]
    finder = Finder([*uids, *prefixes])
    assert {p for _, p in finder.find(b"x " + uids[77] + b" aa ")} >= {uids[77], b"a", b"aa"}


@given(st.text(max_size=40))
def test_folding_is_stable_and_ignores_case(text):
    once = fold(text)
    assert fold(once.decode()) == once
    assert fold(text.upper()) == fold(text.upper().lower())
