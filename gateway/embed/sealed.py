"""One embedding as it lies on disk: encrypted, and bound to its place.

    magic 4 | key id 6 | kept at 8 | nonce 12 | AES-256-GCM of: label length 2 | label | float32s, with its tag

An embedding of an original is a biometric (DESIGN.md invariant 3). The head and the record's own name are associated
data: a record that was changed, moved or renamed does not open. The time is UTC seconds, whole days.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from gateway.errors import EnvironmentFault

Vector = NDArray[np.float32]

MAGIC = b"DGE1"
_HEAD = struct.Struct(">4s6sQ12s")
HEAD_BYTES = _HEAD.size
DAY_S = 86400
KEY_BYTES = 32
MAX_LABEL_BYTES = 512


@dataclass(frozen=True, slots=True)
class Entry:
    """An embedding in clear, and whose it is as the caller knows them (a pseudonym; never a Patient ID)."""

    vector: Vector
    label: str


@dataclass(frozen=True, slots=True)
class SealingKeys:
    """What the caller's one key becomes: a cipher, a key for names, and an id that tells keys apart."""

    cipher: AESGCM
    names: bytes
    id: bytes

    @classmethod
    def of(cls, key: bytes) -> SealingKeys:
        """Raises ValueError unless the key has 32 bytes."""
        if len(key) != KEY_BYTES:
            raise ValueError("the key of an embedding store has 32 bytes")
        return cls(AESGCM(_derived(key, "records")), _derived(key, "names"), _derived(key, "id")[:6])


def _derived(key: bytes, purpose: str) -> bytes:
    return hmac.digest(key, f"deid-gateway embeddings/{purpose}".encode(), "sha256")


def seal(entry: Entry, keys: SealingKeys, *, name: str, now: float) -> bytes:
    """A record for `name`, its path below the store. Raises ValueError for a label that is too long."""
    label = entry.label.encode()
    if len(label) > MAX_LABEL_BYTES:
        raise ValueError("the label of an embedding is too long")
    nonce = secrets.token_bytes(12)
    head = _HEAD.pack(MAGIC, keys.id, int(now) // DAY_S * DAY_S, nonce)
    body = struct.pack(">H", len(label)) + label + np.asarray(entry.vector, "<f4").tobytes()
    return head + keys.cipher.encrypt(nonce, body, head + name.encode())


def kept_at(data: bytes, *, where: str) -> int:
    """When a record was written, readable without the key. Raises EnvironmentFault naming the file."""
    if len(data) < HEAD_BYTES or data[:4] != MAGIC:
        raise EnvironmentFault(f"the embedding {where} is damaged; remove it, it can be computed again")
    when: int = _HEAD.unpack_from(data)[2]
    return when


def unseal(data: bytes, keys: SealingKeys, *, name: str, where: str) -> Entry:
    """The embedding. Raises EnvironmentFault naming the file, never what is in it."""
    kept_at(data, where=where)
    if data[4:10] != keys.id:
        raise EnvironmentFault(
            f"the embedding {where} was written with another key; restore that key, or remove the file"
        )
    head = data[:HEAD_BYTES]
    try:
        body = keys.cipher.decrypt(head[-12:], data[HEAD_BYTES:], head + name.encode())
    except InvalidTag:
        raise EnvironmentFault(
            f"the embedding {where} was changed, moved or renamed since it was written; remove it, "
            "it can be computed again"
        ) from None
    end = 2 + struct.unpack_from(">H", body)[0]
    return Entry(np.frombuffer(body[end:], "<f4").astype(np.float32), body[2:end].decode())
