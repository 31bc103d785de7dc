"""The master key: where it comes from, when it is refused, and the keys of the gateway itself that hang on it.

These never change, also when the key of the pseudonyms is rotated (`ring`): queues, tables and the ledger know studies
and people by them.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import EnvironmentFault
from gateway.pseudonyms.derivation import canonical, derive, key_weakness, person_key
from gateway.settings import Home, Settings


def master_key(home: Home, settings: Settings) -> bytes:
    """The master key from the environment, DEID_KEY_FILE or the home. Raises EnvironmentFault when absent or weak."""
    if settings.key is not None:
        return key_of_text(settings.key.get_secret_value(), "DEID_KEY")
    path = settings.key_file or home.master_key
    return read_key(path, hint=f"run `deid-gateway init {home.root}`, or set DEID_KEY_FILE")


def read_key(path: Path, *, hint: str, kind: str = "master") -> bytes:
    """The key in a file. Raises EnvironmentFault when there is none (with `hint`), it is open to others, or weak."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentFault(f"no {kind} key: {path} cannot be read; {hint}") from error
    # Kubernetes mounts secrets 0440 to the pod's group; group read is allowed only when others have nothing.
    if mode & 0o037:
        raise EnvironmentFault(f"the {kind} key {path} is open to others (mode {mode:04o}); run chmod 600 on it")
    return key_of_text(text, str(path), kind)


def key_of_text(text: str, source: str, kind: str = "master") -> bytes:
    """A key in hex. Raises EnvironmentFault that does not show it."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        raise EnvironmentFault(
            f"the {kind} key in {source} is not hex; generate one with `openssl rand -hex 32`"
        ) from None
    weakness = key_weakness(key)
    if weakness:
        raise EnvironmentFault(f"the {kind} key in {source} is too weak: {weakness}; use `openssl rand -hex 32`")
    return key


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by purpose, all derived from the master key. Study keys are opaque names of studies in queues and logs."""

    master: bytes = field(repr=False)

    @property
    def seal(self) -> bytes:
        return derive(self.master, "clearance")

    @property
    def ledger(self) -> bytes:
        return derive(self.master, "ledger")

    @property
    def cohort(self) -> bytes:
        """For `in_cohort` lists: keyed hashes of Patient IDs."""
        return derive(self.master, "cohort")

    @property
    def people(self) -> bytes:
        """For the names under which our tables know people."""
        return derive(self.master, "people")

    def person(self, patient_id: str) -> str:
        """The name of a Patient ID in our tables: 24 hex characters."""
        return person_key(self.people, patient_id)

    def issuer(self, name: str) -> str:
        """The name of an Issuer of Patient ID in our tables: 24 hex characters, "" for none."""
        named = canonical(name)
        return self.opaque("issuer", named) if named else ""

    def opaque(self, purpose: str, *parts: str) -> str:
        """24 hex characters that name something without saying what."""
        return derive(self.master, "opaque", purpose, *parts).hex()[:24]
