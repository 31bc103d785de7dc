"""Structured reports: a content tree in which people, dates, references and sentences stand beside measurements."""

from __future__ import annotations

from bench.midib_corpus import clinical, fresh, technical, unseen, widened
from bench.midib_corpus.people import digits
from bench.midib_corpus.phrases import NAMES, OTHER, PLACES, Phrase, letter, planted_in
from bench.midib_corpus.recorder import Recorder
from bench.midib_corpus.scene import Series, fresh_uid

Code = tuple[str, str, str]
REPORT: Code = ("126000", "DCM", "Imaging Measurement Report")
LANGUAGE: Code = ("121049", "DCM", "Language of Content Item and Descendants")
ENGLISH: Code = ("en", "RFC5646", "English")
OBSERVER: Code = ("121008", "DCM", "Person Observer Name")
FINDINGS: Code = ("121070", "DCM", "Findings")
FINDING: Code = ("121071", "DCM", "Finding")
HISTORY: Code = ("121060", "DCM", "History")
CONCLUSION: Code = ("121077", "DCM", "Conclusion")
RECOMMENDATION: Code = ("121075", "DCM", "Recommendation")
SUBJECT: Code = ("121029", "DCM", "Subject Name")
STARTED: Code = ("111526", "DCM", "DateTime Started")
STUDY_DATE: Code = ("111060", "DCM", "Study Date")
SERIES_UID: Code = ("112002", "DCM", "Series Instance UID")
SOURCE: Code = ("121112", "DCM", "Source of Measurement")
LENGTH: Code = ("410668003", "SCT", "Length")
MILLIMETRE: Code = ("mm", "UCUM", "millimeter")
SIZES = ("9.4", "23", "4.75", "112.5")


def add_code(rec: Recorder, keyword: str, code: Code) -> None:
    """A code sequence item, which stays word for word."""
    item = rec.item(keyword)
    item.keep("CodeValue", code[0], "1")
    item.keep("CodingSchemeDesignator", code[1], "1")
    item.keep("CodeMeaning", code[2], "1")


def _content(rec: Recorder, relation: str, kind: str, concept: Code) -> Recorder:
    item = rec.item("ContentSequence")
    item.keep("RelationshipType", relation, "1")
    item.keep("ValueType", kind, "1")
    add_code(item, "ConceptNameCodeSequence", concept)
    return item


def _sentence(rec: Recorder, concept: Code, what: Phrase | str) -> None:
    _content(rec, "CONTAINS", "TEXT", concept).describe("TextValue", what, "1")


def add_report(rec: Recorder, series: Series) -> None:
    """The document's own modules and its tree."""
    study, who, rng = series.study, series.study.who, series.rng
    for row in technical.BY_MODALITY["SR"].strip().splitlines():
        keyword, kind, value = row.split(" ", 2)
        rec.keep(keyword, value, kind) if keyword != "ContentLabel" else None
    rec.keep("ValueType", "CONTAINER", "1")
    rec.keep("ContinuityOfContent", "SEPARATE", "1")
    add_code(rec, "ConceptNameCodeSequence", REPORT)
    observer = rec.item("VerifyingObserverSequence", stays=False)
    observer.remove("VerifyingObserverName", who.reading.dicom, NAMES, planted=who.reading.words)
    observer.remove("VerifyingOrganization", who.hospital, PLACES)
    observer.date("VerificationDateTime", f"{study.day:%Y%m%d}{study.time}")
    request = rec.item("ReferencedRequestSequence", stays=False)
    request.uid("StudyInstanceUID", study.uid)
    request.remove("AccessionNumber", study.accession, OTHER)
    request.remove("RequestedProcedureID", f"RP{study.number}", OTHER)
    request.carry("RequestedProcedureDescription", "CT")

    spoken = _content(rec, "HAS CONCEPT MOD", "CODE", LANGUAGE)
    add_code(spoken, "ConceptCodeSequence", ENGLISH)
    seen = _content(rec, "HAS OBS CONTEXT", "PNAME", OBSERVER)
    seen.remove("PersonName", who.reading.dicom, NAMES, planted=who.reading.words, kind="1")
    subject = _content(rec, "HAS OBS CONTEXT", "PNAME", SUBJECT)
    subject.remove("PersonName", who.name.dicom, NAMES, planted=who.name.words, kind="1")
    when = _content(rec, "HAS OBS CONTEXT", "DATETIME", STARTED)
    when.date("DateTime", f"{study.day:%Y%m%d}{study.time}.5")
    day = _content(rec, "HAS OBS CONTEXT", "DATE", STUDY_DATE)
    day.date("Date", f"{study.day:%Y%m%d}")

    history, more, third = rng.sample(
        series.own.of(clinical.HISTORIES, widened.HISTORIES, unseen.HISTORIES, fresh.HISTORIES), 3
    )
    _sentence(rec, HISTORY, letter(history, more, who, rng, study.day) or history)
    findings = _content(rec, "CONTAINS", "CONTAINER", FINDINGS)
    findings.keep("ContinuityOfContent", "SEPARATE", "1")
    for text in rng.sample(series.own.of(clinical.FINDINGS, widened.FINDINGS, unseen.FINDINGS, fresh.FINDINGS), 3):
        planted = planted_in(text, who, rng, study.day, limit=400) if rng.random() < 0.5 else None
        _sentence(findings, FINDING, planted or text)
    size = _content(findings, "CONTAINS", "NUM", LENGTH)
    measured = size.item("MeasuredValueSequence")
    measured.keep("NumericValue", rng.choice(SIZES), "1")
    add_code(measured, "MeasurementUnitsCodeSequence", MILLIMETRE)
    source = _content(findings, "CONTAINS", "UIDREF", SERIES_UID)
    source.uid("UID", series.pick("source", [fresh_uid(rng)]), "1")
    for sop_class, uid in series.sources[:2]:
        image = _content(findings, "CONTAINS", "IMAGE", SOURCE)
        reference = image.item("ReferencedSOPSequence")
        reference.keep("ReferencedSOPClassUID", sop_class, "1")
        reference.uid("ReferencedSOPInstanceUID", uid, "1")
    advice = rng.choice(series.own.of(clinical.ADVICE, widened.ADVICE, unseen.ADVICE, fresh.ADVICE))
    _sentence(rec, RECOMMENDATION, planted_in(advice, who, rng, study.day, limit=400) or advice)
    _sentence(rec, CONCLUSION, letter(third, advice, who, rng, study.day) or third)
    if series.sources:
        evidence = rec.item("CurrentRequestedProcedureEvidenceSequence")
        evidence.uid("StudyInstanceUID", study.uid, "1")
        sourced = evidence.item("ReferencedSeriesSequence")
        sourced.uid("SeriesInstanceUID", series.pick("source", [digits(rng, 9)]), "1")
        for sop_class, uid in series.sources[:2]:
            reference = sourced.item("ReferencedSOPSequence")
            reference.keep("ReferencedSOPClassUID", sop_class, "1")
            reference.uid("ReferencedSOPInstanceUID", uid, "1")
