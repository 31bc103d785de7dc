"""`ledger verify`."""

from __future__ import annotations

import typer

from gateway.cli.output import HomeOption, JsonOption, find_home, say, say_json
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import load_settings

app = typer.Typer(help="The hash-chained record of every decision.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `verify` a subcommand while it is the only one."""


@app.command()
def verify(home: HomeOption = None, json: JsonOption = False) -> int:
    """Read the whole ledger and say whether a line was changed, removed, added or moved. Exit 1 when one was."""
    place = find_home(home)
    place.require()
    report = Ledger(place.ledger, Keys(master_key(place, load_settings(place.root))).ledger).verify()
    if json:
        say_json({"lines": report.lines, "sound": report.sound, "fault": report.fault, "line": report.line})
    elif report.sound:
        say(f"sound: {report.lines} lines, chain and head match")
    else:
        say(f"[bold red]broken[/] at line {report.line}: {report.fault}" if report.line else f"broken: {report.fault}")
    return 0 if report.sound else 1
