"""A blank document says nothing and needs nobody's judgement; one byte more, and it is a document again."""

from __future__ import annotations

import pytest
from gate_cases import encode
from pydicom.dataset import Dataset

from gateway.gate.aspects import aspects_of
from gateway.gate.bytescan import scan_bytes
from gateway.header.encapsulated import BLANKS


def aspects(document: bytes) -> frozenset[str]:
    ds = Dataset()
    ds.add_new(0x00420011, "OB", document)
    ds.SOPClassUID, ds.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.104.1", "1.2.3"
    return aspects_of(scan_bytes(encode(ds)))


@pytest.mark.parametrize("sop_class", BLANKS)
def test_the_header_stage_s_blank_documents_are_known_byte_for_byte(sop_class: str) -> None:
    blank = BLANKS[sop_class].data
    assert aspects(blank) == {"header"}
    for other in (blank[:-2], blank + b"\n\n", blank.replace(b"e", b"f"), b"x" + blank[1:]):
        assert aspects(other) == {"header", "document_content"}
