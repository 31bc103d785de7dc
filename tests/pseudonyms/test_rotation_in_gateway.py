"""A rotation of the key: whoever was sent before stays who they are, whoever is new gets the new key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydicom
import pytest
from houses import house, late, study
from persons import merges, name_people, pseudonyms_in, sent

from gateway.app.keyring import rotate
from gateway.errors import EnvironmentFault
from gateway.settings import Home, load_settings

SENT = [("research-archive", "sent", "")]


def turn(home: Home) -> str:
    return rotate(home, load_settings(home.root), actor="J. Doe", reason="yearly rotation")


def person(ds: pydicom.Dataset) -> tuple[str, str, str]:
    return str(ds.PatientID), str(ds.StudyDate), str(ds.StudyInstanceUID)


def cleared(made: Any, key: str) -> list[dict[str, Any]]:
    return [line["mapping"] for line in made.events(key) if line["event"] == "cleared"]


def test_old_people_keep_pseudonym_date_shift_and_uids_and_new_ones_take_the_new_key(
    home: Home, policies: Path, target: Path
) -> None:
    first = study()
    with house(home, policies) as made:
        key = made.deliver(*first)
        (before,) = map(person, sent(target))
        new = turn(home)  # while the gateway runs
        made.deliver(late(first[0]))
        assert made.ends(key, 2) == SENT
        again = made.deliver(*study())
        other = made.deliver(*study(patient="LEAK0002"))
        assert [made.ends(one) for one in (again, other)] == [SENT, SENT]
        old = cleared(made, key)[0]["key"]
        assert [one["key"] for one in cleared(made, key)] == [old, old]
        assert (cleared(made, again)[0]["key"], cleared(made, other)[0]["key"]) == (old, new)
    people = [person(ds) for ds in sent(target)]
    assert people.count(before) == 2  # the first study and its late instance
    assert sorted(pseudonyms_in(target)).count(before[0]) == 3
    assert {day for name, day, _ in people if name == before[0]} == {before[1]}


def test_a_restart_and_a_second_rotation_change_nothing_of_that(home: Home, policies: Path, target: Path) -> None:
    for patient in ("LEAK0001", "LEAK0002", "LEAK0003"):
        with house(home, policies) as made:
            assert made.ends(made.deliver(*study(patient=patient))) == SENT
        turn(home)
    before = pseudonyms_in(target)
    assert len(set(before)) == 3
    with house(home, policies) as made:
        for patient in ("LEAK0003", "LEAK0001", "LEAK0002"):
            assert made.ends(made.deliver(*study(patient=patient))) == SENT
    assert pseudonyms_in(target) == sorted(before * 2)


def test_a_person_who_was_only_held_is_not_torn_apart_either(home: Home, policies: Path, target: Path) -> None:
    first = study()
    with house(home, policies) as made:
        made.receive(*first)
        made.close()
        made.run_once()  # intake
        turn(home)
        made.settle()
        made.deliver(*study())
    assert len(set(pseudonyms_in(target))) == 1


def test_a_merge_follows_the_key_of_the_surviving_id(home: Home, policies: Path, target: Path) -> None:
    name_people(policies, pseudonym="keyed", merge="merges.csv")
    merges(policies, LEAK0008="LEAK0009")
    with house(home, policies) as made:
        made.deliver(*study(patient="LEAK0002"))
        turn(home)
        merges(policies, LEAK0001="LEAK0002")
        made.deliver(*study(patient="LEAK0001"))
    assert len(pseudonyms_in(target)) == 2
    assert len(set(pseudonyms_in(target))) == 1


def test_a_gateway_whose_old_key_is_gone_does_not_start(home: Home, policies: Path) -> None:
    new = turn(home)
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study())) == SENT
    (home.keys / f"{new}.key").unlink()
    with pytest.raises(EnvironmentFault, match=new), house(home, policies):
        pass


def test_a_key_that_vanishes_while_the_gateway_runs_pauses_the_study_and_ends_none(
    home: Home, policies: Path, target: Path
) -> None:
    new = turn(home)
    path = home.keys / f"{new}.key"
    text = path.read_text()
    with house(home, policies) as made:
        key = made.receive(*study())
        made.close()
        made.run_once()
        path.unlink()
        (again,) = made.run_once()
        assert again.delay_s > 0
        assert made.ends(key) == [("research-archive", "queued", "")]
        path.write_text(text)
        path.chmod(0o600)
        made.settle()
        assert made.ends(key) == SENT
