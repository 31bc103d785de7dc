"""A YAML file as plain data with the line of every part, and all its faults: the only place that reads YAML.

Built from PyYAML's event stream, so that nothing is constructed from a tag and nothing is expanded: anchors, aliases,
tags, merge keys, several documents and duplicate keys are faults, with their line. Scalars follow the core rules of
YAML 1.2: only `true`, `false`, `null` and decimal numbers are not text; a modality NO, an AE title ON or
12:30 stay text.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gateway.errors import Fault

MAX_BYTES = 256 * 1024  # a policy is a page or two; parsing time grows with size
MAX_DEPTH = 16
MAX_SAYS = 400
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")

Path_ = tuple[str | int, ...]


class Faulty(ValueError):
    """Something wrong with one value of a file; `hint` is the next action."""

    def __init__(self, says: str, hint: str = "") -> None:
        super().__init__(says)
        self.hint = hint


def close_match(word: str, known: Iterable[str]) -> str:
    """A question that offers the word of `known` nearest to a word, "" when none is near. Case does not matter."""
    by_lower = {name.lower(): name for name in sorted(known)}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return f"did you mean {by_lower[found[0]]}?" if found else ""


@dataclass(slots=True)
class Document:
    """One file: its data (a mapping, {} when unusable), the line of every path, and the faults found so far."""

    file: str
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path_, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def line(self, at: Path_) -> int:
        """The line of `at`, or of the nearest part around it; 0 when the file as a whole is meant."""
        for end in range(len(at), -1, -1):
            if at[:end] in self.lines:
                return self.lines[at[:end]]
        return 0

    def fault(self, at: Path_, says: str, hint: str = "") -> None:
        """Record one fault at a path; a text that quotes a very long value is cut."""
        says = says if len(says) <= MAX_SAYS else says[:MAX_SAYS] + "…"
        self.faults.append(Fault(self.file, self.line(at), says, hint))


def read_document(path: Path) -> Document:
    """Read one YAML file. Never raises for its contents: what is wrong with it is in `faults`."""
    document = Document(str(path))
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        document.faults.append(Fault(document.file, 0, f"cannot be read: {error.strerror or type(error).__name__}"))
        return document
    parse_document(document, data)
    return document


def parse_document(document: Document, data: bytes) -> None:
    """Fill `document` from the bytes of its file."""
    if len(data) > MAX_BYTES:
        document.faults.append(Fault(document.file, 0, f"is larger than {MAX_BYTES // 1024} KiB", "split it"))
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        document.faults.append(Fault(document.file, line, "is not UTF-8 text", "save the file as UTF-8"))
        return
    try:
        _Builder(document).build(text)
    except _StopReading:
        document.data = {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        says = "not YAML: " + " ".join(part for part in (error.context, error.problem) if part)
        document.data = {}
        document.faults.append(Fault(document.file, mark.line + 1 if mark else 0, says, "check indentation and quotes"))
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        document.data = {}
        document.faults.append(Fault(document.file, line, "a control character", "remove it"))
    except (yaml.YAMLError, ValueError, OverflowError):  # an escape such as "\UFFFFFFFF" is no character
        document.data = {}
        document.faults.append(Fault(document.file, 0, "not YAML: an escape or a directive is invalid"))


class _StopReading(Exception):
    """The file cannot be used; its fault is recorded."""


@dataclass(slots=True)
class _Open:
    """A mapping or sequence that is being filled; `key` is the pending key of a mapping."""

    value: dict[str, Any] | list[Any]
    at: Path_
    key: str | None = None
    skip: bool = False  # a duplicate or impossible key: its value is read and dropped


class _Builder:
    """Turns events into data. Depth is limited, so an explicit stack is enough."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.stack: list[_Open] = []
        self.documents = 0

    def build(self, text: str) -> None:
        root: Any = None
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            mark = event.start_mark
            line = mark.line + 1 if mark is not None else 0
            if isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    self.stop(line, "more than one document in a file", "one policy a file; remove the line ---")
            elif isinstance(event, yaml.AliasEvent):
                self.stop(line, f"an alias, *{event.anchor}", "write the value out; a policy is read by people")
            elif isinstance(event, yaml.ScalarEvent):
                self.refuse_properties(event, line)
                self.scalar(event, line)
            elif isinstance(event, yaml.CollectionStartEvent):
                self.refuse_properties(event, line)
                opened = self.open(event, line)
                root = opened.value if root is None and len(self.stack) == 1 else root
            elif isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
        if not isinstance(root, dict):
            self.stop(1, "the file must be a mapping of keys to values", "start with a key such as `name:`")
        self.document.data = root

    def stop(self, line: int, says: str, hint: str = "") -> None:
        self.document.faults.append(Fault(self.document.file, line, says, hint))
        raise _StopReading

    def refuse_properties(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            self.stop(line, f"an anchor, &{event.anchor}", "write the value out; a policy is read by people")
        if event.tag is not None:
            self.stop(line, "a tag (!...)", "remove it; policies hold text, numbers, lists and mappings only")

    def open(self, event: Any, line: int) -> _Open:
        if len(self.stack) >= MAX_DEPTH:
            self.stop(line, f"nested deeper than {MAX_DEPTH} levels")
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        parent = self.stack[-1] if self.stack else None
        if parent is not None and isinstance(parent.value, dict) and parent.key is None:
            self.stop(line, "a key must be a word, not a list or a mapping")
        opened = _Open(value, self.place(value, line))
        self.stack.append(opened)
        return opened

    def scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        bad = _UNPRINTABLE.search(event.value)
        if bad:
            self.stop(line, f"the character U+{ord(bad.group()):04X}", "remove it")
        parent = self.stack[-1] if self.stack else None
        if parent is not None and isinstance(parent.value, dict) and parent.key is None:
            parent.key = event.value
            parent.skip = event.value in parent.value
            if parent.skip:
                first = self.document.line((*parent.at, event.value))
                says = f"the key {event.value} is here twice, first in line {first}"
                self.document.faults.append(Fault(self.document.file, line, says, "remove one of them"))
            else:
                self.document.lines[*parent.at, event.value] = line
                parent.value[event.value] = None
            return
        self.place(self.resolve(event, line), line)

    def place(self, value: Any, line: int) -> Path_:
        """Put a value where the event stream is; gives its path."""
        if not self.stack:
            self.document.lines[()] = line
            return ()
        parent = self.stack[-1]
        if isinstance(parent.value, list):
            at: Path_ = (*parent.at, len(parent.value))
            parent.value.append(value)
            self.document.lines[at] = line
            return at
        key, skip = parent.key, parent.skip
        parent.key, parent.skip = None, False
        assert key is not None  # noqa: S101 - `scalar` and `open` saw to it
        if skip:
            return (*parent.at, key, "(second)")
        parent.value[key] = value
        return (*parent.at, key)

    def resolve(self, event: yaml.ScalarEvent, line: int) -> Any:
        text = event.value
        if event.style is not None or not event.implicit[0]:
            return text
        words: Mapping[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
        if text in words:
            return words[text]
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if math.isinf(number):
                self.stop(line, "a number too large to hold")
            return number
        return text
