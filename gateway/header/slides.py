"""Whole slide microscopy: pictures of the slide's label are left out of the study (cases.md 10).

PS3.3 C.8.12.4.1.1: the third value of Image Type says what is shown. A LABEL picture is the label and nothing else; an
OVERVIEW shows the whole slide, with the label on it. Specimen Label in Image (0048,0010) says it of any other picture.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.errors import Drop
from gateway.header.elements import Element, Reader
from gateway.header.items import value_of

WHOLE_SLIDE = frozenset({"1.2.840.10008.5.1.4.1.1.77.1.6", "1.2.840.10008.5.1.4.1.1.77.1.7"})
SHOWS_THE_LABEL = frozenset({"LABEL", "OVERVIEW"})
IMAGE_TYPE, MODALITY, LABEL_IN_IMAGE = 0x00080008, 0x00080060, 0x00480010
LABELLED = (IMAGE_TYPE, MODALITY, LABEL_IN_IMAGE)  # what says whether there is one


def drop_label(sop_class: str, elements: Sequence[Element], reader: Reader) -> None:
    """Raises Drop for a picture that shows a slide's label."""
    if sop_class not in WHOLE_SLIDE and value_of(elements, MODALITY, reader) != b"SM":
        return
    kinds = {one.strip(" \0") for one in value_of(elements, IMAGE_TYPE, reader).decode("latin-1").upper().split("\\")}
    if kinds & SHOWS_THE_LABEL:
        raise Drop("slide_label", at=f"{IMAGE_TYPE:08X}")
    if value_of(elements, LABEL_IN_IMAGE, reader).upper() == b"YES":
        raise Drop("slide_label", at=f"{LABEL_IN_IMAGE:08X}")
