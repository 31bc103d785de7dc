"""What an approval of a policy is: a statement, signed with Ed25519 (RFC 8032) by somebody who answers for the policy.

The signature is over the canonical JSON of everything that the statement says: act, policy name and digest, role,
signer, key, reason, date, and a format word that keeps it from meaning anything elsewhere. Whether a signed statement
counts (who is listed, what was revoked) is decided above; nothing here reads the site's files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gateway.errors import EnvironmentFault, UsageError
from gateway.study import canonical_json

FORMAT = "deid-gateway policy approval 1"
MIN_PASSPHRASE = 12  # characters
MAX_RECORD_BYTES = 16 << 10

Act = Literal["approve", "revoke"]


@dataclass(frozen=True, slots=True)
class Statement:
    """What is signed. `digest` is the policy's (64 hex), `key` the id of the signer's key, `date` ISO 8601 in UTC."""

    act: str
    policy: str
    digest: str
    role: str
    by: str
    key: str
    reason: str
    date: str

    def encoded(self) -> bytes:
        """The bytes that are signed."""
        return canonical_json({"format": FORMAT, **{one.name: getattr(self, one.name) for one in fields(self)}})

    @property
    def id(self) -> str:
        """sha256 of what is signed, 64 hex: how the ledger names this statement."""
        return hashlib.sha256(self.encoded()).hexdigest()


@dataclass(frozen=True, slots=True)
class Signed:
    """A statement and its signature, 64 bytes."""

    statement: Statement
    signature: bytes

    def to_line(self) -> bytes:
        """One line of a .jsonl file."""
        body = json.loads(self.statement.encoded())
        return canonical_json({"statement": body, "signature": base64.b64encode(self.signature).decode()}) + b"\n"

    def is_by(self, public: Ed25519PublicKey) -> bool:
        """True when this key made the signature, over this very statement."""
        try:
            public.verify(self.signature, self.statement.encoded())
        except InvalidSignature:
            return False
        return True


def read_line(line: bytes) -> Signed | None:
    """A line as `Signed`; None for whatever is none. Nothing is believed yet."""
    try:
        record = json.loads(line) if len(line) <= MAX_RECORD_BYTES else {}
        body = dict(record["statement"])
        if body.pop("format") != FORMAT or not all(isinstance(value, str) for value in body.values()):
            return None
        return Signed(Statement(**body), base64.b64decode(record["signature"], validate=True))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def sign(statement: Statement, private: Ed25519PrivateKey) -> Signed:
    """Raises ValueError when the statement names another key."""
    if statement.key != key_id(private.public_key()):
        raise ValueError("the statement names another key")
    return Signed(statement, private.sign(statement.encoded()))


# -- keys -----------------------------------------------------------------------------------------------------------


def key_id(public: Ed25519PublicKey) -> str:
    """sha256 of the public key's 32 bytes, first 32 hex."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:32]


def public_text(public: Ed25519PublicKey) -> str:
    """The public key as text: base64 of its 32 bytes."""
    return base64.b64encode(public.public_bytes_raw()).decode()


def read_public(text: str) -> Ed25519PublicKey:
    """A public key from base64 or PEM. Raises UsageError."""
    try:
        if "BEGIN PUBLIC KEY" in text:
            key = serialization.load_pem_public_key(text.encode())
            if isinstance(key, Ed25519PublicKey):
                return key
        else:
            return Ed25519PublicKey.from_public_bytes(base64.b64decode(text.strip(), validate=True))
    except (ValueError, UnsupportedAlgorithm):
        pass
    raise UsageError("this is no public key of Ed25519: give the file that `policy signer new` wrote, or PEM")


def new_private(path: Path, passphrase: bytes | None) -> Ed25519PrivateKey:
    """Make a key and write it as PEM (PKCS 8), mode 0600, encrypted when there is a passphrase.

    Raises UsageError for a file that is there already or a passphrase that is too short.
    """
    if passphrase is not None and len(passphrase.decode(errors="replace")) < MIN_PASSPHRASE:
        raise UsageError(f"the passphrase needs at least {MIN_PASSPHRASE} characters")
    private = Ed25519PrivateKey.generate()
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"{path} is there already; a key is never overwritten: name another file") from None
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())
    return private


def read_private(path: Path, passphrase: Callable[[], bytes]) -> Ed25519PrivateKey:
    """The key in a PEM file; `passphrase` is asked only when it is encrypted.

    Raises EnvironmentFault for a file that cannot be read, is open to others or holds no such key; UsageError for a
    wrong passphrase.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        pem = path.read_bytes()
    except OSError as error:
        raise EnvironmentFault(f"the signing key {path} cannot be read: {error.strerror}") from None
    if mode & 0o077:
        raise EnvironmentFault(f"the signing key {path} is open to others (mode {mode:04o}); run chmod 600 on it")
    try:
        key = serialization.load_pem_private_key(pem, None)
    except TypeError:  # encrypted
        try:
            key = serialization.load_pem_private_key(pem, passphrase())
        except (ValueError, TypeError):
            raise UsageError(f"the passphrase does not open {path}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise EnvironmentFault(f"{path} holds no private key in PEM; `policy signer new` makes one") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise EnvironmentFault(f"{path} holds a key of another kind than Ed25519; `policy signer new` makes one")
    return key
