"""`init`, `serve`, `status`, `settings`, `cohort-hash`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.output import HomeOption, JsonOption, find_home, say, say_json, table
from gateway.errors import EnvironmentFault, UsageError
from gateway.settings import Home, Settings, load_settings


def init(
    home: Annotated[Path, typer.Argument(metavar="HOME", help="The folder to make; an existing one is left as it is.")],
) -> int:
    """Make a home folder with a new master key (mode 0600). Keep a copy of the key: without it no pseudonym recurs."""
    made = Home(home.expanduser().absolute())
    brought = bool(os.environ.get("DEID_KEY") or os.environ.get("DEID_KEY_FILE"))
    if made.create(generate_key=not brought):
        say(f"{made.root} is ready; back up {made.master_key}, it cannot be made again")
    else:
        say(f"{made.root} is ready; its key is {'the one that DEID_KEY names' if brought else 'as it was'}")
    return 0


def serve(home: HomeOption = None) -> int:
    """Run the gateway until it is told to stop (SIGTERM, Ctrl-C). SIGHUP loads policies and routes again."""
    from gateway.app.serve import Gateway
    from gateway.observe import start_logging

    place = find_home(home)
    place.require()
    start_logging()
    gateway = Gateway(place, load_settings(place.root))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: gateway.reload_policies())
    gateway.start()
    try:
        while not stop.wait(1.0):
            if not gateway.healthy():
                raise EnvironmentFault("the poller stopped; see the log, and start the gateway again")
    finally:
        gateway.stop()
    return 0


def status(home: HomeOption = None, json: JsonOption = False) -> int:
    """Where the studies are, by state and reason, and whether a gateway runs on this home."""
    from gateway.app.status import read_status

    place = find_home(home)
    place.require()
    report = read_status(place, load_settings(place.root))
    if json:
        say_json(report.as_json())
        return 0
    say(f"gateway: {'running' if report.running else 'not running'} on {place.root}")
    table("Studies", ["state", "reason", "jobs"], [(s, r, n) for (s, r), n in sorted(report.jobs.items())])
    say(f"receiving now: {report.receiving}; held before routing: {report.held_before_routing}")
    say(f"free where the spool lies: {report.free_bytes / 2**30:.1f} GiB; ledger: {report.ledger_lines} lines")
    return 0


def settings(home: HomeOption = None) -> int:
    """Every DEID_* setting with its value here and what it means. Keys are never shown."""
    place = find_home(home) if home or _has_home() else None
    values = load_settings(place.root) if place else load_settings(Path.cwd())
    rows = []
    for name, field in Settings.model_fields.items():
        value = getattr(values, name)
        shown = ("set" if value else "") if name == "key" else " ".join(value) if isinstance(value, tuple) else value
        rows.append((f"DEID_{name.upper()}", shown, field.description))
    table("Settings", ["variable", "value", "meaning"], rows)
    return 0


def cohort_hash(
    home: HomeOption = None,
    source: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="One Patient ID a line; else stdin.")] = None,
) -> int:
    """Turn Patient IDs into the keyed hashes that `in_cohort` files hold. Prints the CSV; the IDs are not kept."""
    from gateway.policy import cohort_hash as hash_of
    from gateway.pseudonyms import Keys, master_key

    place = find_home(home)
    place.require()
    key = Keys(master_key(place, load_settings(place.root))).cohort
    try:
        text = source.read_text("utf-8") if source else sys.stdin.read()
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{source} cannot be read as UTF-8 text") from None
    typer.echo("hash,from,to")
    for line in text.splitlines():
        if line.strip():
            typer.echo(f"{hash_of(key, line.strip())},,")
    return 0


def _has_home() -> bool:
    return bool(os.environ.get("DEID_HOME"))
