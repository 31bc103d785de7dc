"""PS3.15 Table E.3.4-1: what the Clean Structured Content Option does to a content item.

A row is found by the item's concept and value type. A concept may be coded in a retired scheme (SRT, SNM3, 99SDM, the
SNOMED codes before 2019): the same row is found, through the mapping that pydicom takes from PS3.16 Table O-1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pydicom.sr._snomed_dict import mapping

from gateway.policy.frozen import FrozenMap
from gateway.policy.standard import CONTENT_TABLE, DEFAULT_EDITION, dated_file, parse_options, read_dated

OLD_SNOMED = frozenset({"SRT", "SNM3", "99SDM"})  # PS3.16 8.1
Concept = tuple[str, str]  # coding scheme designator, code value


@dataclass(frozen=True, slots=True)
class ContentRow:
    """One row. `columns` maps an option's name to its code (K or C) where the table has one."""

    scheme: str
    code: str
    meaning: str
    value_type: str
    basic: str
    columns: Mapping[str, str]


@cache
def load_content_table(edition: str = DEFAULT_EDITION) -> Mapping[tuple[str, str, str], ContentRow]:
    """Rows by (scheme, code, value type)."""
    _, rows = read_dated(dated_file(CONTENT_TABLE, edition))
    return FrozenMap(
        {
            (row["scheme"], row["code"], row["value_type"]): ContentRow(
                row["scheme"],
                row["code"],
                row["meaning"],
                row["value_type"],
                row["basic"],
                parse_options(row["options"]),
            )
            for row in rows
        }
    )


def current_concept(scheme: str, code: str) -> Concept:
    """A concept in the scheme of now: SRT and its kin as SCT, version suffixes of a scheme's name left in place."""
    if scheme in OLD_SNOMED and code in mapping["SRT"]:
        return "SCT", mapping["SRT"][code]
    return scheme, code


def content_row(scheme: str, code: str, value_type: str, edition: str = DEFAULT_EDITION) -> ContentRow | None:
    """The row of a content item, None where the table has none."""
    return load_content_table(edition).get((*current_concept(scheme, code), value_type))
