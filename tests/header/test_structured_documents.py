"""Documents inside objects and pictures of slide labels: replaced, held, or left out (cases.md 10, 16)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from header_objects import BASIC, SYNTAXES, ct_base, policy, scrub
from pydicom.dataset import Dataset

from gateway.errors import Drop, Hold
from gateway.header.encapsulated import BLANKS

REPLACE = policy(encapsulated="replace")
PDF, CDA, STL = (f"1.2.840.10008.5.1.4.1.1.104.{i}" for i in (1, 2, 3))
WSI = "1.2.840.10008.5.1.4.1.1.77.1.6"


def document(sop_class: str, mime_type: str, data: bytes = b"LEAKTEST^ZZSYNTH 19500131") -> Dataset:
    ds = ct_base()
    ds.SOPClassUID, ds.Modality = sop_class, "DOC"
    for keyword in ("PixelData", "Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation", "ImageType"):
        del ds[keyword]
    for keyword in ("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "SliceThickness", "KVP"):
        del ds[keyword]
    ds.ConversionType, ds.BurnedInAnnotation = "WSD", "YES"
    ds.ContentDate, ds.ContentTime, ds.AcquisitionDateTime = "20200131", "101500", "20200131"
    ds.DocumentTitle, ds.ConceptNameCodeSequence = "Report on LEAKTEST", []
    ds.MIMETypeOfEncapsulatedDocument = mime_type
    ds.EncapsulatedDocumentLength = len(data)
    ds.EncapsulatedDocument = data + b"\0" * (len(data) % 2)
    if sop_class == CDA:
        ds.HL7InstanceIdentifier = "1.2.3^LEAK0001"
    return ds


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize(
    ("sop_class", "mime_type"),
    [(PDF, "application/pdf"), (CDA, "text/XML"), (STL, "model/stl"), (f"{PDF[:-1]}4", "model/obj")],
)
def test_case_16_a_document_is_replaced_by_a_blank_one_of_its_kind(
    tmp_path: Path, sop_class: str, mime_type: str, syntax: str
) -> None:
    out = scrub(tmp_path, document(sop_class, mime_type), REPLACE, syntax)
    assert out.has_plant() == []
    assert out.ds.EncapsulatedDocument == BLANKS[sop_class].data
    assert out.ds.EncapsulatedDocumentLength == len(out.ds.EncapsulatedDocument)
    assert out.ds.EncapsulatedDocumentLength % 2 == 0
    assert out.ds.MIMETypeOfEncapsulatedDocument == mime_type
    assert out.ds.BurnedInAnnotation == "NO"
    assert out.ds.DocumentTitle == ""  # Type 2


def test_the_blank_documents_are_what_their_mime_types_say() -> None:
    pdf = BLANKS[PDF].data
    assert pdf.startswith(b"%PDF-1.4\n")
    assert pdf.rstrip().endswith(b"%%EOF")
    start = int(re.search(rb"startxref\n(\d+)", pdf)[1])
    assert pdf[start:].startswith(b"xref\n0 4\n")
    offsets = [int(line[:10]) for line in pdf[start:].splitlines()[3:6]]
    assert [pdf[at : at + 7] for at in offsets] == [b"1 0 obj", b"2 0 obj", b"3 0 obj"]
    root = ET.fromstring(BLANKS[CDA].data)
    assert root.tag == "{urn:hl7-org:v3}ClinicalDocument"
    parts = [child.tag.rpartition("}")[2] for child in root]
    assert parts == [
        *("typeId", "id", "code", "title", "effectiveTime", "confidentialityCode"),
        *("recordTarget", "author", "custodian", "component"),
    ]
    stl = BLANKS[STL].data  # 80 bytes of header, the number of triangles
    assert (len(stl), stl[80:]) == (84, bytes(4))


def test_without_the_policys_word_documents_are_held(tmp_path: Path) -> None:
    for sop_class, mime_type in ((PDF, "application/pdf"), (CDA, "text/xml")):
        with pytest.raises(Hold) as held:
            scrub(tmp_path, document(sop_class, mime_type), BASIC)
        assert held.value.reason == "encapsulated_document"


@pytest.mark.parametrize("sop_class", [PDF, f"{PDF[:-1]}9", "1.2.840.10008.5.1.4.1.1.2"])
def test_a_document_of_another_kind_than_its_class_is_held(tmp_path: Path, sop_class: str) -> None:
    with pytest.raises(Hold) as held:
        scrub(tmp_path, document(sop_class, "text/html"), REPLACE)
    assert held.value.reason in ("encapsulated_document", "unknown_sop_class")


# -- slides -----------------------------------------------------------------------------------------------------------


def slide(kind: str, label: str = "NO") -> Dataset:
    ds = ct_base()
    ds.SOPClassUID, ds.Modality = WSI, "SM"
    ds.ImageType = ["ORIGINAL", "PRIMARY", kind, "NONE"]
    ds.SpecimenLabelInImage = label
    return ds


@pytest.mark.parametrize(("kind", "label"), [("LABEL", "YES"), ("LABEL", "NO"), ("OVERVIEW", "NO"), ("VOLUME", "YES")])
def test_case_10_a_picture_that_shows_a_slides_label_is_dropped(tmp_path: Path, kind: str, label: str) -> None:
    with pytest.raises(Drop) as dropped:
        scrub(tmp_path, slide(kind, label), BASIC)
    assert dropped.value.reason == "slide_label"
    assert not (tmp_path / "out.dcm").exists()


@pytest.mark.parametrize("kind", ["VOLUME", "THUMBNAIL"])
def test_the_tissue_stays_and_says_that_no_label_is_in_it(tmp_path: Path, kind: str) -> None:
    assert scrub(tmp_path, slide(kind), BASIC).ds.SpecimenLabelInImage == "NO"


def test_the_same_words_in_the_image_type_of_other_modalities_mean_something_else(tmp_path: Path) -> None:
    ds = ct_base()
    ds.ImageType = ["DERIVED", "SECONDARY", "OVERVIEW"]
    assert scrub(tmp_path, ds, BASIC).ds.ImageType[2] == "OVERVIEW"
