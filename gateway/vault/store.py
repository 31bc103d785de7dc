"""The vault's folder: one record for each study that left, below its person, under names that tell nobody anything.

    HOME/vault/<project>/<person>/<study>.<work>.rec        0600, in folders 0700

Person and study are keyed hashes of the pseudonym and of the new Study Instance UID, so that a record is found from
what left, and nobody can go through the folder with a list of Patient IDs. `work` is the job: each writes a file of its
own, whole or not at all, so that processes do not meet. Ledger lines are the caller's.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.durable import PART, make_folder, sync_folder, writing
from gateway.errors import EnvironmentFault
from gateway.pseudonyms import derive
from gateway.vault.identity import HEAD_BYTES, Identity, Sealed, read_head, seal, unseal

SUFFIX = ".rec"


@dataclass(frozen=True, slots=True)
class Opened:
    """A record in clear: only for whoever asked, never logged or stored."""

    name: str
    identity: Identity
    roles: tuple[str, ...]
    head: Sealed


class Vault:
    """Records under one key. Safe to share between threads and processes."""

    def __init__(self, root: Path, key: bytes) -> None:
        self.root = root
        self._key = key
        self._names = derive(key, "names")

    def keep(self, identity: Identity, roles: Sequence[str], *, work: str, now: float, days: int) -> str:
        """Write a record and sync it; its name. The same piece of work writes the same record again."""
        study = self._study(identity.project, identity.new_study_instance_uid)
        folder = self._person(identity.project, identity.pseudonym)
        for level in (self.root, folder.parent):  # each 0700 and on disk
            make_folder(level)
        path = make_folder(folder) / f"{study}.{work}{SUFFIX}"
        name = self._name(path)
        record = seal(identity, roles, key=self._key, name=name, now=now, days=days)
        with writing(path) as file:
            file.write(record)
        return name

    def find(self, issued: str, project: str = "") -> list[str]:
        """Names of the records of a pseudonym or a new Study Instance UID, in one project or in all."""
        found: list[str] = []
        for folder in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if folder.is_dir() and project in ("", folder.name):
                study = self._study(folder.name, issued)
                records = [
                    *self._person(folder.name, issued).glob(f"*{SUFFIX}"),
                    *folder.glob(f"*/{study}.*{SUFFIX}"),
                ]
                found += sorted(map(self._name, records))
        return found

    def open(self, name: str) -> Opened:
        """One record in clear. Raises EnvironmentFault naming it when it cannot be opened."""
        data = self._data(name)
        identity, roles = unseal(data, key=self._key, name=name)
        return Opened(name, identity, roles, read_head(data, name))

    def records(self) -> Iterator[tuple[str, Sealed]]:
        """Every record, with what it tells without its key. Raises EnvironmentFault for a damaged one."""
        for path in sorted(self.root.glob(f"*/*/*{SUFFIX}")):
            name = self._name(path)
            yield name, read_head(self._data(name, HEAD_BYTES), name)

    def expired(self, now: float) -> list[str]:
        """Names of the records that are past their time."""
        return [name for name, sealed in self.records() if sealed.until <= now]

    def remove(self, names: Sequence[str]) -> None:
        """Remove records, and folders that hold nothing else. One that is gone already is no fault."""
        for name in names:
            (self.root / name).unlink(missing_ok=True)
        for folder in {(self.root / name).parent for name in names}:
            if folder.is_dir():
                sync_folder(folder)
                if all(path.name.endswith(PART) for path in folder.iterdir()):  # a crash left it half written
                    shutil.rmtree(folder)
                    sync_folder(folder.parent)

    def _data(self, name: str, most: int = -1) -> bytes:
        try:
            with open(self.root / name, "rb") as file:
                return file.read(most)
        except FileNotFoundError:
            raise EnvironmentFault(f"the vault record {name} is gone; run the same command again") from None

    def _person(self, project: str, pseudonym: str) -> Path:
        return self.root / project / derive(self._names, "person", project, pseudonym).hex()[:24]

    def _study(self, project: str, uid: str) -> str:
        return derive(self._names, "study", project, uid).hex()[:24]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()
