"""The dated tables of the standard that policies are built on (`policies/standard/`), read once and never changed.

    load_table               PS3.15 Table E.1-1: what the Basic Profile and each option do to an attribute
    load_watchlist           attributes of standard IODs that E.1-1 does not list and that may carry identity or UIDs
    load_type_conflicts      places where a literal X or Z of the table breaks a Type 1 or 2 attribute of PS3.3
    load_missing_dictionary  attributes of PS3.6 that pydicom's dictionary does not know yet

The files are CSV with a `# name: value` head (edition, source, source-sha256, taken); `tools/generate_standard.py`
writes them. They are part of every policy's digest: another table is another policy.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydicom.datadict import keyword_dict, keyword_for_tag, tag_for_keyword

from gateway.errors import EnvironmentFault, UsageError
from gateway.policy.frozen import FrozenMap
from gateway.settings import SHIPPED_POLICIES
from gateway.study import canonical_json

FOLDER = SHIPPED_POLICIES / "standard"
# Files of these tables are named by edition.
TABLE, CONTENT_TABLE, SAFE_TABLE = "ps3_15_e1_1_", "ps3_15_e3_4_1_", "ps3_15_e3_10_1_"
DEFAULT_EDITION = "2026d"
FULL_DATES = "retain-longitudinal-full-dates"
MODIFIED_DATES = "retain-longitudinal-modified-dates"
PRIVATE = "ggggeeee"  # the row "(gggg,eeee) where gggg is odd"

# Option names in the order of the table's columns (PS3.15 E.3): name in a policy -> code and meaning in CID 7050.
OPTION_CODES: Mapping[str, tuple[str, str]] = FrozenMap(
    {
        "retain-safe-private": ("113111", "Retain Safe Private Option"),
        "retain-uids": ("113110", "Retain UIDs Option"),
        "retain-device-identity": ("113109", "Retain Device Identity Option"),
        "retain-institution-identity": ("113112", "Retain Institution Identity Option"),
        "retain-patient-characteristics": ("113108", "Retain Patient Characteristics Option"),
        FULL_DATES: (
            "113106",
            "Retain Longitudinal Temporal Information Full Dates Option",
        ),
        MODIFIED_DATES: (
            "113107",
            "Retain Longitudinal Temporal Information Modified Dates Option",
        ),
        "clean-descriptors": ("113105", "Clean Descriptors Option"),
        "clean-structured-content": ("113104", "Clean Structured Content Option"),
        "clean-graphics": ("113103", "Clean Graphics Option"),
    }
)
OPTIONS: tuple[str, ...] = tuple(OPTION_CODES)
BASIC_CODES = frozenset({"D", "Z", "X", "K", "C", "U", "Z/D", "X/Z", "X/D", "X/Z/D", "X/Z/U*"})  # Table E.1-1a


@dataclass(frozen=True, slots=True)
class Row:
    """One row of Table E.1-1.

    `tag` is eight hex digits in upper case, or one of the forms "50xxxxxx", "60xx3000", "60xx4000" (the 16 even
    groups, PS3.5 7.6) and "ggggeeee" (odd groups: private). `columns` maps an option's name (a member of OPTIONS) to
    its code where the table has one. `keyword` is "" for "50xxxxxx" and "ggggeeee".
    """

    tag: str
    keyword: str
    basic: str
    columns: Mapping[str, str]
    retired: bool = False
    in_standard_iod: bool = True


@dataclass(frozen=True, slots=True)
class Watched:
    """An attribute that a standard IOD uses and that Table E.1-1 does not list (note to PS3.15 E.1.1).

    `kind` is one of instance-uid, structural-uid, other-uid, date-time, text, uri, bulk.
    """

    tag: str
    keyword: str
    vr: str
    kind: str


@dataclass(frozen=True, slots=True)
class TypeConflict:
    """A place where the table's literal code breaks an attribute's Type (PS3.15 E.1.1: IOD integrity).

    `sequence_path` is keywords joined by "/", "" at top level.
    """

    keyword: str
    basic: str
    type: str
    module: str
    sequence_path: str


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """An attribute of PS3.6 that pydicom 3.0.2 does not know."""

    tag: str
    keyword: str
    vr: str
    vm: str


def editions() -> tuple[str, ...]:
    """The editions of Table E.1-1 that this build ships, oldest first."""
    names = (path.stem.removeprefix(TABLE) for path in FOLDER.glob(f"{TABLE}*.csv"))
    return tuple(sorted(names))


def dated_file(table: str, edition: str) -> Path:
    """The file of a table for policies of an edition: that edition's own, else the newest before it, else the first.

    An edition that changes Table E.1-1 alone brings no file for the others. Raises EnvironmentFault when there is none.
    """
    files = sorted(FOLDER.glob(f"{table}*.csv"))
    if not files:
        raise EnvironmentFault(f"{FOLDER / table}* is missing: the installation is incomplete")
    older = [path for path in files if path.stem.removeprefix(table) <= edition]
    return older[-1] if older else files[0]


def read_dated(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Head and rows of one data file. Raises EnvironmentFault when it is missing: the installation is broken."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise EnvironmentFault(f"{path} cannot be read: the installation is incomplete") from error
    head = {}
    body = []
    for line in lines:
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            head[name] = value
        else:
            body.append(line)
    return head, list(csv.DictReader(body))


def parse_options(cell: str) -> FrozenMap[str, str]:
    """Mapping of a cell such as "retain-uids=K clean-graphics=C". Raises EnvironmentFault for another name."""
    pairs = [part.partition("=")[::2] for part in cell.split()]
    unknown = [name for name, _ in pairs if name not in OPTION_CODES]
    if unknown:
        raise EnvironmentFault(f"the standard's table names unknown options: {', '.join(unknown)}")
    return FrozenMap(pairs)


@cache
def load_table(edition: str = DEFAULT_EDITION) -> Mapping[str, Row]:
    """Table E.1-1 by tag. Raises UsageError for an edition that is not shipped and says which are."""
    if edition not in editions():
        raise UsageError(f"no edition {edition} of PS3.15 Table E.1-1 here; there is: {', '.join(editions())}")
    missing = load_missing_dictionary()
    _, rows = read_dated(FOLDER / f"{TABLE}{edition}.csv")
    return FrozenMap(
        {
            row["tag"]: Row(
                tag=row["tag"],
                keyword=row["keyword"] or (missing[row["tag"]].keyword if row["tag"] in missing else ""),
                basic=row["basic"],
                columns=parse_options(row["options"]),
                retired=row["retired"] == "Y",
                in_standard_iod=row["in_std_comp_iod"] == "Y",
            )
            for row in rows
        }
    )


@cache
def load_watchlist() -> Mapping[str, Watched]:
    """Attributes outside the table that need a decision, by tag."""
    _, rows = read_dated(FOLDER / "beyond_e1_1_2026c.csv")
    return FrozenMap({row["tag"]: Watched(**row) for row in rows})


@cache
def load_type_conflicts() -> tuple[TypeConflict, ...]:
    """Where a literal X or Z breaks the IOD."""
    _, rows = read_dated(FOLDER / "type_conflicts_2026c.csv")
    return tuple(TypeConflict(**row) for row in rows)


@cache
def load_missing_dictionary() -> Mapping[str, MissingEntry]:
    """Attributes that pydicom's dictionary lacks, by tag."""
    _, rows = read_dated(FOLDER / "missing_in_pydicom_3_0_2.csv")
    return FrozenMap({row["tag"]: MissingEntry(**row) for row in rows})


