"""What has left binds; what has not may still change. On SQLite and on PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gateway.database import Database, Mapped
from gateway.database.mappings import CHANGED, KEYED, LOOKUP, MOVED, TAKEN

ONE = Mapped("w1", "p", "s1", "anna", "k1", LOOKUP, "t1")


def send(database: Database, work: Mapped, pseudonym: str) -> str:
    return database.map_work(work, pseudonym) or database.issue(work.work_key, pseudonym)


def test_the_first_key_of_a_person_stays(database: Database) -> None:
    assert database.key_of_person("p", "anna", "k1") == "k1"
    assert database.key_of_person("p", "anna", "k2") == "k1"
    assert database.key_of_person("q", "anna", "k2") == "k2"  # another project, another identity
    assert database.key_of_person("p", "berta", "k2") == "k2"
    assert database.people_by_key() == {"k1": 1, "k2": 2}


def test_whoever_comes_at_the_same_moment_gets_one_key(database: Database) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda n: database.key_of_person("p", "anna", f"k{n}"), range(8)))
    assert len(found) == 1


def test_a_mapping_may_change_until_something_has_left(database: Database) -> None:
    assert database.map_work(ONE, "P1") == ""
    assert database.map_work(replace(ONE, person_key="berta"), "P2") == ""
    assert database.mapped_as("w1") == replace(ONE, person_key="berta")
    assert database.mapped_as("w2") is None
    assert database.issue("w1", "P2") == ""
    assert database.map_work(ONE, "P1") == MOVED


def test_what_was_never_mapped_is_not_issued(database: Database) -> None:
    assert database.issue("w1", "P1") == MOVED


def test_a_pseudonym_is_never_given_to_a_second_person(database: Database) -> None:
    assert send(database, ONE, "P1") == ""
    assert send(database, ONE, "P1") == ""  # a replay
    other = Mapped("w2", "p", "s2", "berta", "k1", LOOKUP, "t2")
    assert database.map_work(other, "P1") == TAKEN
    assert database.map_work(replace(other, project="q"), "P1") == ""


def test_a_person_keeps_the_pseudonym_that_has_left(database: Database) -> None:
    assert send(database, ONE, "P1") == ""
    assert database.map_work(replace(ONE, work_key="w2", study_key="s2"), "P2") == CHANGED
    assert database.map_work(replace(ONE, work_key="w2", study_key="s2", source=KEYED)) == CHANGED
    assert send(database, replace(ONE, work_key="w2", study_key="s2"), "P1") == ""


def test_a_table_may_repeat_a_keyed_pseudonym_and_not_replace_it(database: Database) -> None:
    assert send(database, replace(ONE, source=KEYED), "P1") == ""
    assert database.map_work(replace(ONE, work_key="w2", study_key="s2"), "P2") == CHANGED
    assert database.map_work(replace(ONE, work_key="w2", study_key="s2"), "P1") == ""


def test_keyed_pseudonyms_of_two_prefixes_may_stand_beside_each_other(database: Database) -> None:
    keyed = replace(ONE, source=KEYED)
    assert send(database, keyed, "A-1") == ""
    assert send(database, replace(keyed, work_key="w2"), "B-1") == ""


def test_a_study_stays_with_its_person_and_key(database: Database) -> None:
    keyed = replace(ONE, source=KEYED)
    assert send(database, keyed, "P1") == ""
    assert database.map_work(replace(keyed, work_key="w2", person_key="berta")) == MOVED
    assert database.map_work(replace(keyed, work_key="w2", key_id="k2")) == MOVED
    assert database.map_work(replace(keyed, work_key="w2", study_key="s2", person_key="berta")) == ""


def test_what_changed_between_mapping_and_leaving_is_seen(database: Database) -> None:
    first, second = ONE, replace(ONE, work_key="w2", study_key="s2")
    assert database.map_work(first, "P1") == ""
    assert database.map_work(second, "P2") == ""  # nothing has left yet
    assert database.issue("w2", "P2") == ""
    assert database.issue("w1", "P1") == CHANGED


@pytest.mark.parametrize("people", [("anna", "berta")])
def test_of_two_that_want_one_pseudonym_at_once_one_gets_it(database: Database, people: tuple[str, str]) -> None:
    for number, person in enumerate(people):
        assert database.map_work(Mapped(f"w{number}", "p", f"s{number}", person, "k1", LOOKUP), "P1") == ""
    with ThreadPoolExecutor(2) as threads:
        ends = sorted(threads.map(lambda number: database.issue(f"w{number}", "P1"), range(2)))
    assert ends == ["", TAKEN]
