"""What the vault keeps of a study, and the form in which it lies on disk.

    magic 4 | key id 6 | kept at 8 | until 8 | nonce 12 | AES-256-GCM of the identity as JSON, with its tag

The times are UTC seconds, whole days. Everything before the cipher text, and the record's own name, are associated
data: a record that was changed, moved or renamed does not open. Kept is what somebody needs to find the person and the
study in the hospital's own systems, and no more: Patient ID with its issuer, Study Instance UID, Accession Numbers.
Names and birth dates are not: the hospital has them under these keys.
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.errors import EnvironmentFault
from gateway.pseudonyms import derive, key_id
from gateway.study import canonical_json

MAGIC = b"DGV1"
_HEAD = struct.Struct(">4s6sQQ12s")
HEAD_BYTES = _HEAD.size
DAY_S = 86400


@dataclass(frozen=True, slots=True)
class Identity:
    """One study of one person: what it was, and as what it left. `patient_ids` are (Patient ID, issuer or "")."""

    project: str
    pseudonym: str
    new_study_instance_uid: str
    patient_ids: tuple[tuple[str, str], ...]
    study_instance_uid: str
    accession_numbers: tuple[str, ...]

    def values(self) -> list[str]:
        """The identifying ones."""
        return [*(part for pair in self.patient_ids for part in pair), self.study_instance_uid, *self.accession_numbers]


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a record tells without its key."""

    key_id: str
    kept_at: int
    until: int


def seal(identity: Identity, roles: Sequence[str], *, key: bytes, name: str, now: float, days: int) -> bytes:
    """A record for `name` (its path below the vault)."""
    kept_at = int(now) // DAY_S * DAY_S
    until = kept_at + (days + 1) * DAY_S
    nonce = secrets.token_bytes(12)
    head = _HEAD.pack(MAGIC, bytes.fromhex(key_id(key)), kept_at, until, nonce)
    body = canonical_json({"identity": asdict(identity), "roles": list(roles)})
    return head + AESGCM(derive(key, "records")).encrypt(nonce, body, head + name.encode())


def read_head(data: bytes, name: str) -> Sealed:
    """What can be read without the key. Raises EnvironmentFault naming the record."""
    if len(data) < _HEAD.size or data[:4] != MAGIC:
        raise EnvironmentFault(f"the vault record {name} is damaged; restore it from the backup, or remove it")
    _, key, kept_at, until, _ = _HEAD.unpack_from(data)
    return Sealed(key.hex(), kept_at, until)


def unseal(data: bytes, *, key: bytes, name: str) -> tuple[Identity, tuple[str, ...]]:
    """The identity and the roles that may see it. Raises EnvironmentFault naming the record, never a value."""
    sealed = read_head(data, name)
    if sealed.key_id != key_id(key):
        raise EnvironmentFault(
            f"the vault record {name} was written with the key {sealed.key_id}, and HOME/keys/vault.key is "
            f"{key_id(key)}; restore that key"
        )
    head = data[: _HEAD.size]
    try:
        body = AESGCM(derive(key, "records")).decrypt(head[-12:], data[_HEAD.size :], head + name.encode())
    except InvalidTag:
        raise EnvironmentFault(
            f"the vault record {name} was changed, moved or renamed since it was written; restore it from the backup"
        ) from None
    kept = json.loads(body)
    fields = kept["identity"]
    identity = Identity(
        project=fields["project"],
        pseudonym=fields["pseudonym"],
        new_study_instance_uid=fields["new_study_instance_uid"],
        patient_ids=tuple((entry[0], entry[1]) for entry in fields["patient_ids"]),
        study_instance_uid=fields["study_instance_uid"],
        accession_numbers=tuple(fields["accession_numbers"]),
    )
    return identity, tuple(kept["roles"])
