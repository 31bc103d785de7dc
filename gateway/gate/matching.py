"""Where terms stand in the bytes of a candidate: text, binary values, pixel samples, codestream headers.

What counts depends on where it stands (`Place`). Text is searched in every reading, folded; binary values as ASCII with
and without NUL bytes (which also shows UTF-16) and in every encoded spelling; samples only for long spellings, as
bytes and as wider words (`sample_text`).

False alarms by chance, in samples: a spelling of 10 bytes with letters, compared without case, meets n random bytes
n * (2/256)**10 = n * 9e-22 times. In 8-bit images whose noise spreads over the codes of letters, one sample in sixteen
at most fits each letter of a name: n * (1/16)**10 = n * 9e-13. Spellings without letters have 16 bytes and more:
n * (1/10)**16. With a hundred spellings and 1e7 such samples in a study that is below one study in a thousand.
Words of base64 are decoded where text may stand. Not covered: other transformations, and text drawn into the picture
(aspect burned_in_text).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from enum import Enum

from pydicom._uid_dict import UID_dictionary

from gateway.gate.attributes import Kind
from gateway.gate.finder import Finder
from gateway.gate.folding import fold, fold_bytes, join_digits, readings
from gateway.gate.sample_text import SampleText
from gateway.gate.terms import Term, Terms
from gateway.gate.vocabulary import common_words
from gateway.gate.walk import Leaf

CHUNK_BYTES, OVERLAP_BYTES = 4 << 20, 1 << 10
HEADER_BYTES = 1 << 16  # of a codestream
BLOB_BYTES = 6  # shortest spelling that is believed in binary values
TEXT_BYTES = 1 << 16  # unknown bytes up to this size are tried as text
CACHE_ENTRIES = 200_000
_BASE_64 = re.compile(rb"[A-Za-z0-9+/_-]{11,}")  # 8 bytes and more
_PLAIN_ALPHABET = bytes.maketrans(b"-_", b"+/")


class Place(Enum):
    """What kind of value a spelling is looked for in."""

    TEXT = "text"
    UID = "uid"
    DATE = "date"  # DA, DT, TM: dates are compared as dates (`residual`), here only what else was written into them
    NUMBER = "number"
    BLOB = "blob"
    SAMPLES = "samples"


_PLACES = {
    **dict.fromkeys(("AE", "AS", "CS", "LO", "LT", "PN", "SH", "ST", "UC", "UR", "UT"), Place.TEXT),
    **dict.fromkeys(("DA", "DT", "TM"), Place.DATE),
    **dict.fromkeys(("DS", "IS"), Place.NUMBER),
    **dict.fromkeys(("OF", "OD", "OL", "OV"), Place.SAMPLES),
    "UI": Place.UID,
}
SAMPLE_TAGS = frozenset({0x7FE00008, 0x7FE00009, 0x7FE00010, 0x54001010})  # pixels, floats, waveform samples


def place_of(leaf: Leaf) -> Place:
    return Place.SAMPLES if leaf.tag in SAMPLE_TAGS else _PLACES.get(leaf.vr, Place.BLOB)


def _sort(byte: int) -> int:
    return 1 if 48 <= byte <= 57 else 2 if byte >= 97 else 0  # digit, letter (folded, or beyond ASCII), space


def _touches(text: bytes, at: int, end: int) -> tuple[bool, bool]:
    """Whether a match goes on in letters or digits of its own sort, on either side."""
    before = at > 0 and _sort(text[at - 1]) == _sort(text[at])
    return before, end < len(text) and _sort(text[end]) == _sort(text[end - 1])


def _word_around(text: bytes, at: int, end: int) -> bytes:
    start, stop = text.rfind(b" ", 0, at) + 1, text.find(b" ", end)
    return text[start : stop if stop >= 0 else len(text)]


class Matcher:
    """Answers which terms a leaf contains. Built once for a study."""

    def __init__(self, terms: Terms) -> None:
        self._terms = {key: term for key, term in terms.folded.items() if term.active}
        self._encoded = {key: term for key, term in terms.encoded.items() if term.active}
        self._samples = SampleText({key: term for key, term in terms.samples.items() if term.active})
        self._in_text, self._in_bytes = Finder(self._terms), Finder(self._encoded)
        self._known: dict[tuple[Place, bytes, tuple[str, ...]], tuple[Term, ...]] = {}

    def terms_in(self, leaf: Leaf) -> tuple[Term, ...]:
        """Every term that the value holds, personal or not, kept or not."""
        place = place_of(leaf)
        if place is Place.SAMPLES:
            return (*self._among_samples(leaf), *(self._codestream(leaf) if leaf.fragment else ()))
        if leaf.size > 512:
            return tuple(self._search(place, leaf))
        key = (place, leaf.raw, leaf.charset)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= CACHE_ENTRIES:
                self._known.clear()
            known = self._known[key] = tuple(self._search(place, leaf))
        return known

    def _search(self, place: Place, leaf: Leaf) -> Iterator[Term]:
        if place is Place.BLOB:
            if leaf.size >= BLOB_BYTES:
                yield from self._blob(leaf.buffer, leaf.start, leaf.end)
            if leaf.vr in ("UN", "OB") and leaf.size <= TEXT_BYTES:
                yield from self._base_64(leaf.raw)
                if text := _as_text(leaf.raw):
                    yield from self._folded(fold(text), Place.TEXT)
            return
        raw = leaf.raw
        for text in readings(raw, leaf.vr, leaf.charset):
            yield from self._folded(fold(_without_technical(text, place)), place)
        if not raw.isascii() or b"\x1b" in raw or b"\0" in raw.rstrip(b"\0"):
            yield from self._blob(raw, 0, len(raw))
        yield from self._base_64(raw)

    def _folded(self, text: bytes, place: Place) -> Iterator[Term]:
        for at, key in self._in_text.find(text):
            term = self._terms[key]
            if self._counts(text, at, key, term, place):
                yield term
        if place is Place.TEXT:
            joined = join_digits(text)
            if joined != text:
                for at, key in self._in_text.find(joined):
                    if key.isdigit() and len(key) >= 7 and not any(_touches(joined, at, at + len(key))):
                        yield self._terms[key]

    def _counts(self, text: bytes, at: int, key: bytes, term: Term, place: Place) -> bool:
        bare = key.replace(b" ", b"")
        if bare.isdigit() and not _digits_count(bare, term, place):
            return False
        if place is Place.BLOB and len(key) < BLOB_BYTES:
            return False
        end = at + len(key)
        before, after = _touches(text, at, end)
        if not before and not after:
            return True
        if term.alone:
            return term.kind in (Kind.DATE, Kind.BIRTH) and not before and _is_moment(text, at)
        return _word_around(text, at, end) not in common_words()

    def _blob(self, buffer: object, start: int, end: int) -> Iterator[Term]:
        for at in range(start, end, CHUNK_BYTES):
            chunk: bytes = buffer[at : min(end, at + CHUNK_BYTES + OVERLAP_BYTES)]  # type: ignore[index]
            if not any(chunk):
                continue
            yield from self._folded(fold_bytes(chunk), Place.BLOB)
            if b"\0" in chunk:  # UTF-16 of ASCII text, in either order and at any offset
                yield from self._folded(fold_bytes(chunk.replace(b"\0", b"")), Place.BLOB)
            for _, key in self._in_bytes.find(chunk.lower()):
                yield self._encoded[key]

    def _base_64(self, raw: bytes) -> Iterator[Term]:
        """Words of base64 in either alphabet (RFC 4648, 4 and 5), padded or not, decoded."""
        for word in _BASE_64.findall(raw):
            whole = word[: len(word) - (len(word) % 4 == 1)].translate(_PLAIN_ALPHABET)
            decoded = base64.b64decode(whole + b"=" * (-len(whole) % 4))
            yield from self._blob(decoded, 0, len(decoded))

    def _among_samples(self, leaf: Leaf) -> Iterator[Term]:
        for at in range(leaf.start, leaf.end, CHUNK_BYTES):
            chunk = leaf.buffer[at : min(leaf.end, at + CHUNK_BYTES + OVERLAP_BYTES)]
            yield from self._samples.in_bytes(chunk)

    def _codestream(self, leaf: Leaf) -> Iterator[Term]:
        """Text beside coded samples: JPEG APPn and COM, JPEG 2000 COM and boxes, MPEG and HEVC user data, a tail."""
        head = leaf.buffer[leaf.start : min(leaf.end, leaf.start + HEADER_BYTES)]
        if head.startswith(b"\xff\xd8"):
            stop = head.find(b"\xff\xda")
        elif head.startswith(b"\xff\x4f"):
            stop = head.find(b"\xff\x90")
        elif head[4:8] == b"jP  ":
            stop = head.find(b"jp2c")
        elif head.startswith((b"\0\0\1", b"\0\0\0\1")) or head[4:8] == b"ftyp":
            stop = 4096
        else:
            return
        head = head[: stop if stop >= 0 else len(head)]
        yield from self._blob(head, 0, len(head))
        yield from self._base_64(head)
        last = leaf.buffer[max(leaf.start, leaf.end - HEADER_BYTES) : leaf.end]
        end_of_image = last.rfind(b"\xff\xd9")
        if end_of_image >= 0:
            yield from self._blob(last, end_of_image + 2, len(last))
            yield from self._base_64(last[end_of_image + 2 :])


def _as_text(raw: bytes) -> str:
    """Unknown bytes that are printable from end to end, as text, as private text comes in UN; "" for others."""
    try:
        text = raw.strip(b" \0").decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return text if all(char.isprintable() or char in "\t\r\n\f" for char in text) else ""


def _without_technical(text: str, place: Place) -> str:
    """The values of UI, DS and IS that may hold an identifier: no UID of the standard, no digits of a fraction."""
    if place is Place.UID:
        return "\\".join(part for part in text.split("\\") if part.strip(" \0") not in UID_dictionary)
    if place is Place.NUMBER:
        return "\\".join(part for part in text.split("\\") if "." not in part)
    return text


def _digits_count(bare: bytes, term: Term, place: Place) -> bool:
    """Numbers coincide easily: what a number must have to be believed, by where it stands."""
    if place is Place.DATE:
        return False
    if term.kind is Kind.UID:
        return True
    if place is Place.NUMBER:
        return len(bare) >= 8 and term.kind not in (Kind.DATE, Kind.BIRTH)
    if place is Place.UID:
        return len(bare) >= 7 and term.kind not in (Kind.DATE, Kind.BIRTH)
    return place is not Place.BLOB or len(bare) >= 7


def _is_moment(text: bytes, at: int) -> bool:
    """True when a date is followed by a time of day without a gap: 202001312359, 20200131235959."""
    end = at
    while end < len(text) and 48 <= text[end] <= 57:
        end += 1
    return end - at in (12, 14, 17, 20)
