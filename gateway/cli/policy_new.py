"""`policy new`: a policy of one's own from a starter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.homes import HomeOption, named_home, settings_of
from gateway.cli.output import JsonOption, say, say_json, table
from gateway.errors import UsageError


def new(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The name of the new policy. Without one: the starters are listed.")
    ] = "",
    starter: Annotated[str, typer.Option("--from", metavar="STARTER", help="The starter to begin from.")] = "",
    policies: Annotated[
        Path | None,
        typer.Option("--policies", readable=False, help="The policies folder; else DEID_POLICIES, also of HOME/.env."),
    ] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Write NAME.yaml into the policies folder: a starter under this name, tested, explained, and yours to edit.

    Names of those who answer for what is not assessed are still TO BE CONFIRMED in it.
    """
    from gateway.app.policy.registry import REGISTRY
    from gateway.app.policy.starters import begin, starters

    if not name and not starter:
        found = starters()
        if json:
            say_json([{"starter": one, "says": says} for one, says in found.items()])
        else:
            table("Starters", ["starter", "for"], list(found.items()), keyed=True)
        return 0
    if not (name and starter):
        raise UsageError(f"name both: `policy new NAME --from STARTER`; there is: {', '.join(starters())}")
    path = begin(name, starter, policies or settings_of(named_home(home)).policies, REGISTRY)
    if json:
        say_json({"policy": name, "file": str(path)})
        return 0
    say(f"{path} is written")
    say(f"read it, put in who answers (TO BE CONFIRMED), name it in routes.yaml; then `policy check {path.parent}`")
    say(f"see what it does: `policy explain {path}`, `policy preview {path} DICOM…`")
    return 0
