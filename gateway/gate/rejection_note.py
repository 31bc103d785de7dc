"""The gate on a rejection note: nothing is in it but a template's words and UIDs that left before.

It knows the template by itself, and not who wrote the file. Every element at every depth must be one that a note has,
with a value that it may have: a fixed word, the pseudonym, a new UID of the study, a time. Anything else holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pydicom

from gateway.errors import Hold
from gateway.gate.encoding import judge_encoding
from gateway.gate.judgement import describe
from gateway.gate.reading import Pair, judging
from gateway.study import Clearance, Outcome

KEY_OBJECTS = "1.2.840.10008.5.1.4.1.1.88.59"
METHOD = "made by the gateway; nothing of a patient"
MEANINGS = {
    "113037": "Rejected for Patient Safety Reasons",
    "113038": "Incorrect Modality Worklist Entry",
    "113039": "Data Retention Policy Expired",
}
_EMPTY = frozenset({""})
_WORDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("StudyDate", "StudyTime", "AccessionNumber", "ReferringPhysicianName", "StudyID"), _EMPTY),
    **dict.fromkeys(("PatientName", "PatientBirthDate", "PatientSex", "Manufacturer"), _EMPTY),
    "SpecificCharacterSet": frozenset({"ISO_IR 192"}),
    "SOPClassUID": frozenset({KEY_OBJECTS}),
    "PatientIdentityRemoved": frozenset({"YES"}),
    "DeidentificationMethod": frozenset({METHOD}),
    "Modality": frozenset({"KO"}),
    "SeriesNumber": frozenset({"1"}),
    "InstanceNumber": frozenset({"1"}),
    "TimezoneOffsetFromUTC": frozenset({"+0000"}),
    "ValueType": frozenset({"CONTAINER", "IMAGE", "WAVEFORM", "COMPOSITE"}),
    "ContinuityOfContent": frozenset({"SEPARATE"}),
    "RelationshipType": frozenset({"CONTAINS"}),
    "MappingResource": frozenset({"DCMR"}),
    "TemplateIdentifier": frozenset({"2010"}),
    "CodeValue": frozenset(MEANINGS),
    "CodingSchemeDesignator": frozenset({"DCM"}),
    "CodeMeaning": frozenset(MEANINGS.values()),
}
_FORMS: Mapping[str, str] = {"ContentDate": r"[0-9]{8}", "ContentTime": r"[0-9]{6}", "SOPInstanceUID": r"2\.25\.[0-9]+"}
_SEQUENCES = frozenset(
    {
        *("ReferencedPerformedProcedureStepSequence", "CurrentRequestedProcedureEvidenceSequence"),
        *("ReferencedSeriesSequence", "ReferencedSOPSequence", "ConceptNameCodeSequence", "ContentTemplateSequence"),
        "ContentSequence",
    }
)


def clear_note(
    path: Path,
    *,
    name: str,
    about: Clearance,
    delivered: Sequence[str],
    pseudonym: str,
    study_uid: str,
    series_uids: frozenset[str],
    seal_key: bytes,
) -> Clearance:
    """Clear a note `about` what another clearance let go, of which the receiver has the instances `delivered`.

    Raises Hold: "clearance_broken" when that clearance is not ours, "gate_failed" for a file that cannot be read,
    "output_invalid" for anything in it that a note does not have.
    """
    if not about.is_sealed_by(seal_key):
        raise Hold("clearance_broken", at="the seal of what was sent")
    named = {one.sop_instance_uid: one.sop_class_uid for one in about.instances if one.name in delivered}
    with judging(name):
        pair = Pair(name, path, path)
        if judge_encoding([pair]).outcome is not Outcome.PASS:
            raise Hold("output_invalid", at=name)
        note = pydicom.dcmread(path)
        may = {
            "PatientID": frozenset({pseudonym}),
            "StudyInstanceUID": frozenset({study_uid}),
            "ReferencedSOPInstanceUID": frozenset(named),
            "ReferencedSOPClassUID": frozenset(named.values()),
        }
        for place in _strange(note, {**_WORDS, **may}, series_uids):
            raise Hold("output_invalid", at=f"{name} {place}")
        _require_all(note, named, name)
        described = describe(pair)
    return Clearance(
        job_key=about.job_key,
        policy_digest=about.policy_digest,
        destination=about.destination,
        issuer="gate",
        verdicts=("rejection_note=pass",),
        not_assessed=(),
        instances=(described,),
    ).sealed(seal_key)


def _strange(
    dataset: pydicom.Dataset, words: Mapping[str, frozenset[str]], series: frozenset[str], depth: int = 0
) -> Iterator[str]:
    """Tags of what a note does not have, or not with this value."""
    for element in dataset:
        keyword, value = element.keyword, str(element.value if element.value is not None else "")
        if keyword in _SEQUENCES and element.VR == "SQ" and depth < 6:
            for item in element.value:
                yield from _strange(item, words, series, depth + 1)
        elif keyword == "SeriesInstanceUID":
            if not (value in series if depth else re.fullmatch(r"2\.25\.[0-9]+", value)):
                yield str(element.tag)
        elif keyword in _FORMS:
            if not re.fullmatch(_FORMS[keyword], value):
                yield str(element.tag)
        elif value not in words.get(keyword, frozenset()):
            yield str(element.tag)


def _require_all(note: pydicom.Dataset, named: Mapping[str, str], name: str) -> None:
    """Every delivered instance is in the evidence and in the content, each once, with its class; and the title fits."""
    (study,) = note.CurrentRequestedProcedureEvidenceSequence
    evidence = [one for series in study.ReferencedSeriesSequence for one in series.ReferencedSOPSequence]
    content = [one for item in note.ContentSequence for one in item.ReferencedSOPSequence]
    (title,) = note.ConceptNameCodeSequence
    for references in (evidence, content):
        told = {str(one.ReferencedSOPInstanceUID): str(one.ReferencedSOPClassUID) for one in references}
        if told != named or len(references) != len(named):
            raise Hold("output_invalid", at=f"{name} (0008,1199)")
    if MEANINGS[str(title.CodeValue)] != str(title.CodeMeaning):
        raise Hold("output_invalid", at=f"{name} (0040,A043)")
