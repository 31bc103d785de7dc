"""Fills an object, its perfect twin and the answer key in one go: every planting is recorded as it is made.

`Recorder` methods are named after the fate of what they plant. The twin is one right answer among others: it holds what
a perfect cleaner may leave, so that the validator itself can be tested.
"""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydicom.datadict import dictionary_description, dictionary_VR, tag_for_keyword
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence as Items
from pydicom.tag import BaseTag, Tag

from bench.midib_corpus.phrases import DATES, NAMES, Phrase
from bench.midib_score.key import Check
from bench.midib_score.paths import path_of, text_of

KEPT, DESCRIBED, PRIVATE_KEPT = "TCIA-REV", "TCIA-P15-DESC-C", "TCIA-PTKB-K"
PRIVATE_REMOVED = "TCIA-PTKB-X"
TYPE_1, TYPE_2 = "DICOM-IOD-1", "DICOM-IOD-2"
UIDS, PATIENT_ID, UID_CHANGED = "DICOM-P15-BASIC-U", "DICOM-P15-BASIC-C", "HIPAA-R"

# Of 100 series, so many bear a given optional attribute of identity.
OFTEN_FILLED = 45
_INTEGERS, _REALS = frozenset({"US", "SS", "UL", "SL"}), frozenset({"FL", "FD"})


def new_uid_of(uid: str) -> str:
    """The twin's UID for an original one."""
    return f"1.3.6.1.4.1.14519.5.2.1.{int.from_bytes(uid.encode(), 'big') % 10**24}"


def coerced(vr: str, text: str) -> object:
    """A table's text as a value of this VR."""
    if vr in _INTEGERS or vr in _REALS:
        kind = int if vr in _INTEGERS else float
        many = [kind(part) for part in text.split("\\")]
        return many if len(many) > 1 else many[0]
    return text.split("\\") if "\\" in text and vr not in ("LT", "ST", "UT") else text


