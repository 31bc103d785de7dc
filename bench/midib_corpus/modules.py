"""The modules that every object has: patient, study, series, equipment, request, and the sequences between them.

Each attribute is written together with its fate under the option set of TCIA: Basic Profile, Clean Descriptors, Clean
Structured Content, Retain Longitudinal Modified Dates, Retain Patient Characteristics, Retain Safe Private.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import ModuleType

from bench.midib_corpus import clinical, fresh, kinds, technical, unseen, widened
from bench.midib_corpus.people import digits
from bench.midib_corpus.phrases import DATES, NAMES, OTHER, PHONES, PLACES, RECORDS, planted_in
from bench.midib_corpus.recorder import Recorder, coerced
from bench.midib_corpus.scene import Series, fresh_uid

DETACHED_STUDY = "1.2.840.10008.3.1.2.3.1"
PROCEDURE_STEP = "1.2.840.10008.3.1.2.3.3"
OF_ITS_OWN: dict[str, ModuleType] = {"unseen": unseen, "fresh": fresh}  # halves with equipment and places of their own


def draw(rng: random.Random, choice: str) -> str:
    """One value of a table's cell; `#a-b` is a number in this range."""
    if choice.startswith("#"):
        low, high = choice[1:].split("-")
        return str(rng.randint(int(low), int(high)))
    return choice


def add_table(rec: Recorder, series: Series, table: str) -> None:
    """The rows of a technical table, each with one value a series (numbers: one an instance)."""
    from pydicom.datadict import dictionary_VR, tag_for_keyword

    for row in table.strip().splitlines():
        keyword, kind, choices = row.split(" ", 2)
        vr = dictionary_VR(tag_for_keyword(keyword) or 0).split(" or ")[0]
        text = draw(series.rng, series.pick(keyword, choices.split("|")))
        rec.keep(keyword, coerced(vr, text), kind)


def add_patient(rec: Recorder, series: Series) -> None:
    who, day = series.study.who, series.day
    rec.keep("SpecificCharacterSet", who.character_set.split("\\") if "\\" in who.character_set else who.character_set)
    first = who.foreign.replace("=", " ").replace("^", " ") if who.foreign else who.name.words
    rec.remove("PatientName", who.foreign or who.name.dicom, NAMES, planted=first, kind="2")
    rec.patient_id(who.mrn, f"MIDI_{who.mrn[::-1]}")
    rec.remove("IssuerOfPatientID", who.hospital, PLACES)
    rec.remove("PatientBirthDate", f"{who.born:%Y%m%d}", DATES, kind="2")
    rec.remove("PatientBirthTime", "0412", DATES)
    rec.keep("PatientSex", who.sex, "2")
    age = who.age(day)
    if age == 90:
        rec.carry("PatientAge", "090Y")  # what everybody over 89 may become
    elif age > 90:
        rec.remove("PatientAge", f"{age:03d}Y", DATES)
    else:
        rec.keep("PatientAge", f"{age:03d}Y")
    rec.remove("OtherPatientIDs", f"H{who.mrn}", RECORDS)
    rec.remove("OtherPatientNames", f"{who.mother.last}^{who.name.first}", NAMES, planted=who.mother.last)
    rec.remove("PatientBirthName", f"{who.mother.last}^{who.name.first}", NAMES, planted=who.mother.last)
    rec.remove("PatientMotherBirthName", who.mother.dicom, NAMES, planted=who.mother.words)
    rec.remove("PatientAddress", who.address, PLACES)
    rec.remove("PatientTelephoneNumbers", who.phone, PHONES, planted=who.phone[-8:])
    rec.remove("MedicalRecordLocator", f"BOX {who.ssn}", RECORDS, planted=who.ssn)
    rec.remove("MilitaryRank", "Sergeant", OTHER)
    rec.remove("CountryOfResidence", "Luxembourg", PLACES)
    rec.remove("RegionOfResidence", who.city, PLACES)
    rec.remove("PatientReligiousPreference", "Methodist", OTHER)
    phrase = planted_in(series.study.who.sex + " patient", who, series.rng, day, limit=400)
    if phrase is not None:
        rec.hide("PatientComments", phrase)
    other = rec.item("OtherPatientIDsSequence", stays=False)
    other.remove("PatientID", f"X{who.ssn.replace('-', '')}", RECORDS)
    other.remove("IssuerOfPatientID", who.hospital, PLACES)


