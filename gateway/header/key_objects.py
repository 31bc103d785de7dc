"""Key Object Selection documents: what their Content Sequence may keep without the Clean Structured Content Option.

The Basic Profile replaces the Content Sequence by a dummy (D). For a key object the dummy that means something is the
selection itself: items that only refer to instances, with mapped UIDs. Descriptions, observers and every other content
item go (PS3.3 C.17.6.2, PS3.16 TID 2010).
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.header.elements import Buffer, Element

KEY_OBJECT_SELECTION = "1.2.840.10008.5.1.4.1.1.88.59"
VALUE_TYPE = 0x0040A040
REFERENCES = frozenset({b"IMAGE", b"COMPOSITE", b"WAVEFORM"})


def is_reference(elements: Iterable[Element], buffer: Buffer) -> bool:
    """True for a content item that refers to an instance."""
    return any(
        bytes(buffer[element.start : element.end]).strip(b" \0") in REFERENCES
        for element in elements
        if element.tag == VALUE_TYPE
    )
