"""A study is one person's: what a table or a merge says of that person, and that nobody else ever gets it."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Hold
from gateway.policy.people_files import clean_id
from gateway.pseudonyms import Keys, Own, Pseudonyms, canonical, person_key

MASTER = bytes(range(32))
KEYS = Keys(MASTER)
PLAIN = Pseudonyms.of_project(MASTER, "lung-2026")
ids = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=64).filter(canonical)


def of_person(*known: str, **more: object) -> Pseudonyms:
    own = Own(KEYS.people, frozenset(map(KEYS.person, known)), **more)  # type: ignore[arg-type]
    return Pseudonyms.of_project(MASTER, "lung-2026", own)


def test_the_name_of_a_person_in_tables_equals_one_computed_with_openssl() -> None:
    # printf '\0\0\0\6people' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f, and so on.
    assert KEYS.people.hex() == "679e9dca54850be6d37c4313d772636a01d482f0d9a9ab4bd72018e8aee12a53"
    assert KEYS.person("4711") == "1664d221a2e51468d1894fa3"


@given(ids)
def test_padding_and_composition_do_not_make_another_person(patient: str) -> None:
    assert person_key(KEYS.people, f" {patient}\0") == person_key(KEYS.people, patient)
    assert person_key(KEYS.people, "Mu\u0308ller" + patient) == person_key(KEYS.people, "M\u00fcller" + patient)
    assert clean_id(patient) == canonical(patient)  # what a table says is compared with what an object says


@given(ids, ids)
def test_an_object_of_somebody_else_is_held_and_never_mapped(mine: str, other: str) -> None:
    mapping = of_person(mine)
    mapping.require_own(mine)
    if canonical(other) != canonical(mine):
        with pytest.raises(Hold, match="mixed_patients") as held:
            mapping.require_own(other)
        assert held.value.at == "00100020"


@given(ids)
def test_a_study_without_table_or_merge_is_mapped_as_ever(patient: str) -> None:
    mapping = of_person(patient)
    assert mapping.patient_id(patient, prefix="X-") == PLAIN.patient_id(patient, prefix="X-")
    assert mapping.shift_days(patient, -365, 365) == PLAIN.shift_days(patient, -365, 365)
    assert mapping.uid("1.2.3.4") == PLAIN.uid("1.2.3.4")


@given(ids, ids)
def test_a_listed_person_gets_what_the_table_says_and_others_nothing(mine: str, other: str) -> None:
    mapping = of_person(mine, pseudonym="SUBJ-1", listed=True)
    assert mapping.patient_id(mine) == "SUBJ-1"
    if canonical(other) != canonical(mine):
        assert mapping.patient_id(other, prefix="X-") == ""


def test_merged_ids_have_pseudonym_and_date_shift_of_the_surviving_one() -> None:
    surviving = PLAIN.patient_id("NEW", prefix="X-")
    mapping = of_person("OLD", "NEW", pseudonym=surviving, shift=PLAIN.shift_bits("NEW"))
    for patient in ("OLD", "NEW"):
        assert mapping.patient_id(patient, prefix="X-") == surviving
        assert mapping.shift_days(patient, -365, 365) == PLAIN.shift_days("NEW", -365, 365)
    assert mapping.patient_id("THIRD", prefix="X-") == PLAIN.patient_id("THIRD", prefix="X-")
    assert mapping.shift_days("THIRD", -365, 365) == PLAIN.shift_days("THIRD", -365, 365)


@given(st.lists(ids, min_size=2, max_size=30, unique_by=canonical))
def test_pseudonyms_are_a_bijection(patients: list[str]) -> None:
    assert len({PLAIN.patient_id(patient) for patient in patients}) == len(patients)
    assert len({KEYS.person(patient) for patient in patients}) == len(patients)


def test_neither_keys_nor_what_is_made_from_them_are_shown() -> None:
    mapping = of_person("4711", pseudonym="SUBJ-1", shift=b"0123456789abcdef")
    shown = repr(mapping) + repr(KEYS) + str(PLAIN)
    for secret in (MASTER, PLAIN.key, KEYS.people, b"0123456789abcdef"):
        assert repr(secret) not in shown
        assert secret.hex() not in shown


def test_a_mapping_reaches_a_worker_as_it_is() -> None:
    mapping = of_person("4711", pseudonym="SUBJ-1", listed=True)
    assert pickle.loads(pickle.dumps(mapping)) == mapping