@cache
def standard_digest(edition: str) -> str:
    """sha256, 64 hex, over what the data files of `standard/` say, not over form or head: one edition of the table,
    and everything that goes with it. Raises UsageError as `load_table`.
    """
    load_table(edition)
    parts: dict[str, object] = {"edition": edition}
    dated = {table: dated_file(table, edition) for table in (TABLE, CONTENT_TABLE, SAFE_TABLE)}
    for path in sorted(FOLDER.iterdir()):
        other_edition = any(path.name.startswith(table) and path != own for table, own in dated.items())
        if path.suffix == ".csv" and not other_edition:
            parts[path.name] = read_dated(path)[1]
        elif path.suffix == ".json":
            parts[path.name] = json.loads(path.read_text("utf-8"))
    return hashlib.sha256(canonical_json(parts)).hexdigest()


@cache
def _missing_by_keyword() -> Mapping[str, int]:
    return FrozenMap({entry.keyword: int(tag, 16) for tag, entry in load_missing_dictionary().items()})


def tag_of_keyword(keyword: str) -> int | None:
    """The tag of a standard keyword, pydicom's and the missing ones; None for unknown ones and repeating groups."""
    tag = tag_for_keyword(keyword)
    return int(tag) if tag is not None else _missing_by_keyword().get(keyword)


def keyword_of_tag(tag: int) -> str:
    """The keyword of a tag, "" when neither pydicom nor the missing dictionary knows it (or it is private)."""
    return keyword_for_tag(tag) or next((word for word, known in _missing_by_keyword().items() if known == tag), "")


@cache
def all_keywords() -> frozenset[str]:
    """Every keyword that a policy may write, for close-match hints."""
    return frozenset(keyword_dict) | frozenset(_missing_by_keyword())
