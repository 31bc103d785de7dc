"""`policy lookup`: whether the tables that a policy names can be followed. Faults name lines, never a cell."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli.homes import HomeOption, made_home, policy_at, settings_of
from gateway.cli.output import JsonOption, complain, say, say_json
from gateway.errors import EnvironmentFault, PolicyError, Retry


def lookup(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="A policy file, or a name in the policies folder.")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Read the lookup and merge tables of a policy, also those in databases, and print every fault. Exit 2 if any.

    `policy check` judges the files among them as well.
    """
    from gateway.app.batch.studies import tables_beside
    from gateway.app.person.tables import PeopleTables
    from gateway.pseudonyms import Keys, master_key

    place = made_home(home)
    settings = settings_of(place)
    people = merged = 0
    faults = []
    try:
        rule = policy_at(policy, place).header.patient_id
        keys = Keys(master_key(place, settings))
        tables = PeopleTables(tables_beside(policy, settings.policies), keys, settings.lookup_urls)
        people = len(tables.lookup(rule).pseudonyms) if rule.table else 0
        merged = len(tables.merges(rule).survivor)
    except PolicyError as error:
        faults = list(error.faults)
    except Retry as error:
        raise EnvironmentFault(f"the database of {error.at} does not answer; see DEID_LOOKUP_URLS") from None
    if json:
        listed = [{"file": f.file, "line": f.line, "says": f.says, "hint": f.hint} for f in faults]
        say_json({"people": people, "merged": merged, "faults": listed})
    else:
        for fault in faults:
            complain(str(fault))
        if not faults:
            say(f"sound: {people} people have a pseudonym, {merged} Patient IDs are merged into others")
    return 2 if faults else 0
