"""A data set as a flat table: tag path -> value as text, in the grammar of the challenge's indexer.

`(0008,103e)` for a standard element, `(0019,"SIEMENS MED",92)` for a private one (creator in capitals, so that a moved
block does not matter), `(0008,1140)[<0000>](0008,1155)` below a sequence. File meta and preamble are never looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import pydicom
from pydicom.dataset import Dataset
from pydicom.multival import MultiValue
from pydicom.tag import BaseTag

REMOVED = "REMOVED"
_BULK = {0x7FE00010, 0x00020001}


def path_of(tag: BaseTag, creator: str = "", parent: str = "") -> str:
    """The path of one element. A private element without a creator, and the creator's own element, go by their tag."""
    if creator:
        return f'{parent}({tag.group:04x},"{creator.upper()}",{tag.element & 0xFF:02X})'
    return f"{parent}({tag.group:04x},{tag.element:04x})"


def text_of(value: object) -> str:
    """A value as the key writes it: stripped text, a list's repr for several values, empty for none."""
    if value is None:
        return ""
    if isinstance(value, MultiValue | list | tuple):
        return str([str(item) for item in value])
    return str(value).strip()


def read(path: Path) -> Dataset:
    """An object as the validator reads it: a value that does not fit its VR is bytes, not an error."""
    strict = pydicom.config.convert_wrong_length_to_UN
    pydicom.config.convert_wrong_length_to_UN = True  # of the whole process: given back once every element was parsed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = pydicom.dcmread(path, force=True)
            image.walk(lambda _, __: None)
    finally:
        pydicom.config.convert_wrong_length_to_UN = strict
    return image


def indexed(image: Dataset) -> Mapping[str, str]:
    """Every element of a data set at every depth, in order."""
    found: dict[str, str] = {}
    _walk(image, "", found)
    return found


def _walk(image: Dataset, parent: str, found: dict[str, str]) -> None:
    creators = {
        (element.tag.group, element.tag.element): str(element.value).strip()
        for element in image
        if element.tag.is_private_creator
    }
    for element in image:
        tag = element.tag
        creator = creators.get((tag.group, tag.element >> 8), "") if tag.is_private else ""
        path = path_of(tag, creator, parent)
        if element.VR == "SQ":
            found[path] = "sequence" if element.value else ""
            for number, item in enumerate(element.value or ()):
                _walk(item, f"{path}[<{number:04d}>]", found)
        elif int(tag) in _BULK or (tag.group & 0xFF01 == 0x6000 and tag.element == 0x3000):
            found[path] = REMOVED
        else:
            found[path] = text_of(element.value)
