"""The ring of keys: names that cannot be borrowed, rotations that take nothing away, damage that is seen."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.app import keyring
from gateway.app.keyring import faults, key_states, require_keys, ring_of, rotate
from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.ledger import Ledger
from gateway.pseudonyms import KeyRing, Keys, Pseudonyms, key_id, master_key
from gateway.settings import Home, Settings

MASTER = bytes(range(32))
Build = Callable[..., Settings]


def turn(home: Home, settings: Settings) -> str:
    return rotate(home, settings, actor="J. Doe", reason="yearly rotation")


@pytest.fixture
def ring(home: Home, keys: Keys) -> KeyRing:
    return ring_of(home, keys)


def test_the_name_of_a_key_equals_one_computed_with_openssl() -> None:
    # printf '\0\0\0\6key-id' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f, its first 12 digits.
    assert key_id(MASTER) == "0b0b578fa21e"


def test_without_a_rotation_the_master_key_makes_the_pseudonyms_as_ever(ring: KeyRing, keys: Keys) -> None:
    assert ring.active == key_id(keys.master)
    assert ring.project_key(ring.active, "p") == Pseudonyms.of_project(keys.master, "p").key
    (only,) = ring.listed()
    assert (only.active, only.since, only.fault) == (True, "", "")


def test_a_rotation_is_for_new_people_and_keeps_every_older_key(home: Home, settings: Build, ring: KeyRing) -> None:
    first = ring.active
    before = ring.project_key(first, "p")
    second, third = turn(home, settings()), turn(home, settings())
    assert ring.active == third
    assert [(key.id, key.active) for key in ring.listed()] == [(first, False), (second, False), (third, True)]
    assert ring.project_key(first, "p") == before
    assert len({ring.project_key(name, "p") for name in (first, second, third)}) == 3
    assert len({ring.project_key(third, project) for project in "pqr"}) == 3


def test_a_rotation_touches_no_other_key_of_the_gateway(home: Home, settings: Build, keys: Keys) -> None:
    turn(home, settings())
    again = Keys(master_key(home, settings()))
    assert (again.seal, again.ledger, again.people, again.opaque("study", "1.2")) == (
        keys.seal,
        keys.ledger,
        keys.people,
        keys.opaque("study", "1.2"),
    )


def test_the_ledger_has_the_rotation_with_names_and_never_a_key(home: Home, settings: Build, keys: Keys) -> None:
    old, new = key_id(keys.master), turn(home, settings())
    ledger = Ledger(home.ledger, keys.ledger)
    assert ledger.verify().sound
    (line,) = ledger.lines()
    assert (line["event"], line["key"], line["before"], line["actor"]) == ("key_rotated", new, old, "J. Doe")
    secret = (home.keys / f"{new}.key").read_text().strip()
    for path in home.root.rglob("*"):
        if path.is_file() and path.suffix != ".key":
            assert secret.encode() not in path.read_bytes()


def test_a_rotated_key_lies_closed_to_others(home: Home, settings: Build) -> None:
    new = turn(home, settings())
    for path in (home.keys / f"{new}.key", home.keys / "ring.json"):
        assert path.stat().st_mode & 0o777 == 0o600


class Crash(BaseException):
    pass


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_crash_between_the_writes_of_a_rotation_leaves_the_ring_as_it_was(
    home: Home, settings: Build, ring: KeyRing, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    turn(home, settings())
    before = ring.listed()
    writes = iter(range(3))

    def touch(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **more: object) -> object:
            if next(writes) == at:
                raise Crash
            return function(*arguments, **more)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(keyring, "writing", touch(keyring.writing))
        patched.setattr(Ledger, "append", touch(Ledger.append))
        with pytest.raises(Crash):
            turn(home, settings())
    assert ring.listed() == before
    turn(home, settings())
    assert [key.fault for key in ring.listed()] == ["", "", ""]


def spoil_ring(path: Path) -> None:
    body = json.loads(path.read_text())
    body["keys"].pop()
    path.write_text(json.dumps(body))


@pytest.mark.parametrize(
    "spoil", [lambda path: path.write_text("{}"), lambda path: path.write_bytes(b"\xff"), spoil_ring]
)
def test_a_ring_that_was_changed_is_refused(
    home: Home, settings: Build, ring: KeyRing, spoil: Callable[[Path], object]
) -> None:
    turn(home, settings())
    spoil(home.keys / "ring.json")
    with pytest.raises(EnvironmentFault, match="restore HOME/keys"):
        _ = ring.active


def test_a_ring_of_another_master_key_is_refused(home: Home, settings: Build) -> None:
    turn(home, settings())
    with pytest.raises(EnvironmentFault, match="another master key"):
        _ = KeyRing(home.keys, secrets.token_bytes(32)).active


def test_a_key_that_is_gone_open_weak_or_another_one_is_named_and_not_shown(
    home: Home, settings: Build, ring: KeyRing
) -> None:
    new = turn(home, settings())
    path = home.keys / f"{new}.key"
    text = path.read_text()
    for contents, mode, says in (
        (None, 0o600, "cannot be read"),
        (text, 0o644, "open to others"),
        ("00" * 32, 0o600, "too weak"),
        ("zz", 0o600, "not hex"),
        (secrets.token_hex(32), 0o600, "another key"),
    ):
        path.unlink(missing_ok=True)
        if contents is not None:
            path.write_text(contents)
            path.chmod(mode)
        with pytest.raises(EnvironmentFault, match=says) as refused:
            ring.project_key(new, "p")
        assert text.strip() not in str(refused.value)
        assert any(new in fault for fault in faults(home, settings()))
    path.write_text(text)
    path.chmod(0o600)
    assert faults(home, settings()) == []


def test_a_key_that_tables_name_and_the_ring_has_lost_stops_the_start(home: Home, settings: Build) -> None:
    new = turn(home, settings())
    database = Database.in_home(home.database)
    assert database.key_of_person("p", "somebody", new) == new
    ring = KeyRing(home.keys, master_key(home, settings()))
    require_keys(ring, database)
    (home.keys / "ring.json").unlink()
    with pytest.raises(EnvironmentFault, match=new):
        require_keys(ring, database)
    assert [state.people for state in key_states(home, settings())] == [0, 1]
    assert any(new in fault for fault in faults(home, settings()))
    database.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["rotate", "a", "b", "c", "d"]), min_size=1, max_size=12))
def test_a_person_keeps_the_key_of_the_first_time_through_every_rotation(
    tmp_path_factory: pytest.TempPathFactory, course: list[str]
) -> None:
    from gateway.settings import load_settings

    home = Home(tmp_path_factory.mktemp("ring") / "home")
    home.create()
    values = load_settings(home.root)
    ring = ring_of(home, Keys(master_key(home, values)))
    database = Database.in_home(home.database)
    first: dict[str, str] = {}
    for step in course:
        if step == "rotate":
            turn(home, values)
        else:
            first.setdefault(step, ring.active)
            assert database.key_of_person("p", step, ring.active) == first[step]
    pseudonyms = {Pseudonyms(ring.project_key(key, "p")).patient_id(patient) for patient, key in first.items()}
    assert len(pseudonyms) == len(first)
    database.close()
