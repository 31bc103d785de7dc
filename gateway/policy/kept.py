"""Which attributes a policy may keep by name, and why not the others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

from pydicom.datadict import dictionary_has_tag, dictionary_VR

from gateway.policy.standard import DEFAULT_EDITION, FULL_DATES, MODIFIED_DATES, load_table, tag_of_keyword

# Identity itself: PS3.15 E.1 exists to remove these, so no reason can keep them. Person names (PN) come on top.
NEVER_KEPT = frozenset(
    {
        *("PatientID", "IssuerOfPatientID", "IssuerOfPatientIDQualifiersSequence", "OtherPatientIDs"),
        *("OtherPatientIDsSequence", "PatientBirthDate", "PatientBirthTime", "PatientBirthDateInAlternativeCalendar"),
        *("PatientAddress", "PatientTelephoneNumbers", "PatientTelecomInformation", "MedicalRecordLocator"),
        *("AccessionNumber", "ReferencedPatientPhotoSequence", "NameToUse", "PersonNamesToUseSequence"),
        *("OriginalAttributesSequence", "ModifiedAttributesSequence", "EncryptedAttributesSequence"),
        *("EncryptedContent", "DigitalSignaturesSequence", "DataSetTrailingPadding", "IconImageSequence"),
    }
)


def why_not_kept(keyword: str, edition: str = DEFAULT_EDITION) -> str:
    """Why a policy may not keep this attribute by name, or "" when it may. The keyword is a known one."""
    tag = tag_of_keyword(keyword)
    if keyword == "PatientID":
        return "PatientID is replaced as header.patient_id says"
    if keyword in NEVER_KEPT or (tag is not None and dictionary_has_tag(tag) and dictionary_VR(tag) == "PN"):
        return f"{keyword} names the person or may hold what was removed: no reason can keep it"
    if tag is not None and tag >> 16 in (0x0002, 0x0004):
        return f"{keyword} belongs to a group that is replaced as a whole (PS3.15 E.1.1)"
    row = load_table(edition).get(f"{tag:08X}")
    if row is None:
        return ""
    if FULL_DATES in row.columns:
        return f"{keyword} is a date or time: the options {FULL_DATES} and {MODIFIED_DATES} decide about all of them"
    if row.basic == "U" or "retain-uids" in row.columns:
        return f"{keyword} is a UID or refers by UIDs: they stay consistent only together, by the option retain-uids"
    return ""


class Kept(Protocol):
    """What of a header section says what stays (`model.HeaderPolicy`, which imports this file)."""

    @property
    def options(self) -> frozenset[str]: ...
    @property
    def keep(self) -> Mapping[str, str]: ...
    @property
    def edition(self) -> str: ...


@lru_cache(maxsize=64)
def _kept_by(options: frozenset[str], keep: tuple[str, ...], edition: str) -> frozenset[str]:
    rows = load_table(edition).values()
    by_option = {row.keyword for row in rows if any(row.columns.get(option, "") == "K" for option in options)}
    return frozenset(word for word in (*keep, *by_option) if word and tag_of_keyword(word) is not None)


def kept_keywords(header: Kept) -> frozenset[str]:
    """Attributes that the Basic Profile would take out or change and that a policy lets stay, by a keep or an option
    (column K of Table E.1-1). What the profile does not name at all is no choice of the policy.
    """
    return _kept_by(header.options, tuple(header.keep), header.edition)
