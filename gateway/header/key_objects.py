"""Key Object Selection documents: what their Content Sequence may keep without the Clean Structured Content Option.

The Basic Profile replaces the Content Sequence by a dummy (D). For a key object the dummy that means something is the
selection itself: items that only refer to instances, with mapped UIDs. Descriptions, observers and every other content
item go (PS3.3 C.17.6.2, PS3.16 TID 2010).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.errors import Hold
from gateway.header.elements import Element, Reader
from gateway.header.items import CONTENT_SEQUENCE, UNCHANGED, Overrides, value_of

KEY_OBJECT_SELECTION = "1.2.840.10008.5.1.4.1.1.88.59"
VALUE_TYPE = 0x0040A040
REFERENCES = frozenset({b"IMAGE", b"COMPOSITE", b"WAVEFORM"})


def references_only(elements: Sequence[Element], reader: Reader, depth: int) -> Overrides | None:
    """The rule for the items of a key object's Content Sequence. Raises Hold for content inside content."""
    if depth > 1 or any(element.tag == CONTENT_SEQUENCE for element in elements):
        raise Hold("structured_content", at=f"{CONTENT_SEQUENCE:08X}")
    return UNCHANGED if value_of(elements, VALUE_TYPE, reader) in REFERENCES else None
