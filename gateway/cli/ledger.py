"""`ledger verify`."""

from __future__ import annotations

import typer

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import JsonOption, say, say_json

app = typer.Typer(help="The hash-chained record of every decision.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `verify` a subcommand while it is the only one."""


@app.command()
def verify(home: HomeOption = None, json: JsonOption = False) -> int:
    """Read the whole ledger and say whether a line was changed, removed, added or moved. Exit 1 when one was."""
    from gateway.ledger import Ledger
    from gateway.pseudonyms import Keys, master_key

    place = made_home(home)
    report = Ledger(place.ledger, Keys(master_key(place, settings_of(place))).ledger).verify()
    if json:
        say_json({"lines": report.lines, "sound": report.sound, "fault": report.fault, "line": report.line})
    elif report.sound:
        say(f"sound: {report.lines} lines, chain and head match")
    else:
        say(f"broken{f' at line {report.line}' if report.line else ''}: {report.fault}", "bold red")
        say(f"keep {place.ledger} as it is, find out who wrote to it, and restore it from backup")
    return 0 if report.sound else 1
