"""New values for old ones: one value field in, one out, by action. Deterministic in value, key and policy."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.header.actions import Act
from gateway.header.dates import shifted
from gateway.header.dictionary import Entry
from gateway.header.dummies import dummy_value
from gateway.header.text import decoded
from gateway.header.uids import new_uids
from gateway.pseudonyms import Pseudonyms


@dataclass(frozen=True, slots=True)
class Patient:
    """Whose object it is: the pseudonym, how far dates move (0 = no shift), how an id is read and prefixed."""

    pseudonym: str
    days: int
    prefix: str
    character_set: bytes


@dataclass(slots=True)
class Values:
    """The replacements of one object. `personal` is set when one depended on whose object it is."""

    patient: Patient
    pseudonyms: Pseudonyms
    personal: bool = False

    def days(self) -> int:
        """How far the patient's dates move."""
        self.personal = True
        return self.patient.days

    def replacement(self, act: Act, entry: Entry, value: bytes, *, nested: bool) -> bytes | None:
        """The new value field, unpadded; None when `value` cannot be read for this action.

        `act` is one of ZERO, DUMMY, UID, SHIFT, PATIENT_ID, PATIENT_NAME. An empty value stays empty: there is nothing
        to hide, and the object is as valid as it came.
        """
        bare = value.strip(b" \0")
        if not bare or act is Act.ZERO:
            return b""
        if act is Act.DUMMY:
            return dummy_value(entry.vr, entry.keyword, value, self.pseudonyms)
        if act is Act.UID:
            return new_uids(value, self.pseudonyms)
        if act is Act.SHIFT:
            return shifted(entry.vr, value, self.days())
        self.personal = True
        if not nested:
            return self.patient.pseudonym.encode("ascii")
        if act is Act.PATIENT_NAME:  # whose name a nested one is, is not known here
            return None
        own = decoded(value, self.patient.character_set)
        return self.pseudonyms.patient_id(own, prefix=self.patient.prefix).encode("ascii")
