"""The vault at work: kept when a study is cleared, opened by a role, erased, past its time. Each with its ledger line.

A record is written after the gate said yes and before anything leaves: what never leaves leads nobody back, and what
left always does. Values stay inside the worker that reads and seals them, and in the answer to whoever opens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pydicom
from pydicom.tag import Tag

from gateway.app.intake import text_of
from gateway.app.workers import Workers
from gateway.errors import EnvironmentFault, Hold, UsageError
from gateway.gate import Pair
from gateway.ledger import Ledger
from gateway.policy.vault_section import VaultPolicy
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings
from gateway.vault import Identity, Opened, Vault, vault_key

_PATIENT_ID, _ISSUER = Tag(0x0010, 0x0020), Tag(0x0010, 0x0021)
_STUDY, _ACCESSION, _CHARACTER_SET = Tag(0x0020, 0x000D), Tag(0x0008, 0x0050), Tag(0x0008, 0x0005)
_READ = [_PATIENT_ID, _ISSUER, _STUDY, _ACCESSION, _CHARACTER_SET]


@dataclass(frozen=True, slots=True)
class Counts:
    """What the vault holds of one project: numbers only."""

    project: str
    people: int
    records: int
    expired: int


def keep_identity(
    home: Home, workers: Workers, pairs: Sequence[Pair], policy: VaultPolicy, project: str, work: str
) -> None:
    """Seal who is behind a cleared study. Raises EnvironmentFault for the key, Hold when a file cannot be read."""
    key = vault_key(home.keys, home.vault, make=True)
    workers.run(seal_identity, list(pairs), home.vault, key, policy, project, work, time.time())


def seal_identity(
    pairs: Sequence[Pair], root: Path, key: bytes, policy: VaultPolicy, project: str, work: str, now: float
) -> None:
    """Runs in a worker: no value comes back. What a study left as is read from the file that will leave."""
    originals = [_read(pair.original, pair.name) for pair in pairs]
    new = _read(pairs[0].candidate, pairs[0].name)
    identity = Identity(
        project=project,
        pseudonym=text_of(new, _PATIENT_ID),
        new_study_instance_uid=text_of(new, _STUDY),
        patient_ids=tuple(sorted({(text_of(one, _PATIENT_ID), text_of(one, _ISSUER)) for one in originals})),
        study_instance_uid=text_of(originals[0], _STUDY),
        accession_numbers=tuple(sorted({text_of(one, _ACCESSION) for one in originals} - {""})),
    )
    Vault(root, key).keep(identity, policy.roles, work=work, now=now, days=policy.days)


def _read(path: Path, name: str) -> pydicom.Dataset:
    try:
        return pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_READ, force=True)
    except (OSError, pydicom.errors.InvalidDicomError):
        raise Hold("clearance_broken", at=f"instance {name}") from None


def open_records(
    home: Home, settings: Settings, issued: Sequence[str], *, role: str, actor: str, reason: str, project: str = ""
) -> list[Opened]:
    """Who is behind these pseudonyms or new study UIDs, for a role; in the ledger before this returns.

    Raises UsageError when one is not in the vault, when the role may not see one (in the ledger as well), or when the
    reason quotes what is opened; EnvironmentFault for a key, a record or a ledger that is not sound.
    """
    ledger = _ledger(home, settings)
    vault = Vault(home.vault, vault_key(home.keys, home.vault))
    now = time.time()
    names: list[str] = []
    for number, one in enumerate(issued, 1):
        found = vault.find(one, project)
        if not found:
            raise UsageError(
                f"number {number} of those named is not in the vault; write it as it left, letter by letter"
            )
        names += found
    records = [vault.open(name) for name in dict.fromkeys(names)]
    facts: dict[str, object] = {"role": role, "actor": actor, "records": [record.name for record in records]}
    refused = [record for record in records if role not in record.roles]
    if refused:  # first of all: no answer to somebody who may not ask tells anything of what is in there
        ledger.append("vault_refused", f"vault/{time.time_ns()}", **facts)
        raise UsageError(
            f"the role {role} may not see {len(refused)} of these records; that it was asked is in the ledger"
        )
    _require_discreet(reason, records)
    late = [record for record in records if record.head.until <= now]
    if late:
        raise UsageError(f"{len(late)} of these records are past their time and about to be removed")
    ledger.append("vault_opened", f"vault/{time.time_ns()}", **facts, reason_given=reason)
    return records


def _require_discreet(reason: str, records: Sequence[Opened]) -> None:
    """Raise UsageError when a reason quotes one of these records: the ledger would keep it for good."""
    words = [value.casefold() for record in records for value in record.identity.values() if len(value) > 1]
    if any(word in reason.casefold() for word in words):
        raise UsageError("the reason names somebody of these records, and goes to the ledger: write it without")


def _those_that_open(vault: Vault, names: Sequence[str]) -> Iterator[Opened]:
    for name in names:
        with suppress(EnvironmentFault):  # a damaged one can be erased all the same
            yield vault.open(name)


def erase(home: Home, settings: Settings, issued: Sequence[str], *, actor: str, reason: str, project: str) -> int:
    """Remove all that the vault keeps of these people; how many records. The ledger's line comes first.

    Their pseudonyms stay theirs: none is ever given to somebody else.
    """
    ledger = _ledger(home, settings)
    vault = Vault(home.vault, vault_key(home.keys, home.vault))
    names = list(dict.fromkeys(name for one in issued for name in vault.find(one, project)))
    if not names:
        return 0
    _require_discreet(reason, list(_those_that_open(vault, names)))
    facts = {"actor": actor, "reason_given": reason, "records": names}
    ledger.append("vault_erased", f"vault/{time.time_ns()}", **facts)
    vault.remove(names)
    return len(names)


def records_by_work(home: Home) -> dict[str, list[str]]:
    """Names of all records, by the piece of work that wrote them; read from the folder alone."""
    found: dict[str, list[str]] = {}
    for path in sorted(home.vault.glob("*/*/*.rec")):
        found.setdefault(path.name.split(".")[1], []).append(path.relative_to(home.vault).as_posix())
    return found


def forget_records(home: Home, ledger: Ledger, names: Sequence[str]) -> int:
    """Remove what pieces of work of an erased person wrote; how many records."""
    if names:
        ledger.append("vault_erased", f"vault/{time.time_ns()}", reason="erased", records=list(names))
        Vault(home.vault, vault_key(home.keys, home.vault)).remove(names)
    return len(names)


def expire(home: Home, ledger: Ledger, now: float) -> int:
    """Remove what is past its time (`vault: days`); how many records."""
    if not any(home.vault.glob("*/*/*.rec")):
        return 0
    vault = Vault(home.vault, vault_key(home.keys, home.vault))
    names = vault.expired(now)
    if names:
        ledger.append("vault_expired", f"vault/{time.time_ns()}", records=names)
        vault.remove(names)
    return len(names)


def due_records(home: Home) -> list[tuple[str, float]]:
    """(name, when it is past its time) of every record, by its head alone."""
    if not any(home.vault.glob("*/*/*.rec")):
        return []
    vault = Vault(home.vault, vault_key(home.keys, home.vault))
    return [(name, float(sealed.until)) for name, sealed in vault.records()]


def counts(home: Home, now: float) -> list[Counts]:
    """How much the vault holds, by project. Reads no record but its head."""
    if not any(home.vault.glob("*/*/*.rec")):
        return []
    found: dict[str, list[tuple[str, bool]]] = {}
    for name, sealed in Vault(home.vault, vault_key(home.keys, home.vault)).records():
        project, person, _ = name.split("/")
        found.setdefault(project, []).append((person, sealed.until <= now))
    return [
        Counts(project, len({person for person, _ in rows}), len(rows), sum(late for _, late in rows))
        for project, rows in sorted(found.items())
    ]


def _ledger(home: Home, settings: Settings) -> Ledger:
    return Ledger(home.ledger, Keys(master_key(home, settings)).ledger)
