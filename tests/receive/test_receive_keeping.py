"""Objects that come together are kept together, and each sender learns what became of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from gateway.database import Database
from gateway.receive.keeping import Keeping, NotKept, Whole
from gateway.spool import Spool
from tests.peers import wait_until


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def database(tmp_path: Path):
    opened = Database.in_home(tmp_path / "database.sqlite")
    yield opened
    opened.close()


def whole(spool: Spool, number: int, study: str = "study") -> Whole:
    part = spool.new_part()
    part.write_bytes(b"%d" % number)
    return Whole(part, study, f"sop{number}", 1, 0)


class Gate:
    """Holds the first batch until it is opened, and notes the size of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.entered, self.sizes = threading.Event(), threading.Event(), []
        real = Database.record_instances

        def record(database, arrived):
            self.sizes.append(len(arrived))
            self.entered.set()
            assert self.open.wait(10)
            return real(database, arrived)

        monkeypatch.setattr(Database, "record_instances", record)


def together(keeping: Keeping, objects: list[Whole], gate: Gate) -> list[Exception | None]:
    """Keep the first, and while it is being kept let all others come."""

    def keep(one: Whole) -> Exception | None:
        try:
            keeping.keep(one)
        except (OSError, NotKept, OperationalError, IntegrityError, ZeroDivisionError) as error:
            return error
        return None

    with ThreadPoolExecutor(len(objects)) as pool:
        first = pool.submit(keep, objects[0])
        assert gate.entered.wait(10)
        rest = [pool.submit(keep, one) for one in objects[1:]]
        wait_until(lambda: len(keeping._waiting) == len(rest), seconds=5, what="the others wait")
        gate.open.set()
        return [first.result(10), *(one.result(10) for one in rest)]


def rows(database: Database) -> set[str]:
    return {row.name for study in ("study", "other") for row in database.instances_of(study)}


def files(spool: Spool) -> set[str]:
    return {path.name for path in spool.root.rglob("*.dcm")}


def test_what_comes_while_one_is_kept_is_one_batch(spool, database, monkeypatch):
    gate = Gate(monkeypatch)
    objects = [whole(spool, n, "other" if n % 3 else "study") for n in range(9)]
    assert together(Keeping(spool, database), objects, gate) == [None] * 9
    assert gate.sizes == [1, 8]
    assert rows(database) == files(spool) == {one.name for one in objects}
    assert all(spool.path(one.study_key, one.name).read_bytes() == b"%d" % n for n, one in enumerate(objects))


def test_one_that_cannot_be_moved_does_not_hold_up_the_others(spool, database, monkeypatch):
    gate = Gate(monkeypatch)
    objects = [whole(spool, n) for n in range(4)]
    objects[2].part.unlink()
    results = together(Keeping(spool, database), objects, gate)
    assert [type(result) for result in results] == [type(None), type(None), FileNotFoundError, type(None)]
    assert rows(database) == files(spool) == {objects[n].name for n in (0, 1, 3)}


def test_one_row_that_is_refused_goes_alone(spool, database, monkeypatch):
    objects = [whole(spool, n) for n in range(4)]
    twin = objects[2].part.name.removesuffix(".part") + ".dcm"
    database.record_instance(study_key="study", name=twin, sop_key="x", size_bytes=1)
    gate = Gate(monkeypatch)
    results = together(Keeping(spool, database), objects, gate)
    assert [type(result) for result in results] == [type(None), type(None), IntegrityError, type(None)]
    assert gate.sizes == [1, 3, 1, 1, 1]
    assert {objects[n].name for n in (0, 1, 3)} <= rows(database)


def test_a_database_that_is_down_keeps_none_of_them(spool, database, monkeypatch):
    gate = Gate(monkeypatch)
    objects = [whole(spool, n) for n in range(4)]
    keeping = Keeping(spool, database)
    record = Database.record_instances

    def fails_later(self, arrived):
        if len(arrived) > 1:
            raise OperationalError("statement", {}, Exception("down"))
        return record(self, arrived)

    monkeypatch.setattr(Database, "record_instances", fails_later)
    results = together(keeping, objects, gate)
    assert [type(result) for result in results] == [type(None), *[OperationalError] * 3]
    assert rows(database) == files(spool) == {objects[0].name}


def test_when_the_one_that_keeps_fails_unforeseen_the_others_fail_and_the_next_are_kept(spool, database, monkeypatch):
    gate = Gate(monkeypatch)
    keeping = Keeping(spool, database)
    objects = [whole(spool, n) for n in range(4)]
    record = Database.record_instances

    def fails_later(self, arrived):
        if len(arrived) > 1:
            raise ZeroDivisionError
        return record(self, arrived)

    with monkeypatch.context() as broken:
        broken.setattr(Database, "record_instances", fails_later)
        results = together(keeping, objects, gate)
    assert results[0] is None
    assert sorted(type(result).__name__ for result in results[1:]) == ["NotKept", "NotKept", "ZeroDivisionError"]
    assert files(spool) == rows(database) == {objects[0].name}
    later = whole(spool, 9)
    keeping.keep(later)
    assert later.name in rows(database)


def test_many_at_once_lose_nothing(spool, database):
    keeping = Keeping(spool, database)
    objects = [whole(spool, n, "study" if n % 2 else "other") for n in range(200)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(keeping.keep, objects))
    assert rows(database) == files(spool) == {one.name for one in objects}
    assert len(database.instances_of("study", 1)) == len(database.instances_of("other", 1)) == 100
