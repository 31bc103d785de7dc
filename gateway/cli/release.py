"""`release list|show|close|report`: studies that are judged together, what was said of them, and closing one.

These commands never open the engine: closing is written down as an intent, which the running gateway carries out.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.held import WAIT_S, worded
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, explain_reasons, say, say_json, table
from gateway.errors import UsageError
from gateway.study import State

if TYPE_CHECKING:
    from gateway.database import Database, ReleaseRow

app = typer.Typer(help="Releases: studies that are judged over their people.", no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="The name that `release list` shows.")]


@app.command(name="list")
def list_releases(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every release, oldest first: its state, its people, and why it was blocked."""
    database = _database(home)
    try:
        rows = [_row(database, release) for release in database.releases_in()]
    finally:
        database.close()
    if json:
        say_json(rows)
        return 0
    if not rows:
        say("no release yet; one opens when the first study is cleared under a policy with `release:`")
        return 0
    columns = ("release", "state", "people", "studies", "opened", "reason")
    table("Releases", list(columns), [[row[name] for name in columns] for row in rows], keyed=True)
    explain_reasons(row["reason"] for row in rows)
    say("further: deid-gateway release show RELEASE")
    return 0


@app.command()
def show(name: NameArgument, home: HomeOption = None, json: JsonOption = False) -> int:
    """One release: its state, every figure with its bound, its limit, and over how many people; the worst groups."""
    from gateway.app.release.dossier import strata_of_last
    from gateway.app.release.report_strata import COLUMNS, row_of, worst_of

    database = _database(home)
    try:
        release = _known(database, name)
        row = _row(database, release)
    finally:
        database.close()
    strata = strata_of_last(made_home(home), name)
    if json:
        say_json({**row, "policy_digest": release.policy_digest, "scores": release.figures, "strata": strata})
        return 0
    facts = [(word, value) for word, value in row.items() if value != ""]
    table("Release", ["", ""], facts)
    if release.figures:
        columns = ["check", "card", "attack", "view", "over", "estimate", "at most", "limit", "people", ""]
        table("Leak scores", columns, [_figure(figure) for figure in release.figures])
        say("over: this release by itself, or with everything that the policy released before (all)")
        if any(figure["view"] != "whole" for figure in release.figures):
            says = "whole is what the release risks; background and lesion are each by itself, cut out by its mask"
            say(f"view: {says}")
    if strata:
        table("In whom most are found", list(COLUMNS), [row_of(one) for one in worst_of(strata)])
        say("of each attribute the worst group; nothing is decided by it. All groups: --json, or the report")
    explain_reasons([release.reason])
    return 0


@app.command()
def close(
    name: NameArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None, json: JsonOption = False
) -> int:
    """Judge a release now. It is cleared as a whole, or blocked with the reason; see `release show`."""
    from gateway.app.release.closing import CLOSE, DONE
    from gateway.app.status import is_locked

    by, reason = worded(by, reason)
    place = made_home(home)
    database = _database(home)
    try:
        _known(database, name)
        serial = database.add_intent(kind=CLOSE, key=name, actor=by, reason=reason)
        outcome, deadline = "", time.monotonic() + (WAIT_S if is_locked(place) else 1.0)
        while not outcome and time.monotonic() < deadline:
            time.sleep(0.1)
            intent = database.intent(serial)
            outcome = intent.outcome if intent is not None and intent.done_at is not None else ""
    finally:
        database.close()
    if json:
        say_json({"decision": CLOSE, "release": name, "intent": serial, "outcome": outcome or "waiting"})
    elif not outcome:
        say(f"close: written down as intent {serial}; a running gateway takes it up within a second or when it starts")
    elif outcome == DONE:
        say(f"close: done, {name} is being judged; see `deid-gateway release show {name}`")
    if outcome not in ("", DONE):
        raise UsageError(f"close: {outcome}")
    return 0


@app.command()
def report(
    name: NameArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", readable=False, help="Folder to write into; made.")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Write a release's report for a data-protection file: DIR/RELEASE.html and DIR/RELEASE.pdf.

    Policy and digest, people, every figure with its bound, what was removed, what was not assessed. It names nobody.
    """
    from gateway.app.release.report import write_report

    place = made_home(home)
    database = _database(home)
    try:
        page, sheets = write_report(place, settings_of(place), database, name, out)
    finally:
        database.close()
    if json:
        say_json({"release": name, "html": str(page), "pdf": str(sheets)})
    else:
        say(f"{page} and {sheets} are written")
    return 0


def _database(home: HomeOption) -> Database:
    from gateway.database import Database

    place = made_home(home)
    return Database.in_home(place.database, settings_of(place).database_url)


def _known(database: Database, name: str) -> ReleaseRow:
    release = database.release_named(name)
    if release is None:
        raise UsageError(f"no release is called {name}; see `deid-gateway release list`")
    return release


def _row(database: Database, release: ReleaseRow) -> dict[str, Any]:
    members = database.members(release.serial)
    return {
        "release": release.name,
        "state": release.state,
        "policy": release.policy,
        "project": release.project,
        "destination": release.destination,
        "people": len({member.person for member in members}),
        "studies": len(members),
        "recalled": len(database.members(release.serial, State.RECALLED)),
        "opened": _day(release.opened_at),
        "closed": _day(release.closed_at),
        "reason": release.reason,
        "at": release.at,
    }


def _day(moment: float | None) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M") if moment else ""


def _figure(figure: dict[str, Any]) -> list[str]:
    def number(name: str) -> str:
        value = figure[name]
        return "-" if value is None else f"{value:.3f}"

    verdict = figure["note"] or ("" if figure["upper"] is None else _verdict(figure))
    words = [figure[name] or "-" for name in ("check", "card", "attack", "view", "scope")]
    return [*words, number("estimate"), number("upper"), f"{figure['limit']:g}", str(figure["people"]), verdict]


def _verdict(figure: dict[str, Any]) -> str:
    enough = figure["upper"] >= figure["limit"] if figure["check"] == "record_isolation" else None
    return "keeps to it" if (figure["upper"] <= figure["limit"] if enough is None else enough) else "exceeds it"
