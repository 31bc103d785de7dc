"""The Clean Graphics Option: what of graphic annotations can be kept (PS3.15 E.3.3).

Vector graphics stay: points, circles, polylines, compound graphics. Text beside them goes, or is cleaned when the
option clean-descriptors is on as well; an annotation that is nothing but text goes with it. Overlays and curves are
pictures: text may be drawn in them, and nothing here looks for it. They go as in the Basic Profile, and an object that
lost one does not claim this option.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from gateway.header.actions import Act, Decision
from gateway.header.elements import Element, Reader
from gateway.header.items import UNCHANGED, Overrides

OPTION = "clean-graphics"
GRAPHIC_ANNOTATION = 0x00700001
TEXT_OBJECTS, GRAPHIC_OBJECTS, COMPOUND_GRAPHICS = 0x00700008, 0x00700009, 0x00700209
_NO_TEXT: Overrides = {TEXT_OBJECTS: Decision(Act.REMOVE, Act.REMOVE, OPTION)}


class Annotations:
    """The rule for items of a Graphic Annotation Sequence."""

    def __init__(self, options: AbstractSet[str]) -> None:
        self._text_is_cleaned = "clean-descriptors" in options

    def __call__(self, elements: Sequence[Element], reader: Reader, depth: int) -> Overrides | None:  # noqa: ARG002
        if self._text_is_cleaned:
            return UNCHANGED
        drawn = any(
            element.tag in (GRAPHIC_OBJECTS, COMPOUND_GRAPHICS) and element.end > element.start for element in elements
        )
        return _NO_TEXT if drawn else None
