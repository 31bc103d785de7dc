"""`backup` and `restore`: everything of a home and its tables, while the gateway runs; the keys apart."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.homes import HomeOption, made_home, named_home, settings_of
from gateway.cli.output import say
from gateway.errors import UsageError


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", readable=False, help="A new folder for the backup.")],
    home: HomeOption = None,
    keys: Annotated[
        Path | None,
        typer.Option("--keys", readable=False, help="A new folder for the keys; keep it where the backup is not."),
    ] = None,
    patience: Annotated[
        float, typer.Option("--patience", min=1, help="Seconds to wait for running work to come to rest.")
    ] = 600.0,
) -> int:
    """Back up a home and its tables, of one machine or of a cluster, while the gateway runs. Work rests for a moment,
    receiving goes on.

    It holds originals: keep it as closed as the spool, and no longer than originals may be kept. Not in it: the keys
    (--keys), the policies' folder, .env, and certificates.
    """
    from gateway.app.backup import make_backup

    place = made_home(home)
    keys_to = _absolute(keys) if keys is not None else None
    made = make_backup(place, settings_of(place), _absolute(folder), keys_to=keys_to, patience_s=patience)
    mib = made.size_bytes / 2**20
    say(f"{made.files} files, {mib:.1f} MiB, {made.rows} rows; work rested for {made.rested_s:.2f} s")
    if keys is None:
        say(f"the keys are not in it; keep a copy of {place.keys} elsewhere, for without them it is worth nothing")
    return 0


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", readable=False, help="What `backup` made.")],
    home: HomeOption = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", readable=False, help="The folder that has its keys; else DEID_KEY_FILE.")
    ] = None,
) -> int:
    """Make a new home out of a backup, with its tables in the empty database that DEID_DATABASE_URL names, or embedded.

    `serve` then goes on with what was under way. What left after the backup was made leaves once more, with the same
    bytes. Opt-outs and erasures that the ledger knows of hold at once; newer ones: `subject restore`.
    """
    from gateway.app.backup import restore_backup

    place = named_home(home)
    if place is None:
        raise UsageError("which home? name a new folder with --home or DEID_HOME")
    keys_from = _absolute(keys) if keys is not None else None
    done = restore_backup(_absolute(folder), place, settings_of(place), keys_from)
    when = datetime.fromtimestamp(done.made_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    say(f"{place.root} is as it was on {when}: {done.files} files, {done.rows} rows")
    if done.wishes:
        say(f"{done.wishes} wishes of people that only the ledger knew of hold again")
    return 0


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()
