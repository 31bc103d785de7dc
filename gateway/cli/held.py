"""`held list|show|release|rerun|reject`: what waits for a person, and what that person decides.

These commands never open the engine. They write an intent that the running gateway carries out within a second. What
`scrub` held is listed and shown too; it is decided by mending its cause and running `scrub` again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import JsonOption, explain_reasons, say, say_json, table
from gateway.errors import REASONS, UsageError
from gateway.study import State

if TYPE_CHECKING:
    from gateway.app.waiting import Waiting

app = typer.Typer(help="Studies that wait for a person.", no_args_is_help=True)
WAIT_S = 10.0
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The key that `held list` shows.")]
ActorOption = Annotated[str, typer.Option("--by", help="Your name or role; it goes to the ledger.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", help="Why; it goes to the ledger. Write no patient's name or number here.")
]


@app.command(name="list")
def list_held(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every held study, oldest first. Exit 0 also when there are some."""
    from gateway.app.waiting import everything_held

    place = made_home(home)
    found = everything_held(place, settings_of(place))
    if json:
        say_json([_row(entry) for entry in found])
        return 0
    if not found:
        say("nothing is held")
        return 0
    rows = [(w.key, w.policy or "-", w.stage, w.reason, _age(_seconds(w))) for w in found]
    table("Held studies", ["key", "policy", "held in", "reason", "age"], rows, keyed=True)
    explain_reasons(w.reason for w in found)
    say("further: deid-gateway held show KEY")
    return 0


@app.command()
def show(key: KeyArgument, home: HomeOption = None, json: JsonOption = False) -> int:
    """One held study: why, where, and what to do. Places and rules only, never a value."""
    from gateway.app.waiting import one_held

    place = made_home(home)
    found = one_held(place, settings_of(place), key)
    if found is None:
        raise _unknown(key)
    findings = [{"check": f.check, "instance": f.instance, "where": f.where, "rule": f.rule} for f in found.findings]
    if json:
        say_json({**_row(found), "findings": findings})
        return 0
    facts: dict[str, object] = {**_row(found), "age_s": _age(_seconds(found))}
    reason = REASONS.get(found.reason)
    if reason is not None:
        facts |= {"what happened": reason.says, "what to do": reason.hint}
    table("Held study", ["", ""], [(name.removesuffix("_s"), value) for name, value in facts.items() if value != ""])
    if findings:
        table("Findings", ["check", "instance", "where", "rule"], [tuple(f.values()) for f in findings])
    return 0


@app.command()
def release(
    key: KeyArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None, json: JsonOption = False
) -> int:
    """Let a study that the gate or the archive held go as it is. The clearance then bears your name."""
    return _decide("release", key, by, reason, home, json=json)


@app.command()
def rerun(
    key: KeyArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None, json: JsonOption = False
) -> int:
    """Begin again under the policies and routes of now, after they were mended."""
    return _decide("rerun", key, by, reason, home, json=json)


@app.command()
def reject(
    key: KeyArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None, json: JsonOption = False
) -> int:
    """Nothing of this study leaves, for good. A corrected study may then be sent again by the PACS."""
    return _decide("reject", key, by, reason, home, json=json)


def _decide(kind: str, key: str, by: str, reason: str, home: HomeOption, *, json: bool) -> int:
    from gateway.app.decisions import DONE
    from gateway.app.status import is_locked
    from gateway.app.waiting import one_held
    from gateway.database import Database

    by, reason = worded(by, reason)
    place = made_home(home)
    values = settings_of(place)
    found = one_held(place, values, key)
    if found is None:
        raise _unknown(key)
    if found.batch:
        raise UsageError(f"{key} was held by `scrub`: mend what {found.reason} names, then run `scrub` again")
    again = kind == "rerun" and found.state == State.SHADOWED
    if found.state not in (State.HELD, State.AWAITING_RELEASE) and not again:
        raise UsageError(f"{key} is not held: it is {found.state}")
    database = Database.in_home(place.database, values.database_url)
    serial = database.add_intent(kind=kind, key=key, actor=by, reason=reason)
    outcome = ""
    deadline = time.monotonic() + (WAIT_S if is_locked(place) else 1.0)  # the engine may run on another machine
    while not outcome and time.monotonic() < deadline:
        time.sleep(0.1)
        intent = database.intent(serial)
        outcome = intent.outcome if intent is not None and intent.done_at is not None else ""
    database.close()
    if json:
        say_json({"decision": kind, "key": key, "intent": serial, "outcome": outcome or "waiting"})
    elif not outcome:
        say(f"{kind}: written down as intent {serial}; a running gateway takes it up within a second or when it starts")
    elif outcome == DONE:
        say(f"{kind}: done")
    if outcome not in ("", DONE):
        raise UsageError(f"{kind}: {outcome}")
    return 0


def worded(by: str, reason: str) -> tuple[str, str]:
    """Name and reason as the ledger takes them. Raises UsageError."""
    by, reason = by.strip(), reason.strip()
    if len(by) < 2 or len(reason) < 5:
        raise UsageError("a decision needs a name (--by) and a reason (--reason) that says something")
    if len(by) > 128 or len(reason) > 512:
        raise UsageError("the name may have 128 characters, the reason 512")
    if by.casefold().endswith("@review"):
        raise UsageError("names that end in @review are those of people who signed in on the review page")
    if not (by.isprintable() and reason.isprintable()):
        raise UsageError("write name and reason in printable characters, on one line")
    return by, reason


def _unknown(key: str) -> UsageError:
    return UsageError(f"no held study has the key {key}; see `deid-gateway held list`")


def _row(entry: Waiting) -> dict[str, object]:
    row = {
        "key": entry.key,
        "state": entry.state,
        "stage": entry.stage,
        "reason": entry.reason,
        "at": entry.at,
        "policy": entry.policy,
        "policy_digest": entry.policy_digest,
        "destination": entry.destination,
    }
    return {**row, "age_s": _seconds(entry)}


def _seconds(entry: Waiting) -> int:
    return max(0, round(time.time() - entry.since))


def _age(seconds: int) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
