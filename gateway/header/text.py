"""The few identifiers that the header stage itself must read as text: bytes -> str, whatever the character set says.

Only ids that are mapped (Patient ID) are decoded; all other text is kept or replaced as bytes. The same person sent in
two character sets must get one pseudonym, so decoding follows (0008,0005) where Python has the codec and the result is
composed (NFC). Wrong or unknown declarations fall back to Latin-1, which reads every byte: a pseudonym is always made.
"""

from __future__ import annotations

import unicodedata

# PS3.3 C.12.1.1.2: single-byte and multi-byte repertoires without code extensions.
_CODECS = {
    "ISO_IR 100": "iso8859-1",
    "ISO_IR 101": "iso8859-2",
    "ISO_IR 109": "iso8859-3",
    "ISO_IR 110": "iso8859-4",
    "ISO_IR 144": "iso8859-5",
    "ISO_IR 127": "iso8859-6",
    "ISO_IR 126": "iso8859-7",
    "ISO_IR 138": "iso8859-8",
    "ISO_IR 148": "iso8859-9",
    "ISO_IR 203": "iso8859-15",
    "ISO_IR 13": "shift_jis",
    "ISO_IR 166": "iso8859-11",
    "ISO_IR 192": "utf-8",
    "GB18030": "gb18030",
    "GBK": "gbk",
}
_EXTENDED = {"ISO 2022 IR 87": "iso2022_jp", "ISO 2022 IR 159": "iso2022_jp_2", "ISO 2022 IR 149": "euc_kr"}


def codecs_of(character_set: bytes) -> tuple[str, ...]:
    """Python codecs for a Specific Character Set value, to be tried in turn."""
    terms = [term.strip(" \0") for term in character_set.decode("latin-1").split("\\")]
    found = []
    for term in terms:
        codec = _EXTENDED.get(term) or _CODECS.get(term.replace("ISO 2022 IR", "ISO_IR"))
        if codec is not None:
            found.append(codec)
    return tuple(found)


def decoded(value: bytes, character_set: bytes = b"") -> str:
    """A text value without its padding."""
    if not value.isascii() or b"\x1b" in value:
        for codec in codecs_of(character_set):
            try:
                return unicodedata.normalize("NFC", value.decode(codec)).strip(" \0")
            except (UnicodeDecodeError, LookupError):
                continue
    return unicodedata.normalize("NFC", value.decode("latin-1")).strip(" \0")
