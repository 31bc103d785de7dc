"""A crash before any write between lookup, vault and sending, then a restart: the same bytes, once, and one record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydicom
import pytest
from houses import House, house, late, to_folder
from persons import merges, name_people, people, with_vault
from planting import base
from pydicom.uid import generate_uid
from sqlalchemy import Connection, event, text

from gateway.database import Database
from gateway.ledger import Ledger
from gateway.settings import Home
from gateway.vault import store

KEY = hashlib.sha256(b"a key for tests").hexdigest()


class Crash(BaseException):
    """The process is gone: nothing catches it."""


@dataclass
class Tripwire:
    """Counts writes; the process ends before number `at`."""

    at: int = -1
    count: int = 0

    def touch(self) -> None:
        self.count += 1
        if self.count - 1 == self.at:
            raise Crash

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            self.touch()
            return function(*arguments, **more)

        return call

    @contextmanager
    def strung(self, patch: pytest.MonkeyPatch) -> Iterator[None]:
        transaction = Database.transaction

        @contextmanager
        def touched(database: Database) -> Iterator[Connection]:
            with transaction(database) as connection:
                once: list[str] = []

                def at_first_write(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
                    wanted = statement.lstrip()[:6].upper() in {"INSERT", "UPDATE", "DELETE"}
                    if (
                        wanted
                        and not once
                        and any(name in statement for name in ("people", "mapped", "issued", "jobs"))
                    ):
                        once.append(statement)
                        self.touch()

                event.listen(connection, "before_cursor_execute", at_first_write)
                yield connection

        with patch.context() as patched:
            patched.setattr(Database, "transaction", touched)
            patched.setattr(Ledger, "append", self.before(Ledger.append))
            patched.setattr(store, "writing", self.before(store.writing))
            yield


def the_study() -> list[pydicom.FileDataset]:
    """The same in every run: two instances under two IDs that a table merges."""
    ds = base()
    for word in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID", "SOPInstanceUID"):
        setattr(ds, word, generate_uid(entropy_srcs=["mapping", word]))
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    more = late(ds, PatientID="LEAK0002", SOPInstanceUID=generate_uid(entropy_srcs=["mapping", "more"]))
    more.file_meta.MediaStorageSOPInstanceUID = more.SOPInstanceUID
    return [ds, more]


def live(root: Path, wire: Tripwire, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A home, one study, and what is there at the end."""
    root.mkdir()
    home = Home(root / "home")
    home.create(generate_key=False)
    home.master_key.write_text(KEY)
    home.master_key.chmod(0o600)
    policies = to_folder(root / "policies", root / "archive")
    people(policies, LEAK0001="SUBJ-1", LEAK0002="SUBJ-2")
    merges(policies, LEAK0001="LEAK0002")
    name_people(policies, pseudonym="lookup", table="people.csv", merge="merges.csv")
    with_vault(policies)
    with house(home, policies) as made:
        key = made.receive(*the_study())
    with wire.strung(patch):
        try:
            settle(home, policies)
        except Crash:
            settle(home, policies)
    with house(home, policies) as made:
        tables = {}
        for name in ("people", "mapped", "issued"):
            with made.parts.database.transaction() as connection:
                tables[name] = connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
        return {
            "ends": made.ends(key),
            "tables": tables,
            "records": len(list(home.vault.rglob("*.rec"))),
            "sent": {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (root / "archive").rglob("*.dcm")},
            "parts": [path.name for path in root.rglob("*.part")],
            "events": sorted(line["event"] for line in made.events()),
        }


def settle(home: Home, policies: Path) -> None:
    made: House
    with house(home, policies) as made:
        made.settle()


def test_the_end_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calm = Tripwire()
    expected = live(tmp_path / "calm", calm, monkeypatch)
    assert expected["ends"] == [("research-archive", "sent", "")]
    assert expected["tables"] == {"people": 1, "mapped": 1, "issued": 1}
    assert (expected["records"], len(expected["sent"]), expected["parts"]) == (1, 2, [])
    assert calm.count > 8
    for number in range(calm.count):
        assert live(tmp_path / str(number), Tripwire(number), monkeypatch) == expected, f"write {number}"
