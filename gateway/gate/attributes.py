"""Which attributes bear identity, by the gate's own list, by VR, and last by Table E.1-1; and what a policy keeps.

By VR, at any depth, private or not: every person name (PN), every UID (UI) that is no class or vocabulary, every date
(DA, DT). By tag: ids, places, phones, devices, free text that people type into. The table adds what it lists beyond.
A kind says how a value is searched for (`terms`), and `Kept` what the policy leaves in on purpose (PS3.15 E.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, lru_cache

from pydicom.datadict import keyword_dict, tag_for_keyword

from gateway.policy import HeaderPolicy, Row, load_table


class Kind(StrEnum):
    """How the values of an attribute identify, and therefore how they are looked for."""

    NAME = "name"  # of anybody: patient, family, staff
    ID = "id"  # numbers that an institution gave: patient, order, visit, study
    UID = "uid"
    BIRTH = "birth_date"
    DATE = "date"
    TIME = "time"
    PHONE = "phone"
    ADDRESS = "address"
    PLACE = "place"  # institution, department, station: not a person
    DEVICE = "device"  # serial numbers and the like
    TEXT = "text"  # descriptions and comments
    TRAIT = "trait"  # sex, age, size and the like: too common to search for, compared in place


PERSONAL = frozenset({Kind.NAME, Kind.ID, Kind.UID, Kind.BIRTH, Kind.PHONE, Kind.ADDRESS})

_IDS = """
PatientID OtherPatientIDs IssuerOfPatientID MedicalRecordLocator AccessionNumber StudyID AdmissionID
ServiceEpisodeID RequestedProcedureID ScheduledProcedureStepID PerformedProcedureStepID
FillerOrderNumberImagingServiceRequest PlacerOrderNumberImagingServiceRequest FillerOrderNumberProcedure
PlacerOrderNumberProcedure InsurancePlanIdentification ClinicalTrialSubjectID ClinicalTrialSubjectReadingID
ClinicalTrialSiteID ClinicalTrialProtocolID ResultsID InterpretationID SpecimenAccessionNumber SpecimenIdentifier
ContainerIdentifier SlideIdentifier ContainerComponentID BarcodeValue HL7InstanceIdentifier TrackingID
"""
_DEVICES = """
DeviceSerialNumber SourceSerialNumber LensSerialNumber UniqueDeviceIdentifier DeviceAlternateIdentifier
ManufacturerDeviceIdentifier PlateID CassetteID DetectorID GantryID GeneratorID SecondaryCaptureDeviceID
HardcopyCreationDeviceID XRayDetectorID XRaySourceID
"""
_PHONES = """
PatientTelephoneNumbers PersonTelephoneNumbers ReferringPhysicianTelephoneNumbers OrderCallbackPhoneNumber
PatientTelecomInformation PersonTelecomInformation OrderCallbackTelecomInformation TelephoneNumberTrial
"""
_ADDRESSES = """
PatientAddress PersonAddress ReferringPhysicianAddress AddressTrial CountryOfResidence RegionOfResidence
PatientInstitutionResidence CurrentPatientLocation ResponsibleOrganization Occupation
"""
_PLACES = """
InstitutionName InstitutionAddress InstitutionalDepartmentName StationName PerformedStationName
ScheduledStationName TreatmentMachineName RadiationMachineName RequestingService PerformedLocation
ScheduledProcedureStepLocation RequestedProcedureLocation OrderEntererLocation ScheduledStudyLocation
HumanPerformerOrganization VerifyingOrganization ClinicalTrialSiteName ClinicalTrialSponsorName
ClinicalTrialCoordinatingCenterName ModifyingSystem SourceOfPreviousValues StationAETitle RetrieveAETitle
PerformedStationAETitle ScheduledStationAETitle RequestingAE DestinationAE NetworkID SourceApplicationEntityTitle
SendingApplicationEntityTitle
SourcePresentationAddress SendingPresentationAddress
"""
_NAMES = "CameraOwnerName TopicAuthor"
_TEXTS = """
StudyDescription SeriesDescription ImageComments PatientComments AdditionalPatientHistory StudyComments
VisitComments RequestedProcedureDescription PerformedProcedureStepDescription ScheduledProcedureStepDescription
ProtocolName RequestedProcedureComments CommentsOnThePerformedProcedureStep ReasonForStudy
ReasonForTheRequestedProcedure AdmittingDiagnosesDescription DerivationDescription InterpretationText Impressions
DocumentTitle ContentDescription RTImageLabel RTImageName RTImageDescription SegmentDescription DoseComment
TextValue UnformattedTextValue TextString
"""
# Values here are classes, syntaxes and vocabularies: they say what a thing is, not which one.
_STRUCTURAL = """
SOPClassUID RelatedGeneralSOPClassUID OriginalSpecializedSOPClassUID ReferencedSOPClassUID MediaStorageSOPClassUID
TransferSyntaxUID ImplementationClassUID CodingSchemeUID ContextUID ContextGroupExtensionCreatorUID
MappingResourceUID StoredInstanceTransferSyntaxUID AvailableTransferSyntaxUID FlowTransferSyntaxUID
MACCalculationTransferSyntaxUID EncryptedContentTransferSyntaxUID PertinentSOPClassesInStudy
PertinentSOPClassesInSeries SOPClassesInStudy SOPClassesSupported ReferencedSOPClassUIDInFile
ReferencedTransferSyntaxUIDInFile AffectedSOPClassUID ReferencedRelatedGeneralSOPClassUIDInFile
RequestedSOPClassUID PrivateInformationCreatorUID
"""
# Versions of vocabularies and templates, written as dates.
_VERSIONS = "ContextGroupVersion ContextGroupLocalVersion TemplateVersion TemplateLocalVersion"


def _tags(keywords: str) -> frozenset[int]:
    found = (tag_for_keyword(word) for word in keywords.split())
    return frozenset(int(tag) for tag in found if tag is not None)


STRUCTURAL = _tags(_STRUCTURAL)
# What the maker of a device writes; a station, place or date that coincides with it is no finding there.
MAKER = _tags("ImplementationVersionName SequenceName PulseSequenceName ReceiveCoilName TransmitCoilName") | {
    int(tag)
    for word, tag in ((word, tag_for_keyword(word)) for word in keyword_dict)
    if tag is not None and word.endswith(("Manufacturer", "ManufacturerName", "ModelName", "SoftwareVersions"))
}
# Not in the table, and known to stay with the option for device identity.
DEVICES_BEYOND_TABLE = _tags("RadiationMachineName")
VERSIONS = _tags(_VERSIONS)
BIRTH_DATES = _tags("PatientBirthDate PatientBirthDateInAlternativeCalendar")
BIRTH_TIME = 0x00100032
CODE_VALUE, LONG_CODE_VALUE, CODE_MEANING = 0x00080100, 0x00080119, 0x00080104
# Code sequences whose codes name people, and places (note to PS3.15 E.1.1: codes for people and providers).
PEOPLE_CODES = ("(0040,1101)",)
PLACE_CODES = ("(0008,0082)", "(0040,4028)", "(0040,4025)", "(0008,1041)")

_BY_TAG: Mapping[int, Kind] = {
    **dict.fromkeys(_tags(_TEXTS), Kind.TEXT),
    **dict.fromkeys(_tags(_PLACES), Kind.PLACE),
    **dict.fromkeys(_tags(_ADDRESSES), Kind.ADDRESS),
    **dict.fromkeys(_tags(_PHONES), Kind.PHONE),
    **dict.fromkeys(_tags(_IDS), Kind.ID),
    **dict.fromkeys(_tags(_DEVICES), Kind.DEVICE),
    **dict.fromkeys(_tags(_NAMES), Kind.NAME),
    **dict.fromkeys(BIRTH_DATES, Kind.BIRTH),
}
_BY_VR: Mapping[str, Kind] = {
    "PN": Kind.NAME,
    "UI": Kind.UID,
    "DA": Kind.DATE,
    "DT": Kind.DATE,
}
_TEXT_VRS = frozenset({"LO", "LT", "SH", "ST", "UC", "UT", "UR"})
_CLEANED_VRS = _TEXT_VRS - {"UR"}
CLEANS_TEXT = frozenset({"clean-descriptors", "retain-patient-characteristics"})


@cache
def _rows(edition: str) -> Mapping[str, Row]:
    return load_table(edition)


def row_of(tag: int, edition: str) -> Row | None:
    """The row of Table E.1-1 for a standard tag; repeating groups are the 16 even ones (PS3.5 7.6)."""
    rows = _rows(edition)
    group, element = tag >> 16, tag & 0xFFFF
    if group >> 8 in (0x50, 0x60) and group & 0xFF <= 0x1E and not group & 1:
        return rows.get("50xxxxxx" if group >> 8 == 0x50 else f"60xx{element:04X}")
    return rows.get(f"{tag:08X}")


@lru_cache(maxsize=1 << 14)
def kind_of(tag: int, vr: str, edition: str) -> Kind | None:
    """What the value of this element would be to somebody who looks for the person; None for technical ones."""
    if tag in STRUCTURAL or tag in VERSIONS:
        return None
    found = _BY_TAG.get(tag) or _BY_VR.get(vr)
    if found is None and not (tag >> 16) & 1 and row_of(tag, edition) is not None:
        found = Kind.TIME if vr == "TM" else Kind.TEXT if vr in _TEXT_VRS else Kind.PLACE if vr == "AE" else Kind.TRAIT
    return found


@dataclass(frozen=True)
class Kept:
    """What a header policy leaves in on purpose."""

    policy: HeaderPolicy

    @cached_property
    def shift_days(self) -> tuple[int, int] | None:
        """The range of the date shift, None when dates are not shifted."""
        return self.policy.dates.shift_days if self.policy.dates is not None else None

    @cached_property
    def _known(self) -> dict[tuple[int, str], bool]:
        return {}

    def keeps(self, tag: int, vr: str) -> bool:
        """True when an element may leave as it came: a `keep`, or an option that says K and none that says C."""
        known = self._known.get((tag, vr))
        if known is None:
            known = self._known[tag, vr] = self._decide(tag, vr)
        return known

    def cleans(self, tag: int, vr: str) -> bool:
        """True for text that stays without what identifies (code C of clean-descriptors, E.3.5; of E.3.7 likewise).

        Such text may leave as it came, and may be repeated elsewhere; what other attributes say is searched in it.
        """
        asked = self.policy.options & CLEANS_TEXT
        if vr not in _CLEANED_VRS or not asked:
            return False
        row = row_of(tag, self.policy.edition)
        if row is None:
            return "clean-descriptors" in asked and _BY_TAG.get(tag) is Kind.TEXT
        return any(row.columns.get(option) == "C" for option in asked)

    def _decide(self, tag: int, vr: str) -> bool:
        options = self.policy.options
        if tag in self.policy.kept_tags:
            return True
        row = row_of(tag, self.policy.edition)
        if row is not None:
            codes = {row.columns[option] for option in options if option in row.columns}
            if vr == "TM" and "retain-longitudinal-modified-dates" in row.columns:
                return bool(codes)  # shifts are in whole days: times of day stay
            return "K" in codes and "C" not in codes
        if vr == "UI":
            return "retain-uids" in options
        if tag in DEVICES_BEYOND_TABLE:
            return "retain-device-identity" in options
        if vr in ("DA", "DT") and tag not in BIRTH_DATES:
            return "retain-longitudinal-full-dates" in options
        return False
