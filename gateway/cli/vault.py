"""`vault open|list|erase`: who is behind a pseudonym, for the roles that the policy names."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, say, say_json, table
from gateway.errors import UsageError

app = typer.Typer(help="Who is behind a pseudonym: kept where a policy has `vault:`.", no_args_is_help=True)
IssuedArgument = Annotated[
    list[str],
    typer.Argument(metavar="PSEUDONYM...", help="Patient IDs or Study Instance UIDs as they left the gateway."),
]
OptionalActor = Annotated[str, typer.Option("--by", help="Your name; it goes to the ledger. Default: the user id.")]
ProjectOption = Annotated[str, typer.Option("--project", help="Look in this project only.")]


@app.command(name="open")
def open_vault(
    issued: IssuedArgument,
    role: Annotated[str, typer.Option("--role", help="The role that you act in; the policy names those that may.")],
    reason: ReasonOption,
    by: OptionalActor = "",
    project: ProjectOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Show who is behind these pseudonyms. The ledger has it before the screen; nothing is logged."""
    from gateway.app.person.vault import open_records
    from gateway.cli.held import worded

    by, reason = worded(by or f"uid {os.getuid()}", reason)
    place = made_home(home)
    opened = open_records(place, settings_of(place), issued, role=role, actor=by, reason=reason, project=project)
    rows = [
        {
            "project": one.identity.project,
            "pseudonym": one.identity.pseudonym,
            "patient_ids": [{"id": value, "issuer": issuer} for value, issuer in one.identity.patient_ids],
            "study_instance_uid": one.identity.study_instance_uid,
            "accession_numbers": list(one.identity.accession_numbers),
            "new_study_instance_uid": one.identity.new_study_instance_uid,
            "kept_on": _day(one.head.kept_at),
            "until": _day(one.head.until),
        }
        for one in opened
    ]
    if json:
        say_json(rows)
        return 0
    for row, one in zip(rows, opened, strict=True):
        ids = ", ".join(" of ".join(filter(None, pair)) for pair in one.identity.patient_ids)
        facts = {**row, "patient_ids": ids, "accession_numbers": ", ".join(one.identity.accession_numbers)}
        table("Record", ["", ""], [(name.replace("_", " "), value) for name, value in facts.items() if value])
    return 0


@app.command(name="list")
def list_vault(home: HomeOption = None, json: JsonOption = False) -> int:
    """How much the vault holds, by project. Numbers only."""
    from gateway.app.person.vault import counts

    found = counts(made_home(home), time.time())
    if json:
        say_json(
            [{"project": c.project, "people": c.people, "records": c.records, "expired": c.expired} for c in found]
        )
    elif found:
        rows = [(c.project, c.people, c.records, c.expired) for c in found]
        table("Vault", ["project", "people", "records", "past their time"], rows)
    else:
        say("the vault is empty")
    return 0


@app.command()
def erase(
    issued: IssuedArgument,
    reason: ReasonOption,
    by: ActorOption,
    project: ProjectOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Remove all that the vault holds of these people or studies. Their pseudonyms are never given to anybody else."""
    from gateway.app.person.vault import erase as remove
    from gateway.cli.held import worded

    by, reason = worded(by, reason)
    place = made_home(home)
    gone = remove(place, settings_of(place), issued, actor=by, reason=reason, project=project)
    if not gone:
        raise UsageError("none of those named is in the vault; write them as they left, letter by letter")
    if json:
        say_json({"removed": gone})
    else:
        say(f"{gone} records are gone from the vault; backups of it are yours to clean")
    return 0


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
