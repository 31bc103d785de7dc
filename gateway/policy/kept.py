"""Which attributes a policy may keep by name, and why not the others."""

from __future__ import annotations

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
