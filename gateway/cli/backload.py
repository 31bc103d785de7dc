"""`backload start|status|pause|resume|stop`: studies of a list, fetched from a PACS. No value is shown."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.cli.held import worded
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, console, say, say_json, table
from gateway.settings import Home, Settings

app = typer.Typer(no_args_is_help=True, help="Fetch the studies of a list from a PACS, at its pace and in its hours.")

NumberArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="As `backload status` tells it.")]
FollowOption = Annotated[bool, typer.Option("--follow", help="Show the progress until it ends; Ctrl-C ends only that.")]
LOOK_S = 1.0


@app.command()
def start(
    list_: Annotated[
        Path,
        typer.Argument(
            metavar="LIST.csv",
            readable=False,
            help="One column of accession_number, study_instance_uid or patient_id; with patient_id also from and to.",
        ),
    ],
    source: Annotated[str, typer.Option("--from", help="Its name under sources: in destinations.yaml.")],
    by: ActorOption,
    reason: ReasonOption,
    follow: FollowOption = False,
    home: HomeOption = None,
) -> int:
    """Begin a back-load. A running gateway carries it out, and goes on after a restart."""
    from gateway.app.backload import orders
    from gateway.app.status import is_locked

    place = made_home(home)
    settings = settings_of(place)
    by, reason = worded(by, reason)
    serial = orders.start(place, settings, list_, source, actor=by, reason=reason)
    say(f"back-load {serial} has begun; `deid-gateway backload status {serial}` tells how far it is")
    if not settings.clustered and not is_locked(place):
        say("no gateway runs on this home: start one (`serve`)")
    return _follow(place, settings, serial) if follow else 0


@app.command()
def status(
    number: Annotated[int | None, typer.Argument(metavar="[NUMBER]", min=1, help="Default: all.")] = None,
    follow: FollowOption = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """How far back-loads are; of one, also the lines of its list that were not found or failed."""
    from gateway.app.backload import orders

    place = made_home(home)
    settings = settings_of(place)
    if follow and number is not None:
        return _follow(place, settings, number)
    found = orders.progress(place, settings, number)
    lines = orders.missing(place, settings, number) if number is not None else []
    if json:
        told = [one.as_json() for one in found]
        missing = [{"line": line, "state": state, "reason": reason} for line, state, reason in lines]
        say_json({**told[0], "lines": missing} if number is not None else told)
        return 0
    rows = []
    for one in found:
        state = f"{one.backload.state} ({one.waits})" if one.waits else one.backload.state
        entries = f"{one.count('entry', 'found', 'not_found', 'failed')} of {one.count('entry')}"
        done, failed = one.count("study", "moved"), one.count("study", "failed")
        not_found = one.count("entry", "not_found")
        rows.append(
            (one.backload.serial, one.backload.source, state, entries, not_found, one.count("study"), done, failed)
        )
    columns = ["number", "from", "state", "entries asked", "not found", "studies", "moved", "failed"]
    table("Back-loads", columns, rows)
    if number is not None and lines:
        table("Lines of the list", ["line", "state", "reason"], lines)
    for code in sorted({one.backload.reason for one in found} | {reason for _, _, reason in lines} - {""}):
        if code in orders.REASONS:
            say(f"  {code}: {orders.REASONS[code]}")
    return 0


@app.command()
def pause(number: NumberArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Ask for nothing more until it is resumed. Studies under way come to their end."""
    return _order(number, "pause", by, reason, home)


@app.command()
def resume(number: NumberArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Go on from there."""
    return _order(number, "resume", by, reason, home)


@app.command()
def stop(number: NumberArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """End it for good. What was fetched stays; what the list held is removed from the database."""
    return _order(number, "stop", by, reason, home)


def _order(number: int, verb: str, by: str, reason: str, home: HomeOption) -> int:
    from gateway.app.backload import orders

    place = made_home(home)
    by, reason = worded(by, reason)
    orders.order(place, settings_of(place), number, verb, actor=by, reason=reason)
    say(f"back-load {number}: {verb}")
    return 0


def _follow(place: Home, settings: Settings, number: int) -> int:
    """A bar of studies; its length grows while entries are being resolved. 1 when something failed."""
    from gateway.app.backload import orders

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("studies", total=None)
        while True:
            (now,) = orders.progress(place, settings, number)
            ended = now.count("study", "moved", "failed")
            open_ = now.count("entry", "waiting", "asked")
            words = f"{now.backload.state}, entries to ask for {open_}, not found {now.count('entry', 'not_found')}"
            bar.update(task, completed=ended, total=now.count("study") or None, description=words)
            if now.ended:
                break
            time.sleep(LOOK_S)
    failed = now.count("study", "failed") + now.count("entry", "failed")
    say(f"back-load {number} is {now.backload.state}: {now.count('study', 'moved')} moved, {failed} failed")
    return 1 if failed or now.count("entry", "not_found") else 0
