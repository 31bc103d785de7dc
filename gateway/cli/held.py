"""`held list|show|release|rerun|reject`: what waits for a person, and what that person decides.

These commands never open the engine. They write an intent that the running gateway carries out within a second.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from gateway.app.decisions import DONE, held_key, stored_verdicts
from gateway.cli.output import (
    ActorOption,
    HomeOption,
    JsonOption,
    ReasonOption,
    find_home,
    say,
    say_json,
    table,
)
from gateway.database import Database, JobRow
from gateway.errors import REASONS, UsageError
from gateway.settings import Home, load_settings
from gateway.study import State

app = typer.Typer(help="Studies that wait for a person.", no_args_is_help=True)
WAIT_S = 10.0
KeyArgument = Annotated[str, typer.Argument(help="The key that `held list` shows.")]


def _open(home: Home) -> Database:
    home.require()
    return Database.in_home(home.database, load_settings(home.root).database_url)


@app.command(name="list")
def list_held(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every held study, oldest first. Exit 0 also when there are some."""
    database = _open(find_home(home))
    now = time.time()
    rows = [
        {"key": held_key(s), "policy": "", "stage": "intake", "reason": s.reason, "age_s": round(now - s.first_at)}
        for s in database.studies_in("held")
    ] + [
        {
            "key": j.job_key,
            "policy": j.policy,
            "stage": j.held_in,
            "reason": j.reason,
            "age_s": round(now - j.created_at),
        }
        for j in database.jobs_in(State.HELD, State.AWAITING_RELEASE)
    ]
    if json:
        say_json(rows)
    elif rows:
        columns = ["key", "policy", "held in", "reason", "age", "what to do"]
        table(
            "Held studies",
            columns,
            [(r["key"], r["policy"], r["stage"], r["reason"], _age(r["age_s"]), _hint(str(r["reason"]))) for r in rows],
        )
    else:
        say("nothing is held")
    return 0


@app.command()
def show(key: KeyArgument, home: HomeOption = None, json: JsonOption = False) -> int:
    """One held study: why, where, and what to do. Places and rules only, never a value."""
    database = _open(find_home(home))
    job = database.job(key)
    if job is None:
        study = next((s for s in database.studies_in("held", "rejected") if held_key(s) == key), None)
        if study is None:
            raise UsageError(f"no held study has the key {key}; see `deid-gateway held list`")
        facts = {"key": key, "state": study.state, "stage": "intake", "reason": study.reason}
        findings: list[dict[str, str]] = []
    else:
        facts = {
            "key": key,
            "state": str(job.state),
            "stage": job.held_in,
            "reason": job.reason,
            "at": job.at,
            "policy": job.policy,
            "policy_digest": job.policy_digest,
            "destination": job.destination,
        }
        findings = _findings(job)
    if json:
        say_json({**facts, "findings": findings})
        return 0
    reason = REASONS.get(facts["reason"])
    if reason is not None:
        facts = {**facts, "what happened": reason.says, "what to do": reason.hint}
    table("Held study", ["", ""], list(facts.items()))
    if findings:
        table("Findings", ["check", "instance", "where", "rule"], [tuple(f.values()) for f in findings])
    return 0


@app.command()
def release(key: KeyArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Let a study that the gate or the archive held go as it is. The clearance then bears your name."""
    return _decide("release", key, by, reason, home)


@app.command()
def rerun(key: KeyArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Begin again under the policies and routes of now, after they were mended."""
    return _decide("rerun", key, by, reason, home)


@app.command()
def reject(key: KeyArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Nothing of this study leaves, for good. A corrected study may then be sent again by the PACS."""
    return _decide("reject", key, by, reason, home)


def _decide(kind: str, key: str, by: str, reason: str, home: HomeOption) -> int:
    by, reason = by.strip(), reason.strip()
    if len(by) < 2 or len(reason) < 5:
        raise UsageError("a decision needs a name (--by) and a reason (--reason) that says something")
    if len(by) > 128 or len(reason) > 512:
        raise UsageError("the name may have 128 characters, the reason 512")
    database = _open(find_home(home))
    serial = database.add_intent(kind=kind, key=key, actor=by, reason=reason)
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        intent = database.intent(serial)
        if intent is not None and intent.done_at is not None:
            if intent.outcome == DONE:
                say(f"{kind}: done")
                return 0
            raise UsageError(f"{kind}: {intent.outcome}")
        time.sleep(0.1)
    say("written down; no gateway is running on this home, so it takes effect when one starts")
    return 0


def _findings(job: JobRow) -> list[dict[str, str]]:
    return [
        {"check": f.check, "instance": f.instance, "where": f.where, "rule": f.rule}
        for verdict in stored_verdicts(job)
        for f in verdict.findings
    ]


def _hint(reason: str) -> str:
    return REASONS[reason].hint if reason in REASONS else ""


def _age(seconds: object) -> str:
    left = int(str(seconds))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if left >= length:
            return f"{left // length} {unit}"
    return f"{left} s"
