"""`policy drift`: what another edition of the standard changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.homes import HomeOption, named_home, settings_of
from gateway.cli.output import JsonOption, complain, say, say_json, table

if TYPE_CHECKING:
    from gateway.app.policy.drift import Concern
    from gateway.policy import Policy
    from gateway.policy.drift import Change, Drift

SHOWN = 60  # rows of a table; --json tells of all


def drift(
    part15: Annotated[
        Path,
        typer.Argument(
            metavar="PART15.xml", readable=False, help="PS3.15 of another edition as DocBook XML, from DICOM."
        ),
    ],
    against: Annotated[
        str, typer.Option("--against", help="A shipped edition, such as 2026d. Default: the newest.")
    ] = "",
    policies: Annotated[
        Path | None,
        typer.Option("--policies", readable=False, help="The policies folder; else DEID_POLICIES, also of HOME/.env."),
    ] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Compare another edition of PS3.15 with the tables that are shipped, and say which policies it concerns.

    Looks at Table E.1-1, Table E.3.4-1, Table E.3.10-1 and, where the file has it, CID 7050. Changes nothing.
    Exit 1 when anything differs.
    """
    from gateway.app.policy.drift import concerns, policies_in, read_drift

    found = read_drift(part15, against)
    folder = policies or settings_of(named_home(home)).policies
    sound, faulty = policies_in(folder)
    concerned = [(policy, list(concerns(policy, found.changes))) for policy in sound]
    if json:
        say_json(_document(found, concerned))
    else:
        _show(found, concerned, part15)
    for name in faulty:
        complain(f"{folder / name} has faults and was left out; deid-gateway policy check tells them")
    return 1 if found.changes else 0


def _document(found: Drift, concerned: list[tuple[Policy, list[Concern]]]) -> dict[str, object]:
    from gateway.app.policy.drift import unknown_to_us

    return {
        "edition": found.edition,
        "against": found.against,
        "rows": {str(name): count for name, count in found.rows.items()},
        "absent": list(map(str, found.absent)),
        "changes": [
            {
                "table": str(change.table),
                "kind": str(change.kind),
                "key": change.key,
                "name": change.name,
                "cells": [{"column": column, "old": old, "new": new} for column, old, new in change.cells],
                "unknown_attribute": unknown_to_us(change),
            }
            for change in found.changes
        ],
        "policies": [
            {
                "name": policy.name,
                "concerns": [
                    {
                        "table": str(c.change.table),
                        "key": c.change.key,
                        "name": c.change.name,
                        "now": c.now,
                        "then": c.then,
                    }
                    for c in told
                ],
            }
            for policy, told in concerned
        ],
    }


def _show(found: Drift, concerned: list[tuple[Policy, list[Concern]]], path: Path) -> None:
    from gateway.app.policy.drift import unknown_to_us
    from gateway.policy.drift import Kind, Table

    say(f"{path}: edition {found.edition or 'not named'}, compared with the shipped edition {found.against}")
    for name in Table:
        if name in found.absent:
            say(f"{name}: not in this file, not compared")
            continue
        counts = Counter(change.kind for change in found.changes if change.table is name)
        says = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind]) or "the same"
        say(f"{name}: {found.rows[name]} rows; {says}")
    for name in Table:
        changes = [change for change in found.changes if change.table is name]
        if changes:
            say("")
            changed = [(change.kind, _key(change), change.name, _cells(change)) for change in changes[:SHOWN]]
            table(str(name), ["", "row", "name", "what changes"], changed)
        if len(changes) > SHOWN:
            say(f"{len(changes) - SHOWN} more; --json tells of all")
    strangers = [change for change in found.changes if unknown_to_us(change)]
    if strangers:
        says = ", ".join(_key(change) for change in strangers[:SHOWN])
        say(f"this version's dictionary lacks {says}: removed wherever they are met, whatever the table says")
    if not found.changes:
        return
    say("")
    for policy, told in concerned:
        if not told:
            say(f"policy {policy.name}: nothing that it does would change")
            continue
        rows = [(str(c.change.table), _key(c.change), c.change.name, c.now, c.then) for c in told[:SHOWN]]
        table(
            f"Policy {policy.name}: {len(told)} would be treated otherwise",
            ["table", "row", "name", "now", "then"],
            rows,
        )
        if len(told) > SHOWN:
            say(f"{len(told) - SHOWN} more; --json tells of all")
    edition = found.edition or "EDITION"
    say(f"\nto take it in: python tools/generate_standard.py --edition {edition} --taken DATE {path}")
    say(f"policies stay with the edition that they name; they change when they say ps3.15-basic@{edition}")


def _key(change: Change) -> str:
    key = change.key
    return f"({key[:4]},{key[4:]})" if len(key) == 8 and key.isalnum() else key


def _cells(change: Change) -> str:
    from gateway.policy.drift import Kind

    if change.kind is Kind.CHANGED:
        return "; ".join(f"{column}: {old or 'none'} -> {new or 'none'}" for column, old, new in change.cells)
    side = 2 if change.kind is Kind.ADDED else 1
    told = [f"{cell[0]} {cell[side]}" for cell in change.cells if cell[side] and cell[0] not in ("meaning", "retired")]
    return ", ".join(one for one in told if not one.startswith("in_std"))
