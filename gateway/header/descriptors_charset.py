"""Text values between bytes and characters, whatever the character set says (PS3.5 6.1.2, PS3.3 C.12.1.1.2).

A value without code extensions is read by one codec, so that what stays is written back as the bytes that came; with
ISO 2022 escapes pydicom reads and writes it. Wrong and missing declarations are common: UTF-8 that is UTF-8 is read as
such, escapes are followed whatever is declared, and what nothing else reads is read as Latin-1. Never raises for any
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from pydicom.charset import convert_encodings, decode_bytes, encode_string
from pydicom.valuerep import TEXT_VR_DELIMS

from gateway.header.text import codecs_of

ESCAPE = b"\x1b"
_GB2312, _ASCII_AGAIN = b"\x1b$)A", b"\x1b(B"  # ISO 2022 IR 58: G1 is designated, in each component anew (PS3.5 K.3)
# Escapes say themselves what follows, also where another character set is declared, or none.
_EVERY_ESCAPE = "\\".join(
    f"ISO 2022 IR {number}" for number in (6, 13, 87, 159, 149, 100, 101, 109, 110, 144, 127, 126, 138, 148, 166)
).encode()
UNREADABLE = "\ua000\ua001"  # letters of a script without a word in the list
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# Multi-byte codecs whose bytes may look like UTF-8 by chance: the declaration is believed first.
_WIDE = frozenset({"gb18030", "gbk", "shift_jis", "euc_kr", "iso2022_jp", "iso2022_jp_2"})


class Decoded(NamedTuple):
    """A text, and how to write a text in its place: None when that character set cannot hold it."""

    text: str
    encode: Callable[[str], bytes | None]


def _by(codec: str) -> Callable[[str], bytes | None]:
    def encode(text: str) -> bytes | None:
        try:
            return text.encode(codec)
        except UnicodeError:
            return None

    return encode


_ASCII = _by("ascii")


@lru_cache(maxsize=256)
def _extended(character_set: bytes) -> tuple[str, ...]:
    terms = [term.strip(" \0") for term in character_set.decode("latin-1").split("\\")]
    try:
        return tuple(convert_encodings(terms))
    except (LookupError, ValueError, TypeError, AttributeError):
        return ()


def _with_gb2312(value: bytes) -> Decoded | None:
    """A value whose only escapes designate GB 2312, which pydicom leaves in the text."""
    bare = value.replace(_GB2312, b"").replace(_ASCII_AGAIN, b"")
    try:
        text = bare.decode("gb2312")
    except UnicodeError:
        return None
    if ESCAPE in bare:
        return None

    def encode(new: str) -> bytes | None:
        try:
            return _NOT_ASCII.sub(lambda run: f"{_GB2312.decode()}{run[0]}", new).encode("gb2312")
        except UnicodeError:
            return None

    return Decoded(text, encode)


def _with_escapes(value: bytes, character_set: bytes) -> Decoded | None:
    if _GB2312 in value and (found := _with_gb2312(value)) is not None:
        return found
    encodings = list(_extended(character_set))
    if not encodings:
        return None
    try:
        text = decode_bytes(value, encodings, set(TEXT_VR_DELIMS))
    except (LookupError, ValueError, TypeError, IndexError):
        return None
    if "\ufffd" in text or "\x1b" in text:
        return None

    def encode(new: str) -> bytes | None:
        try:
            written = encode_string(new, encodings)
            again = decode_bytes(written, encodings, set(TEXT_VR_DELIMS))
        except (LookupError, ValueError, TypeError, IndexError):
            return None
        return written if again == new else None

    return Decoded(text, encode)


def _until_escape(value: bytes) -> Decoded:
    """What stands before an escape that nothing understands, and for the rest a word that nobody knows."""
    return Decoded(value[: value.index(ESCAPE)].decode("latin-1") + UNREADABLE, _by("latin-1"))


def decoded_value(value: bytes, character_set: bytes) -> Decoded:
    """A text value as characters. Padding stays."""
    if value.isascii() and ESCAPE not in value:
        return Decoded(value.decode("ascii"), _ASCII)
    if ESCAPE in value:
        return _with_escapes(value, character_set) or _with_escapes(value, _EVERY_ESCAPE) or _until_escape(value)
    declared = codecs_of(character_set)
    tried = (*declared, "utf-8") if _WIDE & set(declared[:1]) else ("utf-8", *declared)
    for codec in tried:
        try:
            text = value.decode(codec)
        except (UnicodeError, LookupError):
            continue
        encode = _by(codec)
        if encode(text) == value:
            return Decoded(text, encode)
    return Decoded(value.decode("latin-1"), _by("latin-1"))


def readings_of(value: bytes, character_set: bytes) -> tuple[str, ...]:
    """Every text that the bytes of an identifier may mean: as read for cleaning, as declared, as Latin-1 at last."""
    first = decoded_value(value, character_set).text
    if value.isascii() and ESCAPE not in value:
        return (first,)
    found = dict.fromkeys([first])
    for codec in codecs_of(character_set):
        try:
            found[value.decode(codec)] = None
        except (UnicodeError, LookupError):
            continue
    return tuple(found)
