"""The Clean Structured Content Option: content items of reports, one by one (PS3.15 E.3.4, Table E.3.4-1).

An item's concept and value type find its row in the table; an item without a row is judged by its value type alone:

    PNAME      a dummy                            UIDREF, IMAGE, COMPOSITE, WAVEFORM     mapped UIDs
    TEXT       cleaned, or a fixed text           DATE, TIME, DATETIME                   shifted, kept, or a dummy
    NUM        kept; ages over 89 are capped      CODE, SCOORD, TCOORD, CONTAINER        kept

An item that the table removes (X) goes with everything below it, unless something hangs on it: a value with content of
its own below it, or a report whose items refer to each other by position (PS3.3 C.17.3.2.5), keeps the item with a
dummy in it; so do steps of a specimen's preparation, whose identifiers are those of the specimen. X/D is always a
dummy: what a template requires is not known here. Everything in an item that is not its
value is treated as in any other sequence: evidence, observers, observation times, units, codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from gateway.header.actions import FULL_DATES, MODIFIED_DATES, Act, Decision
from gateway.header.elements import Buffer, Element, Reader
from gateway.header.items import CONTENT_SEQUENCE, UNCHANGED, Override, Overrides, elements_of, items_of, value_of
from gateway.policy.content_table import ContentRow, content_row
from gateway.policy.standard import DEFAULT_EDITION

OPTION = "clean-structured-content"
ACQUISITION_CONTEXT, PREPARATION_STEP_ITEMS = 0x00400555, 0x00400612
CONTENT = frozenset({CONTENT_SEQUENCE, ACQUISITION_CONTEXT, PREPARATION_STEP_ITEMS})  # items with a Content Item Macro
WAVEFORM_ANNOTATION, MEASURED_VALUE = 0x0040B020, 0x0040A300

VALUE_TYPE, CONCEPT_NAME, MEASURED_UNITS = 0x0040A040, 0x0040A043, 0x004008EA
CODE_VALUE, SCHEME, LONG_CODE_VALUE, URN_CODE_VALUE = 0x00080100, 0x00080102, 0x00080119, 0x00080120
NUMERIC_VALUE, FLOATING_VALUE, RATIONAL_NUMERATOR = 0x0040A30A, 0x0040A161, 0x0040A162
VALUES = {
    "TEXT": 0x0040A160,
    "PNAME": 0x0040A123,
    "DATE": 0x0040A121,
    "TIME": 0x0040A122,
    "DATETIME": 0x0040A120,
    "UIDREF": 0x0040A124,
    "NUM": MEASURED_VALUE,
    "CODE": 0x0040A168,
    "IMAGE": 0x00081199,
    "COMPOSITE": 0x00081199,
    "WAVEFORM": 0x00081199,
    "CONTAINER": CONTENT_SEQUENCE,
}
TEMPORAL_TYPES = frozenset({"DATE", "TIME", "DATETIME"})
REFERENCES = frozenset({"IMAGE", "COMPOSITE", "WAVEFORM"})
WHOLE = frozenset({"CONTAINER", "CODE", "NUM"}) | REFERENCES  # what hangs on these goes with them
REMOVED_TEXT = b"Removed"
# TEXT items outside the table that tell findings apart, as (0062,0020) does elsewhere: a keyed token does that, too.
IDENTIFIERS = frozenset({("DCM", "112039")})  # Tracking Identifier
MAX_AGE = 89
_YEARS, _MONTHS = b"a", b"mo"  # UCUM
_BY_POSITION = (b"\x40\x00\x73\xdb", b"\x00\x40\xdb\x73")  # Referenced Content Item Identifier, in both byte orders

_KEEP = Decision(Act.KEEP, Act.DUMMY, OPTION)
_DUMMY = Decision(Act.DUMMY, Act.DUMMY, OPTION)
_SHIFT = Decision(Act.SHIFT, Act.DUMMY, OPTION)
_UID = Decision(Act.UID, Act.UID, OPTION)
_EMPTY = Decision(Act.ZERO, Act.ZERO, OPTION)

CleanText = Callable[[bytes], bytes]


def refers_by_position(data: Buffer) -> bool:
    """True when items of the report may refer to each other by their place in it (rarely true by chance)."""
    whole = bytes(data)
    return any(tag in whole for tag in _BY_POSITION)


class ContentItems:
    """The rule for content items under a policy's options. `clean_text` is there with the option clean-descriptors.

    `all_stay`: no item goes; `identifiers`: texts are identifiers, which a keyed token replaces.
    """

    def __init__(
        self,
        options: AbstractSet[str],
        clean_text: CleanText | None,
        edition: str = DEFAULT_EDITION,
        *,
        all_stay: bool,
        identifiers: bool = False,
    ) -> None:
        self._options = options
        self._clean_text = clean_text
        self._edition = edition
        self._all_stay = all_stay
        self._identifiers = identifiers

    def __call__(self, elements: Sequence[Element], reader: Reader, depth: int) -> Overrides | None:
        kind = value_of(elements, VALUE_TYPE, reader).decode("latin-1")
        tag = VALUES.get(kind)
        if tag is None:
            return UNCHANGED  # by reference, coordinates, or no value type of the standard: attribute by attribute
        concept = _concept(elements, reader, depth)
        code = self._code(content_row(*concept, kind, self._edition))
        if not code and kind == "TEXT" and concept in IDENTIFIERS:
            code = "D"
        if code == "X" and not self._must_stay(kind, elements):
            return None
        override = self._override(kind, code, value_of(elements, tag, reader))
        return UNCHANGED if override is None else {tag: override}

    def _code(self, row: ContentRow | None) -> str:
        """The row's code under these options, "" without a row. C beats K where two options disagree."""
        if row is None:
            return ""
        asked = {code for option, code in row.columns.items() if option in self._options}
        if "C" in asked and (row.value_type != "TEXT" or self._clean_text is not None):
            return "C"
        return "K" if "K" in asked else row.basic

    def _must_stay(self, kind: str, elements: Sequence[Element]) -> bool:
        below = any(element.tag == CONTENT_SEQUENCE and element.end > element.start for element in elements)
        return self._all_stay or (below and kind not in WHOLE)

    def _override(self, kind: str, code: str, value: bytes) -> Override | None:
        """What becomes of the value; None for what the plan does with it, entering what is in it."""
        if kind in REFERENCES or kind == "CONTAINER":
            return None
        if kind in ("CODE", "NUM"):
            return None if code != "X" else _EMPTY if kind == "NUM" else _DUMMY
        if code == "K":
            return _KEEP
        if kind == "UIDREF":
            return _KEEP if not code and "retain-uids" in self._options else _UID
        if kind == "TEXT":
            return self._text(code, value)
        if kind in TEMPORAL_TYPES and code in ("C", ""):
            if MODIFIED_DATES in self._options:
                return _SHIFT
            return _KEEP if FULL_DATES in self._options else _DUMMY
        return _DUMMY

    def _text(self, code: str, value: bytes) -> Override:
        if not value:
            return b""
        if code in ("C", "") and self._clean_text is not None:
            return self._clean_text(value) or REMOVED_TEXT
        return REMOVED_TEXT if code in ("", "X") and not self._identifiers else _DUMMY