@dataclass
class Recorder:
    """One data set being filled, at the top or in an item. `days` is the twin's date shift."""

    dirty: Dataset
    clean: Dataset
    checks: list[Check]
    days: int = -100
    parent: str = ""
    rare: str = (
        ""  # names the series where attributes of identity are left out by turns, as sites fill in different ones
    )
    creators: dict[int, dict[str, int]] = field(default_factory=dict)

    def check(self, action: str, tag: int, value: object, text: str, category: str, path: str = "") -> None:
        name = dictionary_description(tag) if not path else ""
        where = path or path_of(Tag(tag), parent=self.parent)
        self.checks.append(Check(action, where, name, text_of(value), text, category))

    def put(self, keyword: str, value: object, clean: object) -> int:
        """Set the attribute; `clean` None leaves it out of the twin."""
        tag = tag_for_keyword(keyword)
        assert tag is not None, keyword
        vr = dictionary_VR(tag).split(" or ")[0]
        self.dirty.add(DataElement(tag, vr, value))
        if clean is not None:
            self.clean.add(DataElement(tag, vr, clean))
        return int(tag)

    def keep(self, keyword: str, value: object, kind: str = "3") -> None:
        """Technical: stays as it is. `kind` is the Type in this IOD."""
        tag = self.put(keyword, value, value)
        text = text_of(value)
        self.of_type(tag, value, kind)
        if text:
            self.check("text_retained", tag, value, text, KEPT)

    def of_type(self, tag: int, value: object, kind: str) -> None:
        if kind == "1":
            self.check("text_notnull", tag, value, text_of(value), TYPE_1)
        if kind in ("1", "2"):
            self.check("tag_retained", tag, value, text_of(value), TYPE_1 if kind == "1" else TYPE_2)

    def carry(self, keyword: str, value: object) -> None:
        """There without a check: what a perfect cleaner does with it is not agreed."""
        self.put(keyword, value, None)

    def describe(self, keyword: str, what: Phrase | str, kind: str = "3") -> None:
        """Free text that stays, less what is planted in it."""
        if isinstance(what, str):
            tag = self.put(keyword, what, what)
            self.check("text_retained", tag, what, what, DESCRIBED)
        else:
            tag = self.put(keyword, what.text, what.clean)
            self.check("text_removed", tag, what.text, what.planted, what.category)
            self.check("text_retained", tag, what.text, what.kept, DESCRIBED)
        self.of_type(tag, "" if isinstance(what, str) else what.text, kind)

    def hide(self, keyword: str, what: Phrase) -> None:
        """Free text that may go as a whole; what is planted in it must."""
        tag = self.put(keyword, what.text, what.clean)
        self.check("text_removed", tag, what.text, what.planted, what.category)

    def remove(self, keyword: str, value: object, category: str = NAMES, planted: str = "", kind: str = "3") -> None:
        """Identity: not one word of it may be left. Type 2 stays as an attribute, Type 1 with another value."""
        if self.rare and kind == "3" and zlib.crc32(f"{self.rare} {keyword}".encode()) % 100 >= OFTEN_FILLED:
            return
        tag = self.put(keyword, value, {"1": "REMOVED", "2": ""}.get(kind))
        if kind in ("1", "2"):
            self.check("tag_retained", tag, value, text_of(value), TYPE_1 if kind == "1" else TYPE_2)
        if kind == "1":
            self.check("text_notnull", tag, value, text_of(value), TYPE_1)
        self.check("text_removed", tag, value, planted or text_of(value), category)

    def date(self, keyword: str, value: str, kind: str = "3") -> None:
        """A DA or DT that moves."""
        tag = self.put(keyword, value, _moved(value, self.days))
        self.of_type(tag, value, kind)
        self.check("date_shifted", tag, value, value, DATES)

    def uid(self, keyword: str, value: str | Sequence[str], kind: str = "3") -> None:
        many = [value] if isinstance(value, str) else list(value)
        new = [new_uid_of(one) for one in many]
        tag = self.put(keyword, value, new[0] if isinstance(value, str) else new)
        self.of_type(tag, value, kind)
        self.check("uid_changed", tag, value, text_of(value), UID_CHANGED)
        if isinstance(value, str):
            self.check("uid_consistent", tag, value, value, UIDS)

    def patient_id(self, value: str, new: str) -> None:
        tag = self.put("PatientID", value, new)
        self.of_type(tag, value, "2")
        self.check("patid_consistent", tag, value, value, PATIENT_ID)

    def item(self, keyword: str, *, stays: bool = True) -> Recorder:
        """A new item of a sequence; `stays` False leaves the sequence out of the twin."""
        tag = tag_for_keyword(keyword)
        assert tag is not None, keyword
        return self._item(Tag(tag), path_of(Tag(tag), parent=self.parent), stays=stays)

    def _item(self, tag: BaseTag, path: str, *, stays: bool) -> Recorder:
        dirty, clean = Dataset(), Dataset()
        for owner, inner in ((self.dirty, dirty), (self.clean if stays else Dataset(), clean)):
            if tag not in owner:
                owner.add(DataElement(tag, "SQ", Items()))
            owner[tag].value.append(inner)
        number = len(self.dirty[tag].value) - 1
        return Recorder(dirty, clean, self.checks, self.days, f"{path}[<{number:04d}>]")

    def _private_tag(self, group: int, creator: str, offset: int, *, stays: bool) -> BaseTag:
        blocks = self.creators.setdefault(group, {})
        block = blocks.setdefault(creator, 0x10 + len(blocks))
        at = Tag(group, block)
        self.dirty.add(DataElement(at, "LO", creator))
        if stays:
            self.clean.add(DataElement(at, "LO", creator))
        return Tag(group, block << 8 | offset)

    def private(self, place: tuple[int, str, int], vr: str, text: str, fate: str) -> None:
        """A private element. `fate`: keep, delete (its text must go), date, uid."""
        group, creator, offset = place
        tag = self._private_tag(group, creator, offset, stays=fate != "delete")
        path = path_of(tag, creator, self.parent)
        value = bytes.fromhex(text) if vr in ("OB", "UN") else coerced(vr, text)
        self.dirty.add(DataElement(tag, vr, value))
        if fate == "delete":
            self.check("text_removed", int(tag), value, text_of(value), PRIVATE_REMOVED, path)
            return
        clean = value if fate == "keep" else new_uid_of(text) if fate == "uid" else coerced(vr, _moved(text, self.days))
        self.clean.add(DataElement(tag, vr, clean))
        if fate == "keep":
            self.check("tag_retained", int(tag), value, text_of(value), PRIVATE_KEPT, path)
            self.check("text_retained", int(tag), value, text_of(value), PRIVATE_KEPT, path)
        elif fate == "date":
            self.check("date_shifted", int(tag), value, text_of(value), DATES, path)
        else:
            self.check("uid_changed", int(tag), value, text_of(value), UID_CHANGED, path)
            self.check("uid_consistent", int(tag), value, text_of(value), UIDS, path)

    def private_item(self, place: tuple[int, str, int], *, stays: bool) -> Recorder:
        group, creator, offset = place
        tag = self._private_tag(group, creator, offset, stays=stays)
        return self._item(tag, path_of(tag, creator, self.parent), stays=stays)


def _moved(value: str, days: int) -> str:
    """A DA or DT with its date moved; an integer date by whole days in seconds."""
    if not (value[:8].isdigit() and len(value) >= 8 and value[:2] in ("19", "20")):
        return str(int(float(value)) + days * 86_400)
    day = dt.date(int(value[:4]), int(value[4:6]), int(value[6:8])) + dt.timedelta(days=days)
    return f"{day:%Y%m%d}{value[8:]}"
