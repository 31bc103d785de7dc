"""`init`, `serve`, `status`, `settings`, `cohort-hash`."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from gateway.cli.homes import HomeOption, made_home, named_home, settings_of
from gateway.cli.output import JsonOption, complain, say, say_json, table
from gateway.errors import EnvironmentFault, UsageError
from gateway.process_settings import RECEIVE, WEB
from gateway.settings import Home, Settings

_MAY_LIE_THERE = frozenset({"lost+found"})  # a fresh volume is empty but for this and hidden files


def init(
    home: Annotated[
        Path,
        typer.Argument(
            metavar="HOME",
            readable=False,
            help="The folder to make; an existing home is left as it is.",
        ),
    ],
) -> int:
    """Make a home folder with a new master key (mode 0600). Keep a copy of the key: without it no pseudonym recurs."""
    made = Home(home.expanduser().absolute())
    if made.root.is_dir() and not (made.root / "keys").is_dir():
        others = [path for path in made.root.iterdir() if not path.name.startswith(".")]
        if any(path.name not in _MAY_LIE_THERE for path in others):
            raise UsageError(f"{made.root} is not empty and is no home; name a new folder, a home is its owner's alone")
    brought = bool(os.environ.get("DEID_KEY") or os.environ.get("DEID_KEY_FILE"))
    if made.create(generate_key=not brought):
        say(f"{made.root} is ready; back up {made.master_key}, it cannot be made again")
    else:
        say(f"{made.root} is ready; its key is {'the one that DEID_KEY names' if brought else 'as it was'}")
    return 0


def serve(
    home: HomeOption = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="What this process does: receive, work-cpu, work-gpu, web (several times) or all; else DEID_ROLES. "
            "All but `all` need PostgreSQL.",
        ),
    ] = None,
) -> int:
    """Run the gateway until it is told to stop (SIGTERM, Ctrl-C). SIGHUP loads policies and routes again.

    Logs go to stderr as JSON lines. `deid-gateway settings` lists what can be set.
    """
    from gateway.app.serve import Gateway
    from gateway.observe import log, start_logging

    place = made_home(home)
    values = settings_of(place, **({"roles": ",".join(role)} if role else {}))
    start_logging()
    stop, reload = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: reload.set())
    gateway = Gateway(place, values)
    gateway.start()
    try:
        review_url = gateway.review.url if gateway.review and values.plays(WEB) else ""
        _announce(values, gateway.receiver.port, gateway.status.port, review_url)
        while not stop.wait(0.5):
            if reload.is_set():
                reload.clear()
                gateway.reload_policies()
            if dead := gateway.dead():
                log("part_died", level=logging.CRITICAL, kind=", ".join(dead))
                raise EnvironmentFault(
                    f"a part of the gateway has died ({', '.join(dead)}); see the log, and start it again"
                )
    finally:
        gateway.stop()
    return 0


def _announce(values: Settings, dicom_port: int, http_port: int, review_url: str) -> None:
    if values.plays(RECEIVE):
        say(f"DICOM: {values.ae_title}@{values.dicom_host}:{dicom_port}")
    say(f"metrics: http://{values.http_host}:{http_port}/metrics")
    if review_url:
        say(f"review page: {review_url}")
    if values.plays(RECEIVE) and not values.allowed_peers:
        say("nobody may send yet: set DEID_ALLOWED_PEERS, for example to PACS@10.0.0.7")
    sys.stdout.flush()


def status(home: HomeOption = None, json: JsonOption = False) -> int:
    """Where the studies are, by state and reason, and whether a gateway runs on this home.

    Exit 3 when the ledger is damaged: the gateway then decides nothing.
    """
    from gateway.app.status import read_status

    place = made_home(home)
    report = read_status(place, settings_of(place))
    if json:
        say_json(report.as_json())
    else:
        say(f"gateway: {'running' if report.running else 'not running'} on {place.root}")
        if report.jobs:
            table("Jobs", ["state", "reason", "jobs"], [(s, r, n) for (s, r), n in sorted(report.jobs.items())])
        else:
            say("jobs: none yet")
        if report.levels:
            table("Levels", ["policy", "level", "studies"], [(p, v, n) for (p, v), n in report.levels.items()])
        say(f"receiving now: {report.receiving}; held before routing: {report.held_before_routing}")
        say(f"held by scrub: {report.held_batches}")
        for one in report.destinations:
            if one.state != "open":
                say(f"{one.destination} is {one.state}; studies that wait for it: {one.waiting}")
        say(f"free where the spool lies: {report.free_bytes / 2**30:.1f} GiB; ledger: {report.ledger_lines} lines")
    if report.ledger_fault:
        raise EnvironmentFault(report.ledger_fault)
    return 0


def settings(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every DEID_* setting with its value here and what it means. Keys and passwords are never shown.

    Set them in the environment or in HOME/.env.
    """
    rows = []
    fault: UsageError | None = None
    try:
        values: Settings | None = settings_of(named_home(home))
    except UsageError as error:
        values, fault = None, error
    for name, field in sorted(Settings.model_fields.items()):
        value = getattr(values, name) if values is not None else "?"
        rows.append((f"DEID_{name.upper()}", _shown(name, value), str(field.description)))
    if json:
        say_json([{"variable": n, "value": v, "meaning": m} for n, v, m in rows])
    else:
        table("Settings", ["variable", "value", "meaning"], rows)
    if fault is not None:
        complain(str(fault))
        return fault.exit_code
    return 0


def _shown(name: str, value: object) -> str:
    if name == "key":
        return "(set)" if value else ""
    if isinstance(value, SecretStr):
        return "(set)"
    if isinstance(value, Mapping):  # URLs with passwords
        return " ".join(f"{key}=(set)" for key in value)
    if name == "database_url":
        return re.sub(r"//([^:@/]*):.*@", r"//\1:***@", str(value).partition("?")[0])
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def cohort_hash(
    home: HomeOption = None,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            readable=False,
            help="One Patient ID a line; else stdin.",
        ),
    ] = None,
) -> int:
    """Turn Patient IDs into the keyed hashes that `in_cohort` files hold. Prints the CSV; the IDs are not kept."""
    from gateway.policy import cohort_hash as hash_of
    from gateway.pseudonyms import Keys, master_key

    place = made_home(home)
    key = Keys(master_key(place, settings_of(place))).cohort
    data = source.read_bytes() if source else sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{source or 'stdin'}:{line}: not UTF-8 text; save the list as UTF-8") from None
    typer.echo("hash,from,to")
    for line in text.split("\n"):
        if line.strip():
            typer.echo(f"{hash_of(key, line.strip())},,")
    return 0
