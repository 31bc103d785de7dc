"""`subject opt-out|opt-in|erase|list|restore`: what a person asked for. A Patient ID is read, never kept or shown."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.held import WAIT_S, worded
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, say, say_json, table
from gateway.errors import UsageError

if TYPE_CHECKING:
    from gateway.app.person.wishes import Rights
    from gateway.database import Subject

app = typer.Typer(help="People's rights: opting out, erasure.", no_args_is_help=True)
PseudonymOption = Annotated[
    str, typer.Option("--pseudonym", help="As it left the gateway; else a Patient ID is asked for.")
]
ProjectOption = Annotated[str, typer.Option("--project", help="Look for the pseudonym in this project only.")]
RecallOption = Annotated[bool, typer.Option("--recall", help="Recall as well what receivers have of the person.")]


@app.command(name="opt-out")
def opt_out(
    by: ActorOption,
    reason: ReasonOption,
    pseudonym: PseudonymOption = "",
    project: ProjectOption = "",
    recall: RecallOption = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """From now on nothing of this person is taken in, and what has not left yet never does.

    Patient ID and issuer are asked for, or read from stdin: the ID on the first line, its issuer, if any, on the next.
    """
    by, reason = worded(by, reason)
    with _rights(home) as rights:
        subject = _subject(rights, pseudonym, project, reason)
        serial = rights.opt_out(subject, actor=by, reason=reason)
    return _end(home, "opt-out", subject, serial, (by, reason), recall=recall, json=json)


@app.command(name="opt-in")
def opt_in(
    by: ActorOption,
    reason: ReasonOption,
    pseudonym: PseudonymOption = "",
    project: ProjectOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """An opt-out ends. Studies that were refused meanwhile may be sent again by the PACS."""
    by, reason = worded(by, reason)
    with _rights(home) as rights:
        subject = _subject(rights, pseudonym, project, reason)
        if not rights.opt_in(subject, actor=by, reason=reason):
            raise UsageError("this person has not opted out (of that issuer); see `deid-gateway subject list`")
    if json:
        say_json({"decision": "opt-in", "outcome": "done"})
    else:
        say("opt-in: done; what comes from now on is taken in")
    return 0


@app.command()
def erase(
    by: ActorOption,
    reason: ReasonOption,
    pseudonym: PseudonymOption = "",
    project: ProjectOption = "",
    recall: RecallOption = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Remove everything of this person that lies here. Receivers are listed; `--recall` asks them as well.

    Patient ID and issuer are asked for, or read from stdin, as for opt-out. The ledger stays: it names nobody.
    """
    by, reason = worded(by, reason)
    with _rights(home) as rights:
        subject = _subject(rights, pseudonym, project, reason)
        serial = rights.ask_erasure(subject, actor=by, reason=reason)
    return _end(home, "erase", subject, serial, (by, reason), recall=recall, json=json)


@app.command(name="list")
def list_subjects(home: HomeOption = None, json: JsonOption = False) -> int:
    """Who opted out and who was erased, by keyed names: they lead back to nobody without the Patient ID and the key.

    Keep the `--json` document outside of backups: `subject restore` enters it again after one was restored.
    """
    with _rights(home) as rights:
        listed = rights.listed()
    if json:
        say_json(listed)
        return 0
    if not any(listed.values()):
        say("nobody has opted out, nobody was erased")
        return 0
    rows = [
        (one["subject"], "opted out", _day(one["since"]), f"until {_day(one['ended_at'])}" if one["ended_at"] else "")
        for one in listed["opted_out"]
    ]
    for one in listed["erased"]:
        removed = ", ".join(f"{count} {kind}" for kind, count in one["removed"].items()) or "nothing was there"
        said = removed if one["done_at"] else "waits for a running gateway"
        rows.append((one["subject"], "erased", _day(one["requested_at"]), said))
    table("People's rights", ["person", "what", "since", ""], rows, keyed=True)
    return 0


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", readable=False, help="What `list --json` printed.")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """After a backup was restored: enter again what people had asked for since. What the ledger has is not needed."""
    try:
        listed = json_format.loads(source.read_bytes())
    except ValueError:
        raise UsageError(f"{source} is no JSON document") from None
    with _rights(home) as rights:
        entered = rights.restore(listed) + rights.restore_from_ledger()
    if json:
        say_json({"entered": entered})
    else:
        say(f"{entered} entries were missing; a gateway carries them out when it runs, now or at its start")
    return 0


@contextmanager
def _rights(home: HomeOption) -> Iterator[Rights]:
    from gateway.app.person.wishes import Rights
    from gateway.database import Database
    from gateway.ledger import Ledger
    from gateway.pseudonyms import Keys, master_key

    place = made_home(home)
    values = settings_of(place)
    keys = Keys(master_key(place, values))
    database = Database.in_home(place.database, values.database_url)
    try:
        yield Rights(database, Ledger(place.ledger, keys.ledger), keys)
    finally:
        database.close()


def _subject(rights: Rights, pseudonym: str, project: str, reason: str) -> Subject:
    if pseudonym:
        return rights.behind(pseudonym, project)
    patient_id, issuer = _asked()
    if len(patient_id.strip()) > 1 and patient_id.strip().casefold() in reason.casefold():
        raise UsageError("the reason names the person, and goes to the ledger: write it without")
    return rights.subject(patient_id, issuer)


def _asked() -> tuple[str, str]:
    """Patient ID and issuer: typed without an echo at a terminal, else the first lines of stdin."""
    if sys.stdin.isatty():
        patient_id = str(typer.prompt("Patient ID", hide_input=True, confirmation_prompt=True, err=True))
        return patient_id, str(typer.prompt("Issuer (empty = any)", default="", show_default=False, err=True))
    try:
        lines = [*sys.stdin.buffer.read().decode("utf-8-sig").splitlines(), "", ""]
    except UnicodeDecodeError:
        raise UsageError("stdin is not UTF-8 text; the Patient ID is its first line, the issuer its second") from None
    if any(line.strip() for line in lines[2:]):
        raise UsageError("one person at a time: the Patient ID on the first line, its issuer on the second")
    return lines[0].strip(), lines[1].strip()


def _end(
    home: HomeOption, verb: str, subject: Subject, serial: int, words: tuple[str, str], *, recall: bool, json: bool
) -> int:
    from gateway.app.wishes import outcome_of
    from gateway.cli.recall import of_subject

    place = made_home(home)
    outcome = outcome_of(place, settings_of(place), serial, wait_s=WAIT_S)
    found: dict[str, Any] = of_subject(place, subject, words, recall=recall)
    if json:
        say_json({"decision": verb, "outcome": outcome or "waiting", **found})
        return 0
    waits = "written down, and in force at once; a running gateway does the rest within a second, or when it starts"
    say(f"{verb}: {outcome or waits}")
    if found["receivers"]:
        table(
            "What receivers have",
            ["receiver", "studies", "instances", "recalled"],
            [(one["receiver"], one["studies"], one["instances"], one["recalled"]) for one in found["receivers"]],
        )
        if found["recall"]:
            say(f"see: deid-gateway recall show {found['recall']} --out FOLDER")
        elif any(one["recalled"] < one["studies"] for one in found["receivers"]):
            say(f"to ask for it back: deid-gateway subject {verb} … --recall")
    if verb == "erase":
        say("backups of this home are yours to clean; a study of this person that comes later is new, unless opted out")
    return 0


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")
