"""`recall release|study|pseudonym|list|show|send|reissue`: asking receivers to give up what they got.

These commands never open the engine: a running gateway carries out what they write down, or they do when none runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.held import WAIT_S, worded
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, say, say_json, table
from gateway.errors import UsageError

if TYPE_CHECKING:
    from gateway.database import Database, RecallRow, Subject
    from gateway.settings import Home

app = typer.Typer(help="Recalls: what receivers have, and asking for it back.", no_args_is_help=True)


class Code(StrEnum):
    """Titles of rejection notes."""

    RETENTION = "113039"
    SAFETY = "113037"
    WORKLIST = "113038"


CodeOption = Annotated[
    Code,
    typer.Option(
        "--code",
        help="Title of the rejection notes: 113039 may not be kept longer, 113037 is not safe, 113038 wrong person.",
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", readable=False, help="Write the manifest there: recall-N.json and .csv.")
]
NumberArgument = Annotated[int, typer.Argument(metavar="N", min=1, help="The number that `recall list` shows.")]


@app.command(name="release")
def recall_release(
    name: Annotated[str, typer.Argument(metavar="RELEASE", help="The name that `release list` shows.")],
    by: ActorOption,
    reason: ReasonOption,
    code: CodeOption = Code.RETENTION,
    out: OutOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Ask for a whole release back. What was about to be sent of it is held."""
    with _database(home) as database:
        if database.release_named(name) is None:
            raise UsageError(f"no release is called {name}; see `deid-gateway release list`")
    return _recall(home, "release", name, worded(by, reason), code, out, json=json)


@app.command(name="study")
def recall_study(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="Its Study Instance UID as it left, or the key of study or job.")
    ],
    by: ActorOption,
    reason: ReasonOption,
    code: CodeOption = Code.RETENTION,
    out: OutOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Ask for one study back, from every receiver that has something of it."""
    with _database(home) as database:
        job = database.job(study)
        key = job.study_key if job is not None else database.study_sent_as(study)
        if not key and database.generations(study):
            key = study
    if not key:
        raise UsageError("nothing has left under that UID or key; write it as it left")
    return _recall(home, "study", key, worded(by, reason), code, out, json=json)


@app.command(name="pseudonym")
def recall_pseudonym(
    pseudonym: Annotated[str, typer.Argument(help="The Patient ID as it left.")],
    by: ActorOption,
    reason: ReasonOption,
    project: Annotated[str, typer.Option("--project", help="Look in this project only.")] = "",
    code: CodeOption = Code.RETENTION,
    out: OutOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Ask for everything back that left under a pseudonym."""
    from gateway.pseudonyms import Keys, master_key

    place = made_home(home)
    keys = Keys(master_key(place, settings_of(place)))
    with _database(home) as database:
        projects = [project] if project else database.projects()
        named = [keys.opaque("issued", one, pseudonym.casefold()) for one in projects]
        found = [key for key in named if database.person_under(key)]
    if len(found) != 1:
        raise UsageError(
            "several projects gave that pseudonym; name one with --project"
            if found
            else "nothing has left under that pseudonym; write it as it left, letter by letter"
        )
    return _recall(home, "pseudonym", found[0], worded(by, reason), code, out, json=json)


