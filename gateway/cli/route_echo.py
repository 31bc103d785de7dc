"""`route echo`: whether the destinations can be reached, and know us."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.homes import HomeOption, named_home, settings_of
from gateway.cli.output import JsonOption, say, say_json, table

FolderOption = Annotated[
    Path | None,
    typer.Option("--policies", readable=False, help="The policies folder; else DEID_POLICIES, also of HOME/.env."),
]


def echo(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[DESTINATION]...", help="Names in destinations.yaml. Default: all.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, max=600, help="Seconds to wait for an answer.")
    ] = 10.0,
    policies: FolderOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Ask every destination whether it is there: C-ECHO to archives, a look at folders. Exit 3 when one is not.

    An archive that answers may still refuse objects: what it stores it says only when it is sent some.
    """
    from gateway.app.routing.echo import destinations_of, named
    from gateway.app.routing.echo import echo as ask

    settings = settings_of(named_home(home))
    folder = policies or settings.policies
    chosen = named(destinations_of(folder), names or ())
    answers = ask(chosen, settings, timeout_s=timeout_s)
    if json:
        say_json(
            [
                {
                    "destination": a.name,
                    "url": a.url,
                    "ok": a.ok,
                    "state": a.state,
                    "says": a.says,
                    "seconds": a.seconds,
                }
                for a in answers
            ]
        )
    else:
        say(f"we call as {settings.ae_title}")
        rows = [(a.name, a.url, a.state, f"{a.seconds:.2f}", a.says) for a in answers]
        table("Destinations", ["destination", "where", "state", "seconds", ""], rows, keyed=True)
    return 0 if all(answer.ok for answer in answers) else 3
