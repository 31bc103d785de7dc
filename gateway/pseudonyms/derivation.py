"""Keys out of keys: HMAC-SHA256 with length-prefixed purposes, and which keys are fit to be derived from."""

from __future__ import annotations

import hmac
import unicodedata

MIN_KEY_BYTES = 32


def key_weakness(master: bytes) -> str:
    """Why this key is not fit to use, or "" when it is. 32 bytes and more, and not a typed or repeated pattern."""
    if len(master) < MIN_KEY_BYTES:
        return f"it has {len(master)} bytes, at least {MIN_KEY_BYTES} are needed"
    if len(set(master)) < 12:
        return "it repeats a few byte values"
    if any(master == master[:n] * (len(master) // n) for n in range(1, len(master) // 2 + 1)):
        return "it repeats a pattern"
    return ""


def derive(master: bytes, *purpose: str) -> bytes:
    """A 32-byte key for one purpose. Parts are length-prefixed, so ("a", "bc") and ("ab", "c") differ."""
    message = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in purpose)
    return hmac.digest(master, message, "sha256")


def key_id(key: bytes) -> str:
    """12 hex characters that name a key without telling it: another key cannot pose under this name."""
    return derive(key, "key-id").hex()[:12]


def canonical(patient_id: str) -> str:
    """A Patient ID as it is mapped: composed (NFC), without padding (space, NUL). Case matters."""
    return unicodedata.normalize("NFC", patient_id).strip(" \0")


def person_key(people: bytes, patient_id: str) -> str:
    """24 hex characters that stand for a Patient ID in tables; `people` is `Keys.people`."""
    return derive(people, canonical(patient_id)).hex()[:24]
