"""Free text of a person about a study (why it was released, why rejected): does it quote the study?

Such a text goes into the ledger, where no value out of a data set may lie. The search is the gate's own (`terms`,
`matching`), stricter in two ways: short names and short ids count when they stand as words, and what the policy keeps
counts too. Where an original cannot be read, its bytes are searched for the words of the text. A false alarm costs the
writer another wording.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway.gate.attributes import Kept, Kind
from gateway.gate.bytescan import scan_file
from gateway.gate.folding import fold, fold_bytes
from gateway.gate.matching import Matcher
from gateway.gate.reading import PARSER_FAILURES
from gateway.gate.terms import Terms
from gateway.gate.vocabulary import common_words, stand_ins
from gateway.gate.walk import Leaf
from gateway.policy import HeaderPolicy

SHORT_ID = 3
LONG_WORD = 4
HEAD_BYTES = 1 << 20
# Two and three letters that a sentence may hold although somebody bears them as a name.
_SMALL_WORDS = frozenset(
    b"""
    am an and any are as at be but by can ct did do for get go got had has he her him his if in is it its let may me mr
    my new no nor not now of off ok old on one or our out own pet see set she sir so the to too two up us use via was we
    who why yes yet you
    """.split()
)


def mentions(text: str, originals: Sequence[Path]) -> bool:
    """True when the text holds an identifying value of these originals, or of bytes that could not be read as DICOM."""
    terms = Terms(Kept(HeaderPolicy()))
    words = frozenset(fold(text).split())
    for path in originals:
        try:
            scan = scan_file(path, original=True)
            terms.harvest(scan)
            whole = not scan.malformed
        except PARSER_FAILURES:
            whole = False
        if not whole and _in_bytes(words, path):
            return True
    data = text.encode("utf-8", "replace")
    if Matcher(terms).terms_in(Leaf("", 0, "UT", data, 0, len(data), ("ISO_IR 192",))):
        return True
    return any(_stands_in(value, term.kind, words) for (_, value), term in terms.whole.items())


def _stands_in(value: bytes, kind: Kind, words: frozenset[bytes]) -> bool:
    if value in stand_ins():
        return False
    if kind is Kind.NAME:
        return any(
            len(part) > 1 and part in words and part not in _SMALL_WORDS and part not in common_words()
            for part in value.split()
        )
    parts = value.split()
    return kind is Kind.ID and len(value) >= SHORT_ID and any(map(_has_digit, parts)) and words.issuperset(parts)


def _has_digit(part: bytes) -> bool:
    return any(48 <= byte <= 57 for byte in part)


def _in_bytes(words: frozenset[bytes], path: Path) -> bool:
    with open(path, "rb") as file:
        there = frozenset(fold_bytes(file.read(HEAD_BYTES)).split())
    return any(len(word) >= LONG_WORD and word not in common_words() for word in words & there)
