"""What an object says of its own people: the values of everything that this policy takes away, at every depth.

Names by VR, private ones too; numbers, labels and places by what the attribute is; dates that do not stay. What the
policy keeps is not harvested: it may be said elsewhere as well. Values are collected as bytes, and the words made of
them are remembered for the next object that says the same (`own_words`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from gateway.header.actions import Act
from gateway.header.descriptors_charset import readings_of
from gateway.header.descriptors_own import DATE, LABEL, LOOSE, NAME, NUMBER, PLACE, OwnWords, Said
from gateway.header.descriptors_words import Words
from gateway.header.dictionary import dictionary, is_private, tags_by_keyword
from gateway.header.elements import Element, Malformed, Reader
from gateway.header.plan import Plan
from gateway.policy import load_table

TEXT = frozenset({"LO", "LT", "SH", "ST", "UC", "UT", "AE"})
STAYS = frozenset({Act.KEEP, Act.CLEAN, Act.RECURSE})
CHARACTER_SET = 0x00080005
MAX_VALUE_BYTES = 4096
ITEM_LITTLE, ITEM_BIG = b"\xfe\xff\x00\xe0", b"\xff\xfe\xe0\x00"
PERSON_CODES = 0x00401101  # Person Identification Code Sequence: its meanings are names, its values numbers of staff
CODE_VALUE, CODE_MEANING, LONG_CODE_VALUE = 0x00080100, 0x00080104, 0x00080119
_PERSONAL_NUMBERS = frozenset(
    {
        *("PatientID", "OtherPatientIDs", "MedicalRecordLocator", "AccessionNumber", "AdmissionID", "ServiceEpisodeID"),
        *("RequestedProcedureID", "FillerOrderNumberImagingServiceRequest", "InsurancePlanIdentification"),
        *("PlacerOrderNumberImagingServiceRequest", "FillerOrderNumberProcedure", "PlacerOrderNumberProcedure"),
        *("ClinicalTrialSubjectID", "ClinicalTrialSubjectReadingID", "SpecimenIdentifier", "ContainerIdentifier"),
    }
)
_LABELS = ("ID", "IDs", "Identifier", "Number", "Numbers", "AETitle", "Title", "Locator", "BarcodeValue", "StationName")
# What of loose text may be a name with components or somebody's number: other private values differ in every object.
_MAYBE_SOMEBODY = re.compile(
    rb"[^\x00-\x1a\x1c-\x1f^]+\^[^\x00-\x1a\x1c-\x1f]{1,64}|(?=[\w-]*\d{4})[A-Za-z0-9_-]{5,64}"
)
_COMPONENTS = re.compile(rb"[\^=]")
Entry = tuple[str, bytes, bytes]  # role, value, character set
NOTHING = ""
SEQUENCE = "SQ"


@cache
def _roles() -> dict[int, str]:
    """NUMBER or LABEL by tag; every other text attribute is a PLACE."""
    found = {}
    for keyword, tag in tags_by_keyword().items():
        if keyword in _PERSONAL_NUMBERS:
            found[tag] = NUMBER
        elif keyword.endswith(_LABELS) and "Telephone" not in keyword:
            found[tag] = LABEL
    return found


class Harvest:
    """Collects from one object. `entries` is what was found."""

    def __init__(self, reader: Reader, plan: Plan, edition: str) -> None:
        self.entries: set[Entry] = set()
        self._reader = reader
        self._plan = plan
        self._rows = load_table(edition)
        self._dictionary = dictionary()

    def take(
        self, elements: Sequence[Element], parent: int, character_set: bytes, reader: Reader, depth: int = 0
    ) -> None:
        """All elements of one data set, and of the items in it down to the reader's depth."""
        roles = self._plan.roles.setdefault(parent, {})
        buffer = reader.buffer
        for element in elements:
            role = roles.get(element.tag)
            if role is None:
                role = self._role(element.tag, element.vr, parent)
                if element.tag in self._dictionary:  # others are without number
                    roles[element.tag] = role
            if role == NOTHING:
                if element.tag == CHARACTER_SET:
                    character_set = bytes(buffer[element.start : element.end]).strip(b" \0")
                continue
            if role == SEQUENCE or element.items is not None:
                self._sequence(element, character_set, reader, depth)
            elif element.end - element.start <= MAX_VALUE_BYTES and not element.undefined:
                value = bytes(buffer[element.start : element.end])
                if role == LOOSE and value[:4] in (ITEM_LITTLE, ITEM_BIG):
                    self._sequence(element, character_set, reader, depth)
                elif (value := value.strip(b" \0")) and (role != LOOSE or _MAYBE_SOMEBODY.fullmatch(value)):
                    self.entries.add((role, value[:8] if role == DATE else value, character_set))

    def _role(self, tag: int, said_vr: str, parent: int) -> str:
        if is_private(tag):
            if said_vr in ("PN", "SQ"):
                return NAME if said_vr == "PN" else SEQUENCE
            return LOOSE if said_vr in TEXT or said_vr in ("", "UN") else NOTHING
        entry = self._dictionary.get(tag)
        if entry is None:
            return NAME if said_vr == "PN" else SEQUENCE if said_vr == "SQ" else NOTHING
        if entry.vr == "SQ":
            return SEQUENCE
        if parent == PERSON_CODES and tag in (CODE_VALUE, LONG_CODE_VALUE, CODE_MEANING):
            return NAME if tag == CODE_MEANING else NUMBER
        if self._plan.decide(tag, parent).act in STAYS:
            return NOTHING
        if entry.vr in ("DA", "DT"):
            return DATE
        if entry.vr == "PN":
            return NAME
        if entry.vr not in TEXT:
            return NOTHING
        if f"{tag:08X}" not in self._rows:
            return LOOSE  # free text that the standard does not list: its words are no identity by themselves
        return _roles().get(tag, PLACE)

    def _sequence(self, element: Element, character_set: bytes, reader: Reader, depth: int) -> None:
        """The items of a sequence. One that cannot be read gives nothing: the rewriter decides about it."""
        readers = (reader,) if element.vr in ("", "SQ") else (reader.implicit_little, reader)
        for inner in readers:
            try:
                items = element.items
                if items is None:
                    items = inner.items(element.start, element.end, depth, delimited=False)
                for item in items:
                    within = Reader(inner.buffer, item.syntax) if item.syntax != inner.syntax else inner
                    elements = item.elements
                    if elements is None:
                        elements = tuple(within.elements(item.start, item.end, depth + 1))
                    self.take(elements, element.tag, character_set, within, depth + 1)
            except Malformed:
                continue
            return


@lru_cache(maxsize=64)
def own_words(entries: frozenset[Entry], words: Words) -> OwnWords:
    """The own words of every object that says these values. The objects of a study share most of them."""
    return OwnWords.of(_said(entries), words)


def _said(entries: Iterable[Entry]) -> set[Said]:
    found = set()
    for role, value, character_set in entries:
        readings = [readings_of(value, character_set)]
        if role == NAME and not value.isascii():  # where the declaration is wrong, a mark may be read as half a letter
            readings += [readings_of(part, character_set) for part in _COMPONENTS.split(value)]
        for text in (text for several in readings for text in several):
            for one in text.split("\\"):
                if one.strip(" \0"):
                    found.add(Said(role, one.strip(" \0")))
    return found
