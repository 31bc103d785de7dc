"""Structured reports for the header tests: small trees of content items, built with pydicom."""

from __future__ import annotations

from header_objects import CT, ct_base, one
from pydicom.dataset import Dataset

COMPREHENSIVE = "1.2.840.10008.5.1.4.1.1.88.33"
UID, INSTANCE = "1.2.3.77", "1.2.3.88"
VALUES = {
    "TEXT": {"TextValue": "seen with Leaktest Zzsynth, born 31 Jan 1950"},
    "PNAME": {"PersonName": "Somebody^Else"},
    "DATE": {"Date": "20200131"},
    "TIME": {"Time": "101500"},
    "DATETIME": {"DateTime": "20200131101500"},
    "UIDREF": {"UID": UID},
    "CONTAINER": {"ContinuityOfContent": "SEPARATE"},
}
VALUE_OF = {
    **{kind: next(iter(values)) for kind, values in VALUES.items() if kind != "CONTAINER"},
    "NUM": "MeasuredValueSequence",
    "CODE": "ConceptCodeSequence",
    "IMAGE": "ReferencedSOPSequence",
    "COMPOSITE": "ReferencedSOPSequence",
    "WAVEFORM": "ReferencedSOPSequence",
}


def code(value: str, scheme: str, meaning: str = "Meaning") -> Dataset:
    return one(CodeValue=value, CodingSchemeDesignator=scheme, CodeMeaning=meaning)


def measured(number: str, unit: str = "mm") -> Dataset:
    return one(NumericValue=number, MeasurementUnitsCodeSequence=[code(unit, "UCUM", unit)])


def content(kind: str, concept: tuple[str, str] | None = ("121071", "DCM"), /, **values: object) -> Dataset:
    """A content item with a value that says who it is about; `values` replace what it holds."""
    item = one(RelationshipType="CONTAINS", ValueType=kind)
    if concept is not None:
        item.ConceptNameCodeSequence = [code(*concept)]
    for keyword, value in {**VALUES.get(kind, {}), **values}.items():
        setattr(item, keyword, value)
    if kind == "NUM" and "MeasuredValueSequence" not in item:
        item.MeasuredValueSequence = [measured("42.5")]
    if kind == "CODE" and "ConceptCodeSequence" not in item:
        item.ConceptCodeSequence = [code("248152002", "SCT", "Female")]
    if kind in ("IMAGE", "COMPOSITE", "WAVEFORM") and "ReferencedSOPSequence" not in item:
        item.ReferencedSOPSequence = [one(ReferencedSOPClassUID=CT, ReferencedSOPInstanceUID=INSTANCE)]
    return item


def report(*items: Dataset, sop_class: str = COMPREHENSIVE) -> Dataset:
    """A report with these items below its title, and an unchanging one behind them."""
    ds = ct_base()
    ds.SOPClassUID, ds.Modality = sop_class, "SR"
    for keyword in ("PixelData", "Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation", "ImageType"):
        del ds[keyword]
    for keyword in ("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "SliceThickness", "KVP"):
        del ds[keyword]
    ds.ContentDate, ds.ContentTime = "20200131", "101500"
    ds.CompletionFlag, ds.VerificationFlag = "COMPLETE", "UNVERIFIED"
    ds.PerformedProcedureCodeSequence = []
    ds.ReferencedPerformedProcedureStepSequence = []
    ds.Manufacturer = "ACME"
    ds.ValueType, ds.ContinuityOfContent = "CONTAINER", "SEPARATE"
    ds.ConceptNameCodeSequence = [code("18748-4", "LN", "Diagnostic Imaging Report")]
    ds.ContentSequence = [*items, content("NUM", ("410668003", "SCT"))]
    return ds
