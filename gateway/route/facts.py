"""What routing may know of a study: the values of a closed list of attributes, over all its instances.

Element values are taken as raw bytes and decoded here, so that pydicom neither validates nor warns (its warnings quote
values). Nothing of what is read leaves this module in an exception, a log line or a repr.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pydicom
from pydicom.charset import decode_bytes, python_encoding
from pydicom.dataelem import RawDataElement
from pydicom.errors import BytesLengthException, InvalidDicomError
from pydicom.multival import MultiValue
from pydicom.tag import BaseTag, Tag

from gateway.errors import Hold

DELIMITERS = {0x09, 0x0A, 0x0C, 0x0D}  # after these the first character set applies again (PS3.5 6.1.2.5.3)
CHARSET = Tag(0x0008, 0x0005)
META = {"calling_ae": Tag(0x0002, 0x0016), "called_ae": Tag(0x0002, 0x0018)}  # PS3.10 7.1
ATTRIBUTES = {
    "sop_class": (Tag(0x0008, 0x0016),),
    "modality": (Tag(0x0008, 0x0060),),
    "body_part": (Tag(0x0018, 0x0015),),
    "manufacturer": (Tag(0x0008, 0x0070),),
    "description": (Tag(0x0008, 0x1030), Tag(0x0008, 0x103E)),
    "image_type": (Tag(0x0008, 0x0008),),
    "patient_id": (Tag(0x0010, 0x0020),),
    "study_date": (Tag(0x0008, 0x0020),),
}
MAX_VALUE_BYTES = 4096  # none of these attributes is longer in a sound object
_UNREADABLE = (
    *(AttributeError, EOFError, IndexError, KeyError, LookupError, NotImplementedError, OverflowError, RecursionError),
    *(TypeError, ValueError, struct.error, zlib.error, BytesLengthException, InvalidDicomError),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Attribute name of the predicates (and patient_id, study_date) -> every value that an instance of the study has.

    Values are stripped of padding; an empty one is no value. They identify people: not in repr, not in errors.
    """

    values: Mapping[str, frozenset[str]] = field(repr=False)

    def of(self, name: str) -> frozenset[str]:
        return self.values.get(name, frozenset())


def gather(paths: Iterable[Path]) -> Facts:
    """Facts of the study that these files make up. Raises Hold("unreadable_object") naming our file, OSError."""
    found: dict[str, set[str]] = {name: set() for name in (*META, *ATTRIBUTES)}
    wanted = [CHARSET, *(tag for tags in ATTRIBUTES.values() for tag in tags)]
    for path in paths:
        try:
            dataset = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=list(wanted), force=True)
            encodings = _encodings(dataset)
            for name, tag in META.items():
                found[name].update(_values(dataset.file_meta, tag, encodings))
            for name, tags in ATTRIBUTES.items():
                for tag in tags:
                    found[name].update(_values(dataset, tag, encodings))
        except _UNREADABLE:
            raise Hold("unreadable_object", at=path.name) from None
    return Facts({name: frozenset(values) for name, values in found.items()})


def _encodings(dataset: pydicom.Dataset) -> list[str]:
    """Python encodings of the data set's Specific Character Set; unknown terms are left out, none gives the default."""
    terms = _bytes(dataset, CHARSET).decode("ascii", "replace").split("\\")
    return [python_encoding[term] for part in terms if (term := part.strip(" \0")) in python_encoding] or ["iso8859"]


def _bytes(dataset: pydicom.Dataset, tag: BaseTag) -> bytes:
    """The raw value of an element; b"" when it is absent, a sequence or absurdly long."""
    element: object = dataset.get_item(tag)
    value: object = getattr(element, "value", None)
    if not isinstance(element, RawDataElement):  # decoded by pydicom on the way, as Specific Character Set is
        parts = list(value) if isinstance(value, MultiValue | list) else [value]
        value = "\\".join(part for part in parts if isinstance(part, str)).encode("utf-8")
    return value if isinstance(value, bytes) and len(value) <= MAX_VALUE_BYTES else b""


def _values(dataset: pydicom.Dataset, tag: BaseTag, encodings: list[str]) -> set[str]:
    """The values of one element, decoded, split at backslashes, stripped."""
    raw = _bytes(dataset, tag)
    extended = b"\x1b" in raw  # code extensions, PS3.5 6.1.2.5
    text = decode_bytes(raw, encodings, DELIMITERS) if extended else raw.decode(encodings[0], "replace")
    return {value for part in text.split("\\") if (value := part.strip(" \0\t\r\n"))}
