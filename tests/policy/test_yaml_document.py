"""Reading YAML: plain data with lines; every way a file can be wrong is a fault with its line, never an exception."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.policy.document import MAX_BYTES, Document, parse_document, read_document


def parsed(text: str | bytes) -> Document:
    document = Document("f.yaml")
    parse_document(document, text.encode() if isinstance(text, str) else text)
    return document


def test_values_and_lines_are_those_of_the_file() -> None:
    document = parsed("a: 1\nb:\n  - x\n  - {c: true,\n     d: null}\n'e': \"2\"\n")
    assert document.data == {"a": 1, "b": ["x", {"c": True, "d": None}], "e": "2"}
    assert not document.faults
    assert document.line(("b", 1, "d")) == 5
    assert document.line(("b", 1, "missing")) == 4
    assert document.line(("b", 0)) == 3
    assert document.line(()) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),  # YAML 1.1 would say False: the Norway problem
        ("ON", "ON"),
        ("yes", "yes"),
        ("True", "True"),
        ("12:30", "12:30"),  # YAML 1.1 would say 750
        ("010", "010"),  # YAML 1.1 would say 8
        ("0x1F", "0x1F"),
        ("2026-01-31", "2026-01-31"),  # YAML 1.1 would give a date
        (".inf", ".inf"),
        ("1_000", "1_000"),
        ("=", "="),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("~", None),
        ("", None),
        ("null", None),
        ("true", True),
        ("'1'", "1"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("dicom://AET@host:104", "dicom://AET@host:104"),
    ],
)
def test_only_the_core_scalars_are_not_text(text: str, value: object) -> None:
    document = parsed(f"key: {text}\n")
    assert not document.faults
    assert document.data == {"key": value}
    assert type(document.data["key"]) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: &x 2\nc: *x\n", 2, "an anchor"),
        ("a: 1\nb: *x\n", 2, "an alias"),
        ("a: 1\nb: !!python/object:os.system x\n", 2, "a tag"),
        ("a: !!str 1\n", 1, "a tag"),
        ("a: !x {b: 1}\n", 1, "a tag"),
        ("a: 1\n---\nb: 2\n", 2, "more than one document"),
        ("- a\n- b\n", 1, "must be a mapping"),
        ("just text\n", 1, "must be a mapping"),
        ("", 1, "must be a mapping"),
        ("# only a comment\n", 1, "must be a mapping"),
        ("a: 1\n? [x]\n: 2\n", 2, "a key must be a word"),
        ("a: 1\n  b: 2\n", 2, "not YAML"),
        ("a: [1, 2\nb: 3\n", 2, "not YAML"),
        ("a:\n\t- b\n", 2, "not YAML"),
        ('a: "\\ud800"\n', 1, "U+D800"),
        ('a: 1\nb: "\\0"\n', 2, "U+0000"),
        ('a: "\\UFFFFFFFF"\n', 0, "not YAML"),
        ("a: 1\nb: \x07\n", 2, "control character"),
        ("a: " + "[" * 17 + "]" * 17 + "\n", 1, "nested deeper"),
        ("a: 1e999\n", 1, "too large"),
        ("%YAML 9.9.9\n---\na: 1\n", 1, "not YAML"),
    ],
)
def test_what_is_not_a_plain_mapping_is_a_fault_at_its_line(text: str, line: int, says: str) -> None:
    document = parsed(text)
    assert document.data == {}
    assert [(fault.line, says in fault.says) for fault in document.faults] == [(line, True)]


def test_a_duplicate_key_is_a_fault_and_the_rest_is_still_read() -> None:
    document = parsed("a: 1\nb: {c: 1, c: {d: 2}}\na: [1, {x: 2}]\ne: 5\n")
    assert document.data == {"a": 1, "b": {"c": 1}, "e": 5}
    assert [(fault.line, fault.says) for fault in document.faults] == [
        (2, "the key c is here twice, first in line 2"),
        (3, "the key a is here twice, first in line 1"),
    ]


def test_a_merge_key_merges_nothing() -> None:
    assert parsed("<<: {a: 1}\n").data == {"<<": {"a": 1}}


def test_a_file_that_is_not_utf_8_says_where() -> None:
    document = parsed("a: 1\nb: é\n".encode("latin-1"))
    assert [(fault.line, fault.says) for fault in document.faults] == [(2, "is not UTF-8 text")]
    assert parsed("\ufeffa: 1\n").data == {"a": 1}  # a byte order mark does no harm


def test_a_huge_file_is_not_parsed() -> None:
    document = parsed(b"a: b\n" + b"#" * MAX_BYTES)
    assert "larger than 256 KiB" in document.faults[0].says


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    document = parsed(bomb)
    assert document.faults[0].line == 1
    assert len(document.faults) == 1


def test_a_fault_does_not_repeat_a_whole_book() -> None:
    document = parsed("a: 1\n")
    document.fault(("a",), "unknown key " + "x" * 100_000)
    assert len(document.faults[0].says) < 500


def test_a_missing_file_or_a_folder_is_a_fault(tmp_path: Path) -> None:
    assert "cannot be read" in read_document(tmp_path / "none.yaml").faults[0].says
    assert "cannot be read" in read_document(tmp_path).faults[0].says


PIECES = (
    "a",
    "b: ",
    "- ",
    "\n",
    "  ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    "&x ",
    "*x",
    "!t ",
    "|\n",
    ">",
    "'",
    '"',
    "#",
    "? ",
)
MORE_PIECES = ("---\n", "...\n", "%YAML 1.1\n", "\t", "\\", "\\u", "1", "é", "\x85", "\u2028", "<<", "~", "true")
YAML_PIECES = st.lists(st.sampled_from((*PIECES, *MORE_PIECES)), max_size=40).map("".join)


@settings(deadline=None)
@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")), YAML_PIECES)
)
@example(b"\xff\xfea\x00")
@example(b"a: !<tag:yaml.org,2002:int> 1")
@example("a: \ufeffb")
def test_no_bytes_make_the_reader_raise(data: bytes | str) -> None:
    document = parsed(data)
    assert isinstance(document.data, dict)
    assert all(fault.line >= 0 and fault.says for fault in document.faults)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text("abcN oé:#-", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=4), PLAIN, min_size=1, max_size=4))
def test_what_pyyaml_writes_is_read_back_as_it_was(data: dict[str, object]) -> None:
    document = parsed(yaml.safe_dump(data, allow_unicode=True))
    assert not document.faults
    assert document.data == data
