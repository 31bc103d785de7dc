"""`retention show|run`: what `retain:` of the policies removes, and when; and doing it now."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from time import time

import typer

from gateway.cli.held import WAIT_S, worded
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, say, say_json, table
from gateway.errors import UsageError

app = typer.Typer(help="What is removed when (`retain:` of the policies).", no_args_is_help=True)


@app.command()
def show(home: HomeOption = None, json: JsonOption = False) -> int:
    """What would be removed now, and what later. Nothing is changed; a running gateway removes it every hour."""
    from gateway.app.person.retention import NEVER, Retention
    from gateway.app.serve import wire

    place = made_home(home)
    parts = wire(place, settings_of(place))
    try:
        found, now = Retention(parts).due(), time()
    finally:
        parts.workers.close()
        parts.database.close()
    by_kind: dict[str, list[float]] = defaultdict(list)
    for one in found:
        by_kind[one.kind].append(one.at)
    rows = []
    for kind, moments in sorted(by_kind.items()):
        later = [at for at in moments if now < at < NEVER]
        due = sum(at <= now for at in moments)
        rows.append((kind, due, len(later), moments.count(NEVER), _day(min(later)) if later else ""))
    if json:
        due_now = [{"kind": one.kind, "key": one.key, "since": one.at} for one in found if one.at <= now]
        names = ("kind", "due", "later", "waiting", "next")
        say_json({"due": due_now, "counts": [dict(zip(names, row, strict=True)) for row in rows]})
    elif rows:
        table("Retention", ["kind", "due now", "later", "waits for its release", "next on"], rows)
        if any(row[1] for row in rows):
            say("what is due goes within the hour, or now: deid-gateway retention run --by … --reason …")
    else:
        say("nothing lies here that retention would remove")
    return 0


@app.command()
def run(by: ActorOption, reason: ReasonOption, home: HomeOption = None, json: JsonOption = False) -> int:
    """Remove now what is due, and once more whatever a restore brought back."""
    from gateway.app.person.retention import RETAIN
    from gateway.app.wishes import outcome_of
    from gateway.database import Database

    by, reason = worded(by, reason)
    place = made_home(home)
    values = settings_of(place)
    database = Database.in_home(place.database, values.database_url)
    serial = database.add_intent(kind=RETAIN, key="", actor=by, reason=reason)
    database.close()
    outcome = outcome_of(place, values, serial, wait_s=WAIT_S)
    if json:
        say_json({"decision": RETAIN, "outcome": outcome or "waiting"})
    else:
        say(f"retention: {outcome or 'written down; a running gateway takes it up within a second'}")
    if outcome and not outcome.startswith("done"):
        raise UsageError(f"retention: {outcome}")
    return 0


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