def _concept(elements: Sequence[Element], reader: Reader, depth: int) -> tuple[str, str]:
    """(coding scheme, code) of an item's concept name; ("", "") without one. Raises Malformed."""
    return next(iter(_codes(elements, CONCEPT_NAME, reader, depth)), ("", ""))


def _codes(elements: Sequence[Element], tag: int, reader: Reader, depth: int) -> list[tuple[str, str]]:
    found = []
    for item, inner in items_of(elements, tag, reader, depth):
        parts = elements_of(item, inner, depth + 1)
        code = next((one for one in (value_of(parts, tag, inner) for tag in _CODE_TAGS) if one), b"")
        found.append((value_of(parts, SCHEME, inner).decode("latin-1"), code.decode("latin-1")))
    return found


_CODE_TAGS = (CODE_VALUE, LONG_CODE_VALUE, URN_CODE_VALUE)


def cap_age(elements: Sequence[Element], reader: Reader, depth: int) -> Overrides | None:
    """The rule for items of Measured Value Sequence: an age over 89 years is written as 90 (45 CFR 164.514(b)(2)).

    Any number of years that large is taken for an age; nothing else in a report is that old.
    """
    limits = {("UCUM", _YEARS.decode()): MAX_AGE, ("UCUM", _MONTHS.decode()): MAX_AGE * 12 + 11}
    limit = next((limits[unit] for unit in _codes(elements, MEASURED_UNITS, reader, depth) if unit in limits), None)
    try:
        number = float(value_of(elements, NUMERIC_VALUE, reader))
    except ValueError:
        return UNCHANGED  # no number: the plan does not keep it
    if limit is None or number <= limit:
        return UNCHANGED
    gone = Decision(Act.REMOVE, Act.REMOVE, "age")
    capped = str(MAX_AGE + 1 if limit == MAX_AGE else (MAX_AGE + 1) * 12).encode()
    return {NUMERIC_VALUE: capped, FLOATING_VALUE: gone, RATIONAL_NUMERATOR: gone, RATIONAL_NUMERATOR + 1: gone}
