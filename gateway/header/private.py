"""Which private elements stay under the Retain Safe Private Option, and in what form (PS3.15 E.3.10).

An element stays when somebody vouches for it: the policy's `private.keep`, TCIA's dispositions when the policy follows
them, or Table E.3.10-1, in this order. Even then it is judged by its VR and value: UIDs are mapped, dates follow the
options, sequences are entered and each element in them is judged by itself, names go, numbers must be numbers. Bulk
and long text, which no list can know to be safe, stay only where the policy's own entry says so. No text stays that
repeats a word of the object's removed attributes. What the sender declares to be safe (0008,0300) is not believed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from gateway.header.actions import FULL_DATES, MODIFIED_DATES, TEMPORAL, Act, Decision
from gateway.header.csa import cleaned_csa
from gateway.header.dates import shifted
from gateway.header.descriptors import Cleaner
from gateway.header.dictionary import Entry
from gateway.header.elements import BULK_VRS, Element, Reader
from gateway.header.fitness import fits
from gateway.header.items import Override
from gateway.header.private_words import OwnWords
from gateway.header.uids import is_uid
from gateway.policy import HeaderPolicy
from gateway.policy.model import CLEAN_DESCRIPTORS
from gateway.policy.private_lists import (
    DATE,
    EPOCH,
    KEEP,
    REMOVE,
    UID,
    PrivateKey,
    creator_key,
    load_safe_private,
    load_tcia,
    vr_of,
)
from gateway.policy.private_section import CSA_CREATOR, CSA_GROUP

UNSAID = frozenset({"", "OB", "UN"})  # implicit VR, and what writers say of what they do not know (PS3.5 6.2.2)
NUMBERS = frozenset({"AT", "DS", "FD", "FL", "IS", "SL", "SS", "SV", "UL", "US", "UV"})
SHORT_TEXT, LONG_TEXT = frozenset({"LO", "SH"}), frozenset({"LT", "ST", "UC", "UT"})
BULK = BULK_VRS | {"UN"}
MAX_VOUCHED_BULK = 256  # bytes of a value without VR that TCIA's word is enough for
_CODE = re.compile(rb"(?:[ -;<>?A-Z\[\]_a-z]{0,16})(?:\\[ -;<>?A-Z\[\]_a-z]{0,16})*\0?")  # CS as devices write it
_PRINTABLE = re.compile(rb"[ -~]{8,}\0?")
_LETTERS = re.compile(rb"[A-Za-z]{4}")
_EPOCH_FORMS = {"SL": "i", "UL": "I", "FD": "d", "FL": "f"}
SECONDS_A_DAY = 86400
_KEEP = Decision(Act.KEEP, Act.KEEP, "private")
CSA_CODES, CSA_HEADERS = frozenset({0x08, 0x18}), frozenset({0x10, 0x20})


class Judged(NamedTuple):
    """How a private element stays: with which VR, and by which decision or with which value."""

    entry: Entry
    override: Override


class PrivateElements:
    """Judges the private elements of one object.

    `days` gives its shift; `words` gathers what it says of its person; `cleaner` is there when the policy cleans text,
    which is then in `character_set`.
    """

    def __init__(
        self,
        policy: HeaderPolicy,
        days: Callable[[], int],
        words: Callable[[], OwnWords],
        cleaner: Cleaner | None = None,
        character_set: bytes = b"",
    ) -> None:
        self._options = policy.options
        self._kept = policy.private.kept
        self._tcia = load_tcia() if policy.private.dispositions == "tcia" else {}
        self._csa = policy.private.csa_headers == "clean"
        self._edition = policy.edition
        self._safe = load_safe_private(policy.edition)
        self._days = days
        self._gather = words
        self._cleaner = cleaner
        self._character_set = character_set

    @cached_property
    def _words(self) -> OwnWords:
        return self._gather()

    def judge(self, creator: str, element: Element, reader: Reader) -> Judged | None:
        """How the element stays, None when it goes. `creator` is that of its block."""
        group, number = element.tag >> 16, element.tag & 0xFF
        key = (creator_key(creator), group, number)
        if self._csa and key[0] == creator_key(CSA_CREATOR) and group == int(CSA_GROUP, 16):
            return self._csa_element(number, element, reader)
        vr = self._vr(key, element)
        action = self._action(key, element.vr, vr)
        if action == REMOVE:
            return None
        override = self._by_vr(vr, action, key in self._kept, element, reader)
        if override is None:
            return None
        written = element.vr if isinstance(override, bytes) and element.vr else vr
        return Judged(Entry(written, "", retired=False), override)

    def _vr(self, key: PrivateKey, element: Element) -> str:
        """The file's VR where it says one that means something, else that of the lists."""
        if element.items is not None:
            return "SQ"
        known = self._kept.get(key) or vr_of(key, self._edition)
        if element.vr in UNSAID or (known in NUMBERS | {"CS"} and element.vr not in TEMPORAL | {"PN", "SQ", "UI"}):
            return known or element.vr or "UN"
        return element.vr

    def _action(self, key: PrivateKey, said: str, vr: str) -> str:
        if key in self._kept:
            return KEEP
        by_vr = self._tcia.get(key)
        if by_vr is not None:
            found = by_vr.get(said) or by_vr.get(vr)
            every = set(by_vr.values())
            return found or (every.pop() if len(every) == 1 else REMOVE)
        return KEEP if key in self._safe else REMOVE

    def _by_vr(self, vr: str, action: str, signed: bool, element: Element, reader: Reader) -> Override | None:  # noqa: FBT001
        if vr == "SQ":
            return Decision(Act.RECURSE, Act.REMOVE, "private")
        if element.undefined:
            return None
        value = bytes(reader.buffer[element.start : element.end])
        if not value.strip(b" \0"):
            return _KEEP  # nothing to hide
        if action == EPOCH:
            return self._epoch(vr, value, reader)
        if vr in TEMPORAL or action == DATE:
            return self._date(vr, value)
        if vr == "UI" or action == UID:
            return self._uid(value)
        if vr == "PN" or not self._fits(vr, signed, element, value, reader):
            return None
        if vr in SHORT_TEXT | LONG_TEXT and self._cleaner is not None:
            return self._cleaned(vr, value, strict=vr in LONG_TEXT and not signed)
        told = self._words.equal(value) if vr in ("DS", "IS") else self._words.occur_in(value)
        return None if told else _KEEP

    def _cleaned(self, vr: str, value: bytes, *, strict: bool) -> Override | None:
        """Text that somebody vouches for, without the object's own words; `strict`: with words that are known only."""
        clean = self._cleaner.descriptor if strict else self._cleaner.technical  # type: ignore[union-attr]
        cleaned = clean(vr, value, self._character_set)
        if not cleaned or self._words.occur_in(cleaned):
            return None
        return _KEEP if cleaned == value else cleaned

    def _fits(self, vr: str, signed: bool, element: Element, value: bytes, reader: Reader) -> bool:  # noqa: FBT001
        """True for a value that its VR, and whoever vouches for it, allow to be kept."""
        if vr in BULK:
            small = len(value) <= MAX_VOUCHED_BULK and self._tcia and not _LETTERS.search(value)
            return signed or bool(small)
        if vr in LONG_TEXT:
            return signed or CLEAN_DESCRIPTORS in self._options
        if vr == "CS":
            return _CODE.fullmatch(value) is not None
        if vr in NUMBERS or vr == "AS":
            said = "" if element.vr in UNSAID else element.vr
            if vr not in ("AS", "DS", "IS") and _PRINTABLE.fullmatch(value):
                return False  # text where numbers should be: by chance once in thousands of doubles
            return fits(vr, element._replace(vr=said), reader)
        return vr in SHORT_TEXT

    def _uid(self, value: bytes) -> Override | None:
        texts = [one.strip(" \0") for one in value.decode("latin-1").split("\\")]
        if not all(is_uid(one) for one in texts if one):
            return None
        if "retain-uids" in self._options:
            return Decision(Act.KEEP, Act.KEEP, "retain-uids")
        return Decision(Act.UID, Act.REMOVE, "private")

    def _date(self, vr: str, value: bytes) -> bytes | None:
        """A date, whatever VR it comes in, by the options; TCIA's lists name dates in LO, SH and UN, too."""
        if not {MODIFIED_DATES, FULL_DATES} & self._options:
            return None
        days = self._days() if MODIFIED_DATES in self._options else 0
        for form in (vr,) if vr in TEMPORAL else ("DA", "DT"):
            moved = shifted(form, value.strip(b" \0"), days)
            if moved is not None:
                return moved
        return None

    def _epoch(self, vr: str, value: bytes, reader: Reader) -> bytes | None:
        """Seconds since 1970 as a number, shifted with the dates: intervals stay exact."""
        if not {MODIFIED_DATES, FULL_DATES} & self._options:
            return None
        form = _EPOCH_FORMS.get(vr)
        days = self._days() if MODIFIED_DATES in self._options else 0
        if vr in ("DS", "IS"):
            return _moved_digits(value, days)
        if form is None or len(value) != struct.calcsize(form):
            return None
        order = ">" if reader.syntax.big else "<"
        (seconds,) = struct.unpack(order + form, value)
        try:
            return struct.pack(order + form, seconds + days * SECONDS_A_DAY)
        except struct.error:
            return None

    def _csa_element(self, number: int, element: Element, reader: Reader) -> Judged | None:
        if element.undefined or element.vr not in ("", "CS", "OB", "OW", "UN"):
            return None
        value = bytes(reader.buffer[element.start : element.end])
        if number in CSA_CODES and _CODE.fullmatch(value):
            return Judged(Entry("CS", "", retired=False), _KEEP)
        cleaned = cleaned_csa(value) if number in CSA_HEADERS else None
        return None if cleaned is None else Judged(Entry(element.vr or "OB", "", retired=False), cleaned)


def _moved_digits(value: bytes, days: int) -> bytes | None:
    text = value.strip(b" \0")
    return str(int(text) + days * SECONDS_A_DAY).encode() if text.isdigit() else None