def add_study(rec: Recorder, series: Series) -> None:
    study, who = series.study, series.study.who
    rec.uid("StudyInstanceUID", study.uid, "1")
    rec.date("StudyDate", f"{study.day:%Y%m%d}", "2")
    rec.keep("StudyTime", study.time, "2")
    rec.remove("AccessionNumber", study.accession, OTHER, kind="2")
    rec.remove("StudyID", study.number, OTHER, kind="2")
    rec.remove("ReferringPhysicianName", who.referring.dicom, NAMES, planted=who.referring.words, kind="2")
    rec.remove("ReferringPhysicianAddress", f"12 {who.street}, {who.city}", PLACES)
    rec.remove("ReferringPhysicianTelephoneNumbers", f"555-{study.number[:4]}", PHONES)
    rec.remove("PhysiciansOfRecord", who.reading.dicom, NAMES, planted=who.reading.words)
    rec.remove("NameOfPhysiciansReadingStudy", who.reading.dicom, NAMES, planted=who.reading.words)
    rec.remove("RequestingPhysician", who.referring.dicom, NAMES, planted=who.referring.words)
    rec.remove("AdmissionID", f"ADM{study.number}", OTHER)
    rec.remove("CurrentPatientLocation", who.ward, PLACES)
    rec.date("AdmittingDate", f"{study.day:%Y%m%d}")
    rec.describe("StudyDescription", study.description)
    rec.describe("RequestedProcedureDescription", study.procedure)
    rec.describe(
        "AdmittingDiagnosesDescription",
        series.pick("dx", series.own.of(clinical.DIAGNOSES, widened.DIAGNOSES, unseen.DIAGNOSES, fresh.DIAGNOSES)),
    )
    rec.describe("MedicalAlerts", study.alert)
    if study.history is not None:
        rec.describe("AdditionalPatientHistory", study.history)
    if study.comment is not None:
        rec.hide("StudyComments", study.comment)
    if study.reason is not None:
        rec.hide("ReasonForTheRequestedProcedure", study.reason)
        rec.describe("ReasonForStudy", study.reason)
    reference = rec.item("ReferencedStudySequence", stays=False)
    reference.carry("ReferencedSOPClassUID", DETACHED_STUDY)
    reference.uid("ReferencedSOPInstanceUID", study.uid)


def add_series(rec: Recorder, series: Series) -> None:
    study, who = series.study, series.study.who
    rec.keep("Modality", series.modality, "1")
    rec.uid("SeriesInstanceUID", series.uid, "1")
    rec.date("SeriesDate", f"{study.day:%Y%m%d}")
    rec.keep("SeriesTime", study.time)
    rec.describe("SeriesDescription", series.description)
    if series.modality != "SR":
        rec.describe("ProtocolName", series.protocol)
        rec.remove("PerformingPhysicianName", who.performing.dicom, NAMES, planted=who.performing.words)
        rec.remove("OperatorsName", who.operator.dicom, NAMES, planted=who.operator.words)
        rec.describe("PerformedProcedureStepDescription", series.step)
        rec.date("PerformedProcedureStepStartDate", f"{study.day:%Y%m%d}")
        rec.keep("PerformedProcedureStepStartTime", study.time)
        rec.remove("PerformedProcedureStepID", f"PPS{study.number}", OTHER)
        if series.rng.random() < 0.3:
            rec.uid("DeviceUID", series.pick("device", [fresh_uid(series.rng)]))
        request = rec.item("RequestAttributesSequence", stays=False)
        request.remove("RequestedProcedureID", f"RP{study.number}", OTHER)
        request.remove("ScheduledProcedureStepID", f"SPS{study.number}", OTHER)
        request.carry("ScheduledProcedureStepDescription", _text(series.step))
        request.remove("AccessionNumber", study.accession, OTHER)
    step = rec.item("ReferencedPerformedProcedureStepSequence", stays=False)
    step.carry("ReferencedSOPClassUID", PROCEDURE_STEP)
    step.uid("ReferencedSOPInstanceUID", series.pick("mpps", [fresh_uid(series.rng)]))


def _text(what: object) -> str:
    return what if isinstance(what, str) else str(getattr(what, "text", ""))


