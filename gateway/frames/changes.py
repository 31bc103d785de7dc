"""What of the header changes with the pixels, and the encoding of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

from pydicom.charset import convert_encodings
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.filebase import DicomFileLike
from pydicom.filewriter import write_data_element
from pydicom.sequence import Sequence as Items

from gateway.errors import Hold
from gateway.frames.elements import Encoding
from gateway.frames.source import PYDICOM_FAILURES, Source

METHOD_CODES, CODE_VALUE, SCHEME, MEANING = 0x00120064, 0x00080100, 0x00080102, 0x00080104


@dataclass(frozen=True)
class Changes:
    """Top-level elements to set, tag -> (VR, value as pydicom takes it), and to remove; `set` wins.

    `method_codes` are (value, scheme, meaning), such as ("113101", "DCM", "Clean Pixel Data Option"); those that
    (0012,0064) does not have yet are appended to it.
    """

    set: Mapping[int, tuple[str, Any]] = field(default_factory=dict)
    remove: frozenset[int] = frozenset()
    method_codes: tuple[tuple[str, str, str], ...] = ()

    def also(self, more: Mapping[int, tuple[str, Any]], remove: Iterable[int] = ()) -> Changes:
        """These changes, with what the pixels demand; that wins."""
        return replace(self, set={**self.set, **more}, remove=self.remove | frozenset(remove))


def encoded(changes: Changes, source: Source, encoding: Encoding) -> dict[int, bytes]:
    """Tag -> the whole encoded element, of everything that is set, the method codes among them.

    Raises Hold("pixels_unreadable") when the file's own (0012,0064) cannot be read.
    """
    dataset = source.header()
    charsets = convert_encodings(dataset.get("SpecificCharacterSet") or "ISO_IR 6")
    found = {tag: _element(tag, vr, value, encoding, charsets) for tag, (vr, value) in changes.set.items()}
    if changes.method_codes:
        found[METHOD_CODES] = _codes(dataset, changes, encoding, charsets)
    return found


def _codes(dataset: Dataset, changes: Changes, encoding: Encoding, charsets: Any) -> bytes:
    """(0012,0064) with our codes behind those that it has."""
    items: list[Dataset] = []
    if METHOD_CODES in dataset:
        try:
            items = list(dataset[METHOD_CODES].value)
            had = {(str(item.get("CodeValue")), str(item.get("CodingSchemeDesignator"))) for item in items}
        except PYDICOM_FAILURES:
            raise Hold("pixels_unreadable", at="(0012,0064)") from None
    else:
        had = set()
    for value, scheme, meaning in changes.method_codes:
        if (value, scheme) in had:
            continue
        item = Dataset()
        item.add_new(CODE_VALUE, "SH", value)
        item.add_new(SCHEME, "SH", scheme)
        item.add_new(MEANING, "LO", meaning)
        items.append(item)
        had.add((value, scheme))
    return _element(METHOD_CODES, "SQ", items, encoding, charsets)


def _element(tag: int, vr: str, value: Any, encoding: Encoding, charsets: Any) -> bytes:
    file = DicomFileLike(BytesIO())
    file.is_implicit_VR = encoding.implicit
    file.is_little_endian = not encoding.big
    write_data_element(file, DataElement(tag, vr, Items(value) if vr == "SQ" else value), charsets)
    file.seek(0)
    return bytes(file.read())