@app.command(name="list")
def list_recalls(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every recall, oldest first, with its receivers and what became of the rejection notes."""
    with _database(home) as database:
        rows = [_row(database, recall) for recall in database.recalls()]
    if json:
        say_json(rows)
    elif rows:
        columns = ("recall", "about", "made_at", "studies", "receivers", "notes")
        table("Recalls", list(columns), [[row[name] for name in columns] for row in rows], keyed=True)
        say("further: deid-gateway recall show N --out FOLDER")
    else:
        say("nothing was recalled")
    return 0


@app.command()
def show(number: NumberArgument, out: OutOption = None, home: HomeOption = None, json: JsonOption = False) -> int:
    """Which receiver has what of a recall, under the UIDs that it was sent under."""
    from gateway.app.recall.manifest import manifest_of, write_manifest
    from gateway.pseudonyms import master_key

    place = made_home(home)
    master = master_key(place, settings_of(place))
    with _database(home) as database:
        recall = database.recall(number)
        if recall is None:
            raise UsageError(f"there is no recall {number}; see `deid-gateway recall list`")
        manifest, row = manifest_of(database, recall, master), _row(database, recall)
    written = write_manifest(manifest, out) if out is not None else []
    if json:
        say_json(manifest)
        return 0
    table("Recall", ["", ""], [(name, value) for name, value in row.items() if value != ""])
    rows = [
        (one["receiver"], one["studies"], len(one["instances"]), _notes(one["rejection_notes"]))
        for one in manifest["receivers"]
    ]
    table("Receivers", ["receiver", "studies", "instances", "rejection notes"], rows)
    for path in written:
        say(f"written: {path}")
    if not written:
        say("every instance with its UIDs and times: --out FOLDER, or --json")
    return 0


@app.command()
def send(
    number: NumberArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None, json: JsonOption = False
) -> int:
    """Send the rejection notes once more that failed, or that a receiver takes by now."""
    return _wish(home, "notes", str(number), worded(by, reason), json=json)


@app.command()
def reissue(
    what: Annotated[str, typer.Argument(metavar="N|JOB", help="The number of a recall, or one of its jobs by key.")],
    by: ActorOption,
    reason: ReasonOption,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Issue anew what was recalled, from its originals, under the policy of now and new instance and series UIDs."""
    return _wish(home, "reissue", what, worded(by, reason), json=json)


def of_subject(home: Home, subject: Subject, words: tuple[str, str], *, recall: bool) -> dict[str, Any]:
    """What receivers have of a person, by receiver; recalled before, when that is wanted."""
    from gateway.app.person.tables import PeopleTables
    from gateway.app.recall.receivers import names_of, receivers_of
    from gateway.database import Database
    from gateway.pseudonyms import Keys, master_key

    values = settings_of(home)
    people = PeopleTables(values.policies, Keys(master_key(home, values)), values.lookup_urls)
    database = Database.in_home(home.database, values.database_url)
    try:
        jobs = database.jobs_of_people(names_of(subject.person_key, people, values.policies))
        outcome, number = "", 0
        if recall and receivers_of(database, jobs):
            kind, key = f"recall:subject:{Code.RETENTION}", f"{subject.person_key}.{subject.issuer_key}"
            serial = database.add_intent(kind=kind, key=key, actor=words[0], reason=words[1])
            outcome = _outcome(home, serial) or "waiting"
            number = next((one.serial for one in database.recalls() if one.intent == serial), 0)
        return {"receivers": receivers_of(database, jobs), "recall": number, "recall_outcome": outcome}
    finally:
        database.close()


@contextmanager
def _database(home: HomeOption) -> Iterator[Database]:
    from gateway.database import Database

    place = made_home(home)
    database = Database.in_home(place.database, settings_of(place).database_url)
    try:
        yield database
    finally:
        database.close()


def _outcome(home: Home, serial: int) -> str:
    from gateway.app.wishes import outcome_of

    return outcome_of(home, settings_of(home), serial, wait_s=WAIT_S)


def _recall(
    home: HomeOption, scope: str, key: str, words: tuple[str, str], code: Code, out: Path | None, *, json: bool
) -> int:
    place = made_home(home)
    with _database(home) as database:
        serial = database.add_intent(kind=f"recall:{scope}:{code}", key=key, actor=words[0], reason=words[1])
        outcome = _outcome(place, serial)
        found = next((one for one in database.recalls() if one.intent == serial), None)
    if found is not None:
        return show(found.serial, out, home, json)
    return _told(f"recall {scope}", serial, outcome, json=json)


def _wish(home: HomeOption, kind: str, key: str, words: tuple[str, str], *, json: bool) -> int:
    place = made_home(home)
    with _database(home) as database:
        serial = database.add_intent(kind=kind, key=key, actor=words[0], reason=words[1])
    return _told(kind, serial, _outcome(place, serial), json=json)


def _told(verb: str, serial: int, outcome: str, *, json: bool) -> int:
    if json:
        say_json({"decision": verb, "intent": serial, "outcome": outcome or "waiting"})
    elif not outcome:
        say(f"{verb}: written down as intent {serial}; a running gateway takes it up within a second or when it starts")
    elif outcome.startswith("done"):
        say(f"{verb}: {outcome}")
    if outcome and not outcome.startswith("done"):
        raise UsageError(f"{verb}: {outcome}")
    return 0


def _row(database: Database, recall: RecallRow) -> dict[str, Any]:
    rows = database.recalled_in(recall.serial)
    return {
        "recall": recall.serial,
        "about": f"release {recall.key}" if recall.scope == "release" else recall.scope,
        "made_at": datetime.fromtimestamp(recall.created_at, UTC).strftime("%Y-%m-%d %H:%M"),
        "code": recall.code,
        "by": recall.actor,
        "reason": recall.reason,
        "studies": len(rows),
        "receivers": ", ".join(sorted({row.destination for row in rows})),
        "notes": _notes(Counter(row.note for row in rows)),
        "trouble": _trouble([row.reason for row in rows]),
    }


def _notes(states: dict[str, int]) -> str:
    says = {"none": "not taken", "due": "on their way", "sent": "sent", "failed": "failed"}
    return ", ".join(f"{count} {says[state]}" for state, count in sorted(states.items()))


def _trouble(reasons: Sequence[str]) -> str:
    return ", ".join(sorted(set(reasons) - {""}))
