"""Keyed pseudonyms: HMAC-SHA256, one derived key per project and purpose (cases.md 30: never a bare hash).

Pure functions of key and input: a replay, a late instance, another worker or another day give the same answer
(DESIGN.md invariant 4). PS3.15 E.3.9 (UIDs), E.3.6 (dates). The master key is read here too, and refused when weak.
"""

from __future__ import annotations

import hmac
import stat
from dataclasses import dataclass

from gateway.errors import EnvironmentFault
from gateway.settings import Home, Settings

STRUCTURAL_ROOT = "1.2.840.10008."
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


def master_key(home: Home, settings: Settings) -> bytes:
    """The master key from the environment, DEID_KEY_FILE or the home. Raises EnvironmentFault when absent or weak."""
    if settings.key is not None:
        source, text = "DEID_KEY", settings.key.get_secret_value()
    else:
        path = settings.key_file or home.master_key
        source = str(path)
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            text = path.read_text("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise EnvironmentFault(
                f"no master key: {source} cannot be read; run `deid-gateway init {home.root}`, or set DEID_KEY_FILE"
            ) from error
        # Kubernetes mounts secrets 0440 to the pod's group; group read is allowed only when others have nothing.
        if mode & 0o037:
            raise EnvironmentFault(f"the master key {source} is open to others (mode {mode:04o}); run chmod 600 on it")
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        raise EnvironmentFault(
            f"the master key in {source} is not hex; generate one with `openssl rand -hex 32`"
        ) from None
    weakness = key_weakness(key)
    if weakness:
        raise EnvironmentFault(f"the master key in {source} is too weak: {weakness}; use `openssl rand -hex 32`")
    return key


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by purpose, all derived from the master key. Study keys are opaque names of studies in queues and logs."""

    master: bytes

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

    def opaque(self, purpose: str, *parts: str) -> str:
        """24 hex characters that name something without saying what."""
        return derive(self.master, "opaque", purpose, *parts).hex()[:24]


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """The mapping of one project. Every original value is stripped of padding (space, NUL) before it is mapped."""

    key: bytes

    @classmethod
    def of_project(cls, master: bytes, project: str) -> Pseudonyms:
        """Projects do not share pseudonyms: the same person has another identity in each."""
        return cls(derive(master, "project", project))

    def _digest(self, purpose: str, *parts: str) -> bytes:
        return derive(self.key, purpose, *parts)

    def uid(self, original: str) -> str:
        """A UID under 2.25 (PS3.5 B.2): decimal of 128 keyed bits, no leading zero, at most 44 characters.

        UIDs that DICOM defines (1.2.840.10008.*) and empty values come back unchanged.
        """
        value = original.strip(" \0")
        if not value or value.startswith(STRUCTURAL_ROOT):
            return value
        bits = bytearray(self._digest("uid", value)[:16])
        bits[6] = (bits[6] & 0x0F) | 0x80  # RFC 9562 version 8 and variant: consumers may read 2.25 as a UUID
        bits[8] = (bits[8] & 0x3F) | 0x80
        return f"2.25.{int.from_bytes(bits, 'big')}"

    def patient_id(self, original: str, *, prefix: str = "") -> str:
        """Pseudonym of a Patient ID: prefix and 16 base-32 characters (80 bits; LO allows 64 in all)."""
        return prefix + self.token("patient", original.strip(" \0"), length=16)

    def token(self, purpose: str, original: str, *, length: int) -> str:
        """`length` characters of Crockford base 32 (no I, L, O, U), at most 51, for ids of other kinds (SH, LO)."""
        alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
        number = int.from_bytes(self._digest("token", purpose, original), "big")
        return "".join(alphabet[(number >> (5 * i)) & 31] for i in range(length))

    def shift_days(self, patient_id: str, low: int, high: int) -> int:
        """The per-patient date shift in whole days, uniform on [low, high] without 0."""
        if low > high or low == high == 0:
            raise ValueError("a date shift needs low <= high and a range other than [0, 0]")
        without_zero = low <= 0 <= high
        span = high - low + 1 - without_zero
        index = int.from_bytes(self._digest("shift", patient_id.strip(" \0"))[:16], "big") % span
        days = low + index
        return days + 1 if without_zero and days >= 0 else days
