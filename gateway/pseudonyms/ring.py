"""The ring: the keys that pseudonyms are made with, the active one and those that are kept for the people they mapped.

    HOME/keys/master.key        the first key of the ring (or DEID_KEY, DEID_KEY_FILE)
    HOME/keys/<key id>.key      a later one, hex, mode 0600
    HOME/keys/ring.json         their ids in the order they became active, sealed by the master key

A rotation changes what new people get, and nothing else: which key a person of a project was first mapped with is
in our tables, and stays. Ids name keys in tables, ledger and messages; a key itself never leaves this folder. This
module reads; who rotates writes (`app.keyring`).
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gateway.errors import EnvironmentFault
from gateway.pseudonyms.derivation import derive, key_id
from gateway.pseudonyms.keys import key_of_text, read_key

RING = "ring.json"
RESTORE = "restore HOME/keys from its backup"


@dataclass(frozen=True, slots=True)
class RingKey:
    """One key of the ring. `since` is UTC, "" for the first one; `fault` says why it cannot be used."""

    id: str
    since: str
    active: bool
    fault: str = ""


class KeyRing:
    """The keys of a home. Safe to share between threads and processes; a rotation by another one is seen at once."""

    def __init__(self, folder: Path, master: bytes) -> None:
        self.folder = folder
        self._master = master
        self._first = key_id(master)

    @property
    def active(self) -> str:
        """The id of the key that new people are mapped with. Raises EnvironmentFault when the ring is not ours."""
        return self._read()[-1][0]

    def project_key(self, identity: str, project: str) -> bytes:
        """The key of a project under a key of the ring. Raises EnvironmentFault when that key is gone."""
        return derive(self._key(identity), "project", project)

    def with_new_key(self, text: str) -> tuple[str, Path, bytes]:
        """What a rotation to the key in `text` (hex) writes after the key's own file: its id, the path of that file,
        and the new contents of the ring file. Raises EnvironmentFault when the present ring is damaged.
        """
        new = key_id(key_of_text(text, "memory", "pseudonym"))
        entries = [*self._read(), (new, datetime.now(UTC).isoformat(timespec="seconds"))]
        body = {"keys": entries, "mac": self._mac(entries)}
        return new, self._path(new), json.dumps(body, indent=1).encode() + b"\n"

    def listed(self) -> list[RingKey]:
        """Every key in the order they became active. Raises EnvironmentFault when the ring itself is damaged."""
        entries = self._read()
        return [RingKey(name, since, name == entries[-1][0], self._fault(name)) for name, since in entries]

    def _fault(self, identity: str) -> str:
        try:
            self._key(identity)
        except EnvironmentFault as error:
            return str(error)
        return ""

    def _key(self, identity: str) -> bytes:
        if identity == self._first:
            return self._master
        if identity not in {name for name, _ in self._read()}:
            raise EnvironmentFault(f"the key {identity} is not in {self.folder / RING}; {RESTORE}")
        key = read_key(self._path(identity), hint=RESTORE, kind="pseudonym")
        if key_id(key) != identity:
            raise EnvironmentFault(f"the file {self._path(identity)} holds another key than its name says; {RESTORE}")
        return key

    def _path(self, identity: str) -> Path:
        return self.folder / f"{identity}.key"

    def _read(self) -> list[tuple[str, str]]:
        """(id, since), oldest first. Without a ring file the master key stands alone."""
        path = self.folder / RING
        try:
            body = json.loads(path.read_bytes())
            entries = [(str(name), str(since)) for name, since in body["keys"]]
            sealed = hmac.compare_digest(str(body["mac"]), self._mac(entries))
        except FileNotFoundError:
            return [(self._first, "")]
        except (ValueError, KeyError, TypeError):
            raise EnvironmentFault(f"{path} is damaged; {RESTORE}") from None
        if not entries or entries[0][0] != self._first or not sealed:
            raise EnvironmentFault(f"{path} was changed, or belongs to another master key; {RESTORE}")
        return entries

    def _mac(self, entries: list[tuple[str, str]]) -> str:
        return derive(self._master, "ring", *(part for entry in entries for part in entry)).hex()
