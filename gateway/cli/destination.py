"""`destination list|pause|resume`: where studies are sent to now, and where not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from gateway.cli.held import worded
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, say, say_json, table
from gateway.errors import UsageError

app = typer.Typer(no_args_is_help=True, help="Where studies are sent to now: hours, pauses, what waits.")

NameArgument = Annotated[str, typer.Argument(metavar="DESTINATION", help="Its name in destinations.yaml.")]


@app.command(name="list")
def list_(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every destination: open, paused or out of its hours, and how many cleared studies wait for it."""
    from gateway.app.routing.echo import destinations_of
    from gateway.app.routing.openings import openings_of

    place = made_home(home)
    settings = settings_of(place)
    found = openings_of(place, settings, destinations_of(settings.policies))
    if json:
        say_json(
            [
                {
                    "destination": one.destination,
                    "state": one.state,
                    "waiting": one.waiting,
                    "opens_at": _when(one.opens_at),
                    "actor": one.actor,
                    "reason": one.reason,
                }
                for one in found
            ]
        )
        return 0
    rows = []
    for one in found:
        why = f"by {one.actor}: {one.reason}" if one.actor else ""
        rows.append((one.destination, one.state, one.waiting, f"opens {_when(one.opens_at)}" if one.opens_at else why))
    table("Destinations", ["destination", "state", "waiting", ""], rows, keyed=True)
    return 0


@app.command()
def pause(name: NameArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Send nothing there until it is resumed. What is being sent is sent to its end; what is cleared waits."""
    return _set(name, by, reason, home, paused=True)


@app.command()
def resume(name: NameArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Send there again, within half a minute."""
    return _set(name, by, reason, home, paused=False)


def _set(name: str, by: str, reason: str, home: HomeOption, *, paused: bool) -> int:
    from gateway.app.routing.echo import destinations_of, named
    from gateway.app.routing.openings import set_paused

    place = made_home(home)
    settings = settings_of(place)
    by, reason = worded(by, reason)
    if paused:
        named(destinations_of(settings.policies), [name])
    word = "paused" if paused else "resumed"
    if not set_paused(place, settings, name, paused=paused, actor=by, reason=reason):
        raise UsageError(f"{name} is paused already" if paused else f"{name} is not paused")
    say(f"{name} is {word}")
    return 0


def _when(at: float | None) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at is not None else ""
