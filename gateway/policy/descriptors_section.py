"""The `header.descriptors:` part of a policy: words of the site's own that cleaned descriptions may keep.

    descriptors: {allow_list: site-words.txt}     a file in the policies folder
    descriptors: {words: [Zoomscout, BRAINO]}     or right here

The file has one word a line; `#` begins a comment. A word is letters, or letters with up to four digits: what has more
digits, or is no word at all, could be somebody's number. Case does not matter. `deid-gateway text review` shows what
might belong there. The words themselves, not the file's name, are part of the policy and its digest.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from gateway.errors import Fault, PolicyError
from gateway.policy.document import Document, Faulty

MAX_WORD, MAX_WORDS, MAX_BYTES, MAX_DIGITS = 64, 20_000, 1 << 20, 4
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def _word(value: str) -> str:
    """A word in the form in which the policy holds it. Never quoted in a fault: somebody will write a name here."""
    word = unicodedata.normalize("NFC", value.strip()).casefold()
    if not word or len(word) > MAX_WORD:
        raise Faulty(f"a word has 1 to {MAX_WORD} letters and digits")
    if not _WORD.fullmatch(word):
        raise Faulty(
            "a word is letters and digits only", "write the parts between spaces and signs as words of their own"
        )
    if word.isdecimal() or sum(map(str.isdecimal, word)) > MAX_DIGITS:
        hint = "numbers with a unit and up to five digits stay anyway"
        raise Faulty(f"a word with more than {MAX_DIGITS} digits, or of digits only, could be somebody's number", hint)
    return word


def _file(value: str) -> str:
    if not _FILE.fullmatch(value) or value.endswith((".yaml", ".yml")):
        raise Faulty("allow_list is the name of a text file in the policies folder", "for example site-words.txt")
    return value


def _ordered(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))


class DescriptorsPolicy(BaseModel):
    """The site's own words, in order, each once."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    words: Annotated[tuple[Annotated[str, AfterValidator(_word)], ...], AfterValidator(_ordered)] = ()


class DescriptorsShape(DescriptorsPolicy):
    """`descriptors:` as it is written."""

    allow_list: Annotated[str, AfterValidator(_file)] = ""


def resolve_descriptors(document: Document, shape: DescriptorsShape) -> DescriptorsPolicy:
    """The words of both places. Faults of the file, each with its line, go to the document."""
    words = shape.words
    if shape.allow_list:
        try:
            words += load_words(Path(document.file).parent / shape.allow_list)
        except PolicyError as error:
            document.faults += error.faults
    return DescriptorsPolicy(words=words)


def load_words(path: Path) -> tuple[str, ...]:
    """The words of a file. Raises PolicyError with every fault of it, by line."""
    name = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PolicyError([Fault(name, 0, f"cannot be read: {error.strerror or type(error).__name__}")]) from None
    if len(data) > MAX_BYTES:
        raise PolicyError([Fault(name, 0, f"is larger than {MAX_BYTES >> 20} MiB")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError([Fault(name, 0, "is not UTF-8 text", "save the file as UTF-8")]) from None
    lines: dict[str, int] = {}
    faults: list[Fault] = []
    for number, line in enumerate(text.split("\n"), 1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        try:
            word = _word(written)
        except Faulty as error:
            faults.append(Fault(name, number, str(error), error.hint))
            continue
        if word in lines:
            faults.append(Fault(name, number, f"the same word as in line {lines[word]}", "remove one of them"))
        lines[word] = number
    if len(lines) > MAX_WORDS:
        faults.append(Fault(name, 0, f"has more than {MAX_WORDS} words"))
    if not lines and not faults:
        faults.append(Fault(name, 0, "names no word", "write one word a line, or remove allow_list"))
    if faults:
        raise PolicyError(faults[:100])
    return tuple(lines)
