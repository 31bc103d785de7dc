"""Text in the form in which it is compared: lower case, no accents, one space for all that is no letter or digit.

    "ZZSYNTH^LEAKTEST", "Zzsynth, Leaktest", "zzsynth_leaktest"  ->  b"zzsynth leaktest"
    "1.2.840.113619.2"                                           ->  b"1 2 840 113619 2"
    "31.01.1950", "31-01-1950", "31/01/1950"                     ->  b"31 01 1950"

Folded text is UTF-8, so that one search by bytes serves text of every script. NFKD joins full-width and half-width
forms, and separates accents, which are dropped; so are soft hyphens and other marks nobody sees. `ß` becomes `ss`.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import lru_cache

from pydicom.charset import convert_encodings, decode_bytes
from pydicom.valuerep import PN_DELIMS, TEXT_VR_DELIMS

_TABLE = bytes(ord(chr(b).lower()) if b < 128 and chr(b).isalnum() else 32 for b in range(256))
_NOT_WORD = re.compile(r"[\W_]+")
_DIGIT_GAP = re.compile(rb"(?<=[0-9])[ \-./()]+(?=[0-9])")


def fold_bytes(raw: bytes) -> bytes:
    """Fold bytes as ASCII; bytes above 127 separate, as punctuation does."""
    return b" ".join(raw.translate(_TABLE).split())


def fold(text: str) -> bytes:
    """Fold text of any script."""
    if text.isascii():
        return fold_bytes(text.encode("ascii"))
    apart = unicodedata.normalize("NFKD", text)
    bare = "".join(char for char in apart if unicodedata.category(char) not in ("Mn", "Cf")).casefold()
    return _NOT_WORD.sub(" ", bare).strip().encode("utf-8", "replace")


def join_digits(folded: bytes) -> bytes:
    """Folded text with the gaps between digits closed: "044 123 45 67" -> "0441234567"."""
    return _DIGIT_GAP.sub(b"", folded)


@lru_cache(maxsize=256)
def codecs(charset: tuple[str, ...]) -> tuple[str, ...]:
    """Python codecs of a Specific Character Set (PS3.3 C.12.1.1.2); ("latin-1",) for one that is not known."""
    try:
        return tuple(convert_encodings(list(charset) or [""]))
    except (LookupError, ValueError, TypeError, AttributeError):
        return ("latin-1",)


def readings(raw: bytes, vr: str, charset: tuple[str, ...]) -> tuple[str, ...]:
    """Every text that the bytes may mean: in the declared character sets, as UTF-8, as Latin-1. Without padding.

    A wrong or missing declaration is common, so each reading that is possible is looked at (cases.md 60).
    """
    raw = raw.strip(b" \0")
    if raw.isascii() and b"\x1b" not in raw:
        return (raw.decode("ascii"),)
    found: dict[str, None] = {}
    with suppress(LookupError, ValueError, TypeError, IndexError):  # then another reading is the answer
        found[decode_bytes(raw, list(codecs(charset)), PN_DELIMS if vr == "PN" else TEXT_VR_DELIMS)] = None
    with suppress(UnicodeDecodeError):
        found[raw.decode("utf-8")] = None
    found[raw.decode("latin-1")] = None
    return tuple(found)
