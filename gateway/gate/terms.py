"""What must not be found again: the values of the originals' identifying attributes, over the whole study.

`Terms` collects from every original of a study, then is asked. A term knows from which attributes it came: what the
policy keeps on purpose makes no term, and makes a finding nowhere but outside its own attribute. The values themselves
stay in memory for the time of the judgement and are never part of a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

from pydicom._uid_dict import UID_dictionary

from gateway.gate import attributes, dates, spelling
from gateway.gate.attributes import PERSONAL, Kept, Kind, kind_of
from gateway.gate.bytescan import Scan
from gateway.gate.content_items import kept_items
from gateway.gate.folding import codecs, fold, readings
from gateway.gate.vocabulary import stand_ins
from gateway.gate.walk import Leaf, tag_path

_SPELL: Mapping[Kind, Callable[[str], Iterator[spelling.Spelling]]] = {
    Kind.NAME: spelling.names,
    Kind.ID: spelling.ids,
    Kind.UID: spelling.uids,
    Kind.DEVICE: spelling.ids,
    Kind.PHONE: spelling.phones,
    Kind.ADDRESS: spelling.texts,
    Kind.PLACE: spelling.places,
    Kind.TEXT: spelling.texts,
}
ENTITIES = frozenset({0x00020003, 0x00080018, 0x0020000D, 0x0020000E})  # SOP instance, study, series
_WHOLE_TEXT_VRS = frozenset({"LT", "ST", "UT", "UR"})  # a backslash is text here (PS3.5 6.4)
_BLANK = " \0\t\r\n"
RAW_BYTES = 5  # shortest encoded spelling that is searched for in bytes
PIXEL_LETTERS, PIXEL_DIGITS = 10, 16  # shortest spellings that are searched for among samples, with and without letters


Key = TypeVar("Key")


@dataclass(slots=True)
class Term:
    """One spelling: of what kind, from where, and whether it must stand alone. `active` when not all of it is kept."""

    kind: Kind
    alone: bool
    origins: set[int] = field(default_factory=set)
    first: int = 0
    active: bool = False

    @property
    def rule(self) -> str:
        """For a finding: kind and attribute of origin, never the value."""
        return f"{self.kind} of {tag_path(self.first)}"


@dataclass(slots=True)
class Day:
    """One date of the originals."""

    origins: set[int] = field(default_factory=set)
    first: int = 0
    active: bool = False
    birth: bool = False


class Terms:
    """Terms of one study under one policy. Call `harvest` for every original, then read the mappings."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.edition = kept.policy.edition
        self.folded: dict[bytes, Term] = {}  # by folded spelling
        self.encoded: dict[bytes, Term] = {}  # by lower-cased bytes in some character set: spellings beyond ASCII
        self.samples: dict[bytes, Term] = {}  # by lower-cased bytes: what is searched for among pixels
        self.whole: dict[tuple[str, bytes], Term] = {}  # (scope, folded value): short and common values
        self.days: dict[date, Day] = {}
        self._classes: set[str] = set()  # values of class and vocabulary UIDs: these identify nothing
        self._seen: set[tuple[object, ...]] = set()

    def harvest(self, scan: Scan) -> int:
        """Take in one original; gives how many identifying values it has."""
        count = 0
        items = kept_items(scan, self.kept.policy)
        for leaf in (*scan.meta, *scan.leaves):
            if leaf.tag in attributes.STRUCTURAL:
                self._classes.update(leaf.raw.decode("latin-1").strip(_BLANK).split("\\"))
        for leaf in (*scan.meta, *scan.leaves):
            kind = self._kind(leaf)
            if kind in (None, Kind.TIME, Kind.TRAIT) or not leaf.size:
                continue
            count += 1
            kept = leaf.path in items or self.kept.keeps(leaf.tag, leaf.vr) or self.kept.cleans(leaf.tag, leaf.vr)
            key = (leaf.tag, kind, leaf.raw, leaf.charset, kept)
            if key not in self._seen:
                self._seen.add(key)
                self._take(leaf, kind, kept=kept)
        return count

    def _kind(self, leaf: Leaf) -> Kind | None:
        if leaf.tag in (attributes.CODE_VALUE, attributes.LONG_CODE_VALUE, attributes.CODE_MEANING):
            meaning = leaf.tag == attributes.CODE_MEANING
            if any(place in leaf.path for place in attributes.PEOPLE_CODES):
                return Kind.NAME if meaning else Kind.ID
            if meaning and any(place in leaf.path for place in attributes.PLACE_CODES):
                return Kind.PLACE
        return kind_of(leaf.tag, leaf.vr, self.edition)

    def _take(self, leaf: Leaf, kind: Kind, *, kept: bool) -> None:
        texts = readings(leaf.raw, leaf.vr, leaf.charset)
        # Latin-1 reads anything; it is believed only where nothing else reads.
        for text in texts[:-1] or texts:
            for value in [text] if leaf.vr in _WHOLE_TEXT_VRS else text.split("\\"):
                self._value(value.strip(_BLANK), leaf, kind, kept=kept)

    def _value(self, value: str, leaf: Leaf, kind: Kind, *, kept: bool) -> None:
        folded = fold(value)
        if folded in stand_ins():
            return
        if kind in (Kind.DATE, Kind.BIRTH):
            self._day(value, leaf, kind, kept=kept)
            return
        if kind is Kind.UID and (value in UID_dictionary or (value in self._classes and leaf.tag not in ENTITIES)):
            return
        self._whole(folded, value, leaf, kind, kept=kept)
        distinctive = False
        for group in value.split("=") if kind is Kind.NAME else (value,):
            for found, alone in _SPELL[kind](group):
                distinctive = True
                self._add(self.folded, found, kind, leaf.tag, alone=alone, kept=kept)
            self._encode(group, leaf, kind, kept=kept)
        if distinctive and kind in PERSONAL:
            self._among_samples(value, leaf, kind, kept=kept)

    def _whole(self, folded: bytes, value: str, leaf: Leaf, kind: Kind, *, kept: bool) -> None:
        if kept or kind not in (Kind.NAME, Kind.UID, Kind.ID):
            return
        scope = tag_path(leaf.tag) if kind is Kind.ID else kind
        for one in {folded, *map(fold, value.split("="))} if kind is Kind.NAME else {folded}:
            if one not in stand_ins():
                self._add(self.whole, (scope, one), kind, leaf.tag, alone=True, kept=False)

    def _day(self, value: str, leaf: Leaf, kind: Kind, *, kept: bool) -> None:
        for text in value.split("-", 1) if leaf.vr == "DT" else (value,):
            day = dates.day_of(text)
            if day is None or dates.says_nothing(day):
                continue
            known = self.days.setdefault(day, Day(first=leaf.tag))
            known.origins.add(leaf.tag)
            birth = kind is Kind.BIRTH
            if not kept:
                known.active = True
                known.birth |= birth
            for form in dates.forms(day, birth=birth):
                self._add(self.folded, form, kind, leaf.tag, alone=True, kept=kept)

    def _encode(self, text: str, leaf: Leaf, kind: Kind, *, kept: bool) -> None:
        """Spellings beyond ASCII, as bytes in every character set that is at hand, and as they came."""
        if text.isascii() and b"\x1b" not in leaf.raw:
            return
        words = spelling.name_words(text) if kind is Kind.NAME else []
        if len(words) > 1 and spelling.is_ideographic(text):  # family and given name without a space between
            words += ["".join(words), "".join(words[::-1])]
        for word in {text, *words}:
            if word.isascii() or not any(spelling.names(word) if kind is Kind.NAME else _SPELL[kind](word)):
                continue
            for encoded in _encodings(word, leaf.charset):
                self._add(self.encoded, encoded.lower(), kind, leaf.tag, alone=False, kept=kept)
        if any(_SPELL[kind](text)):
            for piece in {leaf.raw.strip(b" \0"), *leaf.raw.strip(b" \0").split(b"=")}:
                if len(piece) >= RAW_BYTES and (not piece.isascii() or b"\x1b" in piece):
                    self._add(self.encoded, piece.lower(), kind, leaf.tag, alone=False, kept=kept)

    def _among_samples(self, value: str, leaf: Leaf, kind: Kind, *, kept: bool) -> None:
        spellings = {value, leaf.raw.strip(b" \0").decode("latin-1")}
        if kind is Kind.NAME:
            words = spelling.name_words(value.split("=", maxsplit=1)[0])[:2]
            spellings |= {glue.join(order) for glue in ("^", " ", ", ") for order in (words, words[::-1])}
        for one in spellings:
            for encoded in {one.encode("utf-8", "replace"), one.encode("latin-1", "replace")}:
                letters = any(chr(byte).isalpha() for byte in encoded)
                if len(encoded) >= (PIXEL_LETTERS if letters else PIXEL_DIGITS) and len(set(encoded)) >= 6:
                    self._add(self.samples, encoded.lower(), kind, leaf.tag, alone=False, kept=kept)

    @staticmethod
    def _add(into: dict[Key, Term], key: Key, kind: Kind, tag: int, *, alone: bool, kept: bool) -> None:
        term = into.setdefault(key, Term(kind, alone, first=tag))
        if not kept and (not term.active or (kind in PERSONAL and term.kind not in PERSONAL)):
            term.kind, term.first, term.active = kind, tag, True
        term.alone &= alone
        term.origins.add(tag)


def _encodings(text: str, charset: tuple[str, ...]) -> Iterable[bytes]:
    names = {"utf-8", "latin-1", "utf-16-le", "utf-16-be", *codecs(charset)}
    found = set()
    for form in {text, text.upper(), text.lower(), text.title()}:
        for name in names:
            try:
                encoded = form.encode(name)
            except (UnicodeError, LookupError):
                continue
            if len(encoded) >= (RAW_BYTES + 1 if name.startswith("utf-16") else RAW_BYTES):
                found.add(encoded)
    return found