def add_equipment(rec: Recorder, series: Series) -> None:
    who = series.study.who
    own = OF_ITS_OWN.get(series.own.half)
    common = own.COMMON if own else technical.COMMON
    add_table(rec, series, common if series.modality != "SR" else "\n".join(common.splitlines()[:7]))
    rec.remove("InstitutionName", who.hospital, PLACES)
    rec.remove("InstitutionAddress", f"1 {who.street}, {who.city}", PLACES)
    rec.remove("InstitutionalDepartmentName", f"Radiology {who.ward}", PLACES)
    rec.remove("StationName", series.pick("station", [f"CTAWP{digits(series.rng, 5)}"]), "HIPAA-M")
    rec.remove("DeviceSerialNumber", series.pick("serial", [digits(series.rng, 6)]), "HIPAA-M")
    if series.modality in ("CT", "MR", "PT"):
        rec.remove("GantryID", series.pick("gantry", [f"GID{digits(series.rng, 5)}"]), "HIPAA-M")
    if series.modality in ("CR", "DX", "MG"):
        rec.remove("DetectorID", series.pick("detector", [f"DET{digits(series.rng, 6)}"]), "HIPAA-M")
        rec.date("DateOfLastDetectorCalibration", f"{series.day:%Y%m%d}")


def add_instance(rec: Recorder, series: Series, sop_instance: str, number: int) -> None:
    study = series.study
    rec.keep("SOPClassUID", kinds.SOP_CLASSES[series.modality], "1")
    rec.uid("SOPInstanceUID", sop_instance, "1")
    rec.date("InstanceCreationDate", f"{study.day:%Y%m%d}")
    rec.keep("InstanceCreationTime", study.time)
    rec.date("ContentDate", f"{study.day:%Y%m%d}", "1" if series.modality == "SR" else "3")
    rec.keep("ContentTime", study.time, "1" if series.modality == "SR" else "3")
    if series.modality == "SR":
        rec.keep("InstanceNumber", str(number), "1")
        return
    add_table(rec, series, technical.INSTANCE)
    rec.date("AcquisitionDate", f"{study.day:%Y%m%d}")
    rec.keep("AcquisitionTime", study.time)
    rec.date("AcquisitionDateTime", f"{study.day:%Y%m%d}{study.time}.250000")
    if series.rng.random() < 0.5:
        comment = series.rng.choice(series.own.of(clinical.COMMENTS, widened.COMMENTS, unseen.COMMENTS, fresh.COMMENTS))
        phrase = planted_in(comment, study.who, series.rng, study.day)
        if phrase is not None:
            rec.hide("ImageComments", phrase)
    if own := OF_ITS_OWN.get(series.own.half):
        _add_more_places(rec, series, own.MORE_PLACES, own.COMMENTS, own.VENDOR)
    if series.modality in ("CT", "MR", "PT"):
        rec.uid("FrameOfReferenceUID", study.frame, "1")
        rec.keep("ImagePositionPatient", [f"{-170 + number}", "-165.5", f"{number * 2.5}"], "1")
        rec.uid(
            "IrradiationEventUID", series.pick("event", [fresh_uid(series.rng)])
        ) if series.modality == "CT" else None
    for sop_class, uid in series.sources[:2]:
        item = rec.item("ReferencedImageSequence")
        item.keep("ReferencedSOPClassUID", sop_class)
        item.uid("ReferencedSOPInstanceUID", uid)
    original = rec.item("OriginalAttributesSequence", stays=False)
    modified = original.item("ModifiedAttributesSequence", stays=False)
    modified.remove("PatientName", study.who.name.dicom, NAMES, planted=study.who.name.words)
    modified.remove("PatientID", study.who.mrn, RECORDS)
    original.remove("SourceOfPreviousValues", study.who.hospital, PLACES)


def _add_more_places(
    rec: Recorder, series: Series, places: Sequence[str], comments: Sequence[str], vendor: tuple[int, str]
) -> None:
    """Texts in attributes that the other halves leave empty, and a block of a vendor whom no list knows."""
    who, rng = series.study.who, series.rng
    for keyword in rng.sample(places, 2):
        phrase = planted_in(rng.choice(comments), who, rng, series.day)
        if phrase is not None:
            rec.hide(keyword, phrase)
    group, creator = vendor
    rec.private((group, creator, 0x01), "LO", who.name.words, "delete")
    rec.private((group, creator, 0x02), "DA", f"{series.day:%Y%m%d}", "delete")
