"""Encapsulated documents: replaced as a whole by a blank one of the same kind (PS3.15 Table E.1-1: D).

The standard defines no cleaning of a document's inside, so what is written here is fixed: one empty page, a clinical
document that says nothing, a solid without facets. It is valid, of the class's own MIME type, and of even length, so
that no padding byte belongs to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from gateway.errors import Hold
from gateway.header.elements import Element, Reader
from gateway.header.encoding import element
from gateway.header.items import value_of
from gateway.study import IMPLEMENTATION_CLASS_UID

BURNED_IN, DOCUMENT_TITLE = 0x00280301, 0x00420010
DOCUMENT, MIME_TYPE, LENGTH, HL7_INSTANCE = 0x00420011, 0x00420012, 0x00420015, 0x0040E001
DOCUMENTS = "1.2.840.10008.5.1.4.1.1.104."


class Blank(NamedTuple):
    """What stands in for a document, and the MIME types it may be called by (compared in lower case)."""

    data: bytes
    mime_types: tuple[str, ...]


def _pdf() -> bytes:
    """A PDF 1.4 of one empty page (ISO 32000-1 7.5)."""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<<>>>>",
    )
    out = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 4\n0000000000 65535 f \n" + table
    return out + b"trailer\n<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start


def _cda() -> bytes:
    """A CDA R2 document with the elements that its schema demands and nobody in it."""
    nobody = '<id nullFlavor="NA"/>'
    organization = f"<assignedCustodian><representedCustodianOrganization>{nobody}</representedCustodianOrganization>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ClinicalDocument xmlns="urn:hl7-org:v3" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        '<typeId root="2.16.840.1.113883.1.3" extension="POCD_HD000040"/>'
        f'<id root="{IMPLEMENTATION_CLASS_UID}"/><code nullFlavor="NA"/><title>Removed</title>'
        '<effectiveTime value="20000101120000"/><confidentialityCode nullFlavor="NA"/>'
        f"<recordTarget><patientRole>{nobody}</patientRole></recordTarget>"
        f'<author><time nullFlavor="NA"/><assignedAuthor>{nobody}</assignedAuthor></author>'
        f"<custodian>{organization}</assignedCustodian></custodian>"
        "<component><nonXMLBody><text>Removed</text></nonXMLBody></component></ClinicalDocument>"
    ).encode()


def _even(data: bytes) -> bytes:
    return data + b"\n" * (len(data) % 2)


BLANKS = {
    DOCUMENTS + "1": Blank(_even(_pdf()), ("application/pdf",)),
    DOCUMENTS + "2": Blank(_even(_cda()), ("text/xml", "application/xml")),
    DOCUMENTS + "3": Blank(b"Removed".ljust(80) + bytes(4), ("model/stl",)),  # binary STL: header, no triangle
    DOCUMENTS + "4": Blank(_even(b"# removed\n"), ("model/obj",)),
    DOCUMENTS + "5": Blank(_even(b"# removed\n"), ("model/mtl",)),
}


def replaced_document(sop_class: str, elements: Sequence[Element], reader: Reader) -> list[tuple[int, bytes]]:
    """The elements that stand in for a document's own, as (tag, encoded element); [] for an object of another kind.

    Raises Hold for a kind of document that has no blank here, and for one whose MIME type is not that of its class.
    """
    if not sop_class.startswith(DOCUMENTS):
        return []
    blank = BLANKS.get(sop_class)
    mime_type = value_of(elements, MIME_TYPE, reader).decode("latin-1")
    if blank is None or mime_type.lower() not in blank.mime_types:
        raise Hold("encapsulated_document", at=f"{MIME_TYPE:08X}")
    syntax = reader.syntax
    order = ">" if syntax.big else "<"
    stamps = [
        (BURNED_IN, element(syntax, BURNED_IN, "CS", b"NO")),
        (DOCUMENT, element(syntax, DOCUMENT, "OB", blank.data)),
        (MIME_TYPE, element(syntax, MIME_TYPE, "LO", mime_type.encode("latin-1"))),
        (LENGTH, element(syntax, LENGTH, "UL", struct.pack(order + "I", len(blank.data)))),
    ]
    if any(one.tag == HL7_INSTANCE for one in elements):
        stamps.append((HL7_INSTANCE, element(syntax, HL7_INSTANCE, "ST", IMPLEMENTATION_CLASS_UID.encode())))
    return sorted(stamps)
