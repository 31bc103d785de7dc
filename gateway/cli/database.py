"""`database status|upgrade|downgrade`: the schema of our tables. A gateway that starts upgrades it by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import JsonOption, say, say_json, table
from gateway.errors import UsageError

if TYPE_CHECKING:
    from gateway.database import Database
    from gateway.settings import Home, Settings

app = typer.Typer(help="The schema of the gateway's tables, forward and back.", no_args_is_help=True)


@app.command()
def status(home: HomeOption = None, json: JsonOption = False) -> int:
    """Which schema the tables have, which one this program needs, and which processes share them. Changes nothing."""
    from gateway.database import SCHEMA_VERSION

    place = made_home(home)
    values = settings_of(place)
    with _opened(place, values) as database:
        found = database.version()
        there = database.processes() if values.clustered and found == SCHEMA_VERSION else []
    kind = "PostgreSQL" if values.clustered else "SQLite"
    if json:
        rows = [{"executor": one.executor, "roles": list(one.roles), "silent_s": one.silent_s} for one in there]
        say_json({"database": kind, "schema": found, "known": SCHEMA_VERSION, "processes": rows})
        return 0
    has = "no tables yet" if found is None else f"schema {found}"
    say(f"{kind}: {has}; this program knows schema {SCHEMA_VERSION}")
    if there:
        rows_said = [(one.executor, " ".join(one.roles), f"{one.silent_s:.0f} s ago") for one in there]
        table("Processes", ["executor", "roles", "last heard of"], rows_said)
    return 0


@app.command()
def upgrade(home: HomeOption = None) -> int:
    """Make the tables, or carry those of an earlier version over. Processes of the earlier version may go on meanwhile,
    but cannot start any more.
    """
    place = made_home(home)
    with _opened(place, settings_of(place)) as database:
        before = database.version()
        database.migrate()
        after = database.version()
    say(f"schema {after}" if before in (after, None) else f"schema {before} -> {after}")
    return 0


@app.command()
def downgrade(
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="The schema of the earlier program.")],
    home: HomeOption = None,
) -> int:
    """Take the tables back for an earlier program, when no gateway runs. Refused where something would be lost: people
    who opted out, recalls, issues, what archives committed to.
    """
    from gateway.flow.lock import StoreLock

    place = made_home(home)
    values = settings_of(place)
    lock = StoreLock(place.engine_lock, values.database_url or f"sqlite:///{place.engine_database}", brief=True)
    with _opened(place, values) as database:
        before = database.version()
        if before is None:
            raise UsageError("there are no tables; nothing can be taken back")
        lock.take()
        try:
            database.downgrade(version)
        finally:
            lock.release()
    say(f"schema {before} -> {version}; start the earlier program now, for this one would upgrade it again")
    return 0


@contextmanager
def _opened(home: Home, values: Settings) -> Iterator[Database]:
    """The database as it is: nothing is made or carried over."""
    from gateway.database import Database

    opened = Database(values.database_url or f"sqlite:///{home.database}")
    try:
        yield opened
    finally:
        opened.close()
