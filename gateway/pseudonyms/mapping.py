"""What replaces an identifier: one mapping for each project and key, and whose study it is applied to.

Pure functions of key and input: a replay, a late instance, another worker or another day give the same answer
(DESIGN.md invariant 4). PS3.15 E.3.9 (UIDs), E.3.6 (dates).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from gateway.errors import Hold
from gateway.pseudonyms.derivation import derive, person_key

STRUCTURAL_ROOT = "1.2.840.10008."
PATIENT_ID = "00100020"


@dataclass(frozen=True, slots=True)
class Own:
    """Whose study it is, where that is known beforehand. An object of anybody else is held, never mapped.

    `persons` are the keyed names of every Patient ID that means this person. `pseudonym` is what a table gives, or what
    the surviving ID of a merge has; "" = made from the object's own ID. `shift` are the keyed bits of the surviving ID,
    b"" = the own ID's. `listed`: a table gives the pseudonyms, and nobody outside it gets one.
    """

    people: bytes = field(repr=False)
    persons: frozenset[str]
    pseudonym: str = ""
    shift: bytes = field(default=b"", repr=False)
    listed: bool = False

    def is_named(self, patient_id: str) -> bool:
        """True when this Patient ID means the person."""
        return person_key(self.people, patient_id) in self.persons


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """The mapping of one project. Every original value is stripped of padding (space, NUL) before it is mapped.

    `issues`: (keyed hash of an original UID, number) of what was recalled and issued anew, where the number is not 1.
    """

    key: bytes = field(repr=False)
    own: Own | None = None
    issues: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of_project(cls, master: bytes, project: str, own: Own | None = None) -> Pseudonyms:
        """Projects do not share pseudonyms: the same person has another identity in each."""
        return cls(derive(master, "project", project), own)

    def _digest(self, purpose: str, *parts: str) -> bytes:
        return derive(self.key, purpose, *parts)

    def uid(self, original: str) -> str:
        """A UID under 2.25 (PS3.5 B.2): decimal of 128 keyed bits, no leading zero, at most 44 characters.

        UIDs that DICOM defines (1.2.840.10008.*) and empty values come back unchanged. The number of a later issue
        enters: what was sent once is never sent again with other bytes.
        """
        value = original.strip(" \0")
        if not value or value.startswith(STRUCTURAL_ROOT):
            return value
        issue = _numbers(self.issues).get(self.uid_key(value), 1) if self.issues else 1
        again = ("issue", str(issue)) if issue > 1 else ()
        bits = bytearray(self._digest("uid", value, *again)[:16])
        bits[6] = (bits[6] & 0x0F) | 0x80  # RFC 9562 version 8 and variant: consumers may read 2.25 as a UUID
        bits[8] = (bits[8] & 0x3F) | 0x80
        return f"2.25.{int.from_bytes(bits, 'big')}"

    def uid_key(self, original: str) -> str:
        """24 hex characters that stand for an original UID in `issues`."""
        return self._digest("uid of an issue", original.strip(" \0")).hex()[:24]

    def require_own(self, patient_id: str) -> None:
        """Raise Hold `mixed_patients` when an object bears somebody else's Patient ID than its study."""
        if self.own is not None and not self.own.is_named(patient_id):
            raise Hold("mixed_patients", at=PATIENT_ID)

    def patient_id(self, original: str, *, prefix: str = "") -> str:
        """Pseudonym of a Patient ID: prefix and 16 base-32 characters (80 bits; LO allows 64 in all).

        What a table or a merge says of the study's own person stands instead. Under a table, other people's IDs
        (nested ones) become "".
        """
        if self.own is not None and (self.own.pseudonym or self.own.listed):
            if self.own.is_named(original):
                return self.own.pseudonym
            if self.own.listed:
                return ""
        return prefix + self.token("patient", original.strip(" \0"), length=16)

    def token(self, purpose: str, original: str, *, length: int) -> str:
        """`length` characters of Crockford base 32 (no I, L, O, U), at most 51, for ids of other kinds (SH, LO)."""
        alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
        number = int.from_bytes(self._digest("token", purpose, original), "big")
        return "".join(alphabet[(number >> (5 * i)) & 31] for i in range(length))

    def shift_bits(self, patient_id: str) -> bytes:
        """The keyed bits that a person's date shift is drawn from: 16 bytes."""
        return self._digest("shift", patient_id.strip(" \0"))[:16]

    def shift_days(self, patient_id: str, low: int, high: int) -> int:
        """The per-patient date shift in whole days, uniform on [low, high] without 0."""
        if low > high or low == high == 0:
            raise ValueError("a date shift needs low <= high and a range other than [0, 0]")
        own = self.own
        bits = own.shift if own is not None and own.shift and own.is_named(patient_id) else self.shift_bits(patient_id)
        without_zero = low <= 0 <= high
        span = high - low + 1 - without_zero
        index = int.from_bytes(bits, "big") % span
        days = low + index
        return days + 1 if without_zero and days >= 0 else days


@lru_cache(maxsize=64)
def _numbers(issues: frozenset[tuple[str, int]]) -> Mapping[str, int]:
    return dict(issues)
