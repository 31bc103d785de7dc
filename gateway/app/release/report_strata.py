"""Groups of people in whom a release's attackers find most: a table of the report, and what pages and commands show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from gateway.app.document.blocks import Block, Heading, Table, Words
from gateway.app.release.dossier import Dossier

COLUMNS = ("attribute", "group", "of", "people", "found", "at most", "gallery", "card")
SAYS = (
    "How often people of a group are found first in a gallery drawn from the whole release, by the attacker that finds "
    "most of them. Groups of fewer than ten people are not shown. A limit holds for everybody together: these figures "
    "decide nothing, and the worst of many groups lies above the others by chance alone. Sites and scanners are "
    "numbered, the worst first."
)

Strata = Sequence[Mapping[str, Any]]  # fields of `gate.Stratum`, as the ledger holds them


def worst_of(strata: Strata) -> list[Mapping[str, Any]]:
    """Of each attribute the group in which most are found."""
    return [max(some, key=lambda one: one["found"]) for _, some in groupby(strata, key=lambda one: one["attribute"])]


def row_of(one: Mapping[str, Any]) -> tuple[str, ...]:
    """In the order of COLUMNS."""
    groups = f"{one['groups']} groups"
    found, upper = (f"{one[name]:.3f}" for name in ("found", "upper"))
    attribute = str(one["attribute"]).replace("_", " ")
    return attribute, str(one["group"]), groups, str(one["people"]), found, upper, str(one["gallery"]), str(one["card"])


def groups_told(dossier: Dossier) -> Iterator[Block]:
    """Nothing for a release without an attacker, or from before groups were looked at."""
    if dossier.strata:
        yield Heading("Groups of people")
        yield Words(SAYS)
        columns = tuple(name.capitalize() for name in COLUMNS)
        rows = tuple(map(row_of, dossier.strata))
        yield Table(
            "Rank-1 by group, the worst of each attribute first.", columns, rows, (1, 1.5, 1, 0.8, 0.8, 0.9, 0.9, 1.6)
        )
