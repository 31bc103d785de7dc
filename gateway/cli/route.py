"""`route test`: which rule a study falls under and why. `route echo` has a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import route_echo
from gateway.cli.homes import HomeOption, named_home, registry_at, settings_of
from gateway.cli.output import JsonOption, complain, explain_reasons, say, say_json
from gateway.errors import UsageError

if TYPE_CHECKING:
    from gateway.app.routing.rules import StudyRoute

app = typer.Typer(
    help="Routing and destinations, tried out: nothing is sent and nothing is decided.", no_args_is_help=True
)


@app.command(name="test")
def try_out(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DICOM]...", readable=False, help="Files, or folders that are read to the bottom."),
    ] = None,
    ae: Annotated[
        str,
        typer.Option("--ae", metavar="CALLING", help="AE title of the sender; default: what the files' own meta says."),
    ] = "",
    called: Annotated[
        str, typer.Option("--called", help="AE title by which it calls us; with --ae the default is DEID_AE_TITLE.")
    ] = "",
    told: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="NAME=VALUE", help="Instead of files: what a study has, e.g. modality=CT. Repeatable."
        ),
    ] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Print what the files have too. It may name a patient.")
    ] = False,
    policies: route_echo.FolderOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Say which rule of routes.yaml would fire and why, rule by rule, and what would hold the study then.

    Files of one study are judged together, as the gateway would. A study of which something came before keeps the
    route it had, which is not looked up here. Exit 1 when a study would be held or its sender rejected.
    """
    from gateway.app.preview.files import files_of
    from gateway.app.routing.rules import RouteTest, rejection, sender_of
    from gateway.cli import route_words
    from gateway.observe import silence_libraries
    from gateway.policy import load_policies
    from gateway.pseudonyms import Keys, master_key

    if bool(sources) and bool(told):
        raise UsageError("name files, or say with --with what a study has, not both")
    if not (sources or told or ae or called):
        raise UsageError("what shall be routed? name DICOM files, or an AE title with --ae")
    silence_libraries()
    place = named_home(home)
    settings = settings_of(place)
    folder = policies or settings.policies
    keys = Keys(master_key(place, settings)) if place is not None else None
    sender = sender_of(ae, called or (settings.ae_title if ae else ""))
    asked = RouteTest(load_policies(folder, registry_at(place)), folder, keys, sender)
    if sources:
        studies, left_out = asked.of_files(files_of(sources))
    else:
        studies, left_out = [asked.of_attributes(told or ())], []
    rejected = rejection(sender, settings)
    if json:
        say_json(
            {
                "studies": [route_words.document(study, show_values=show_values) for study in studies],
                "left_out": [{"file": str(path), "reason": reason} for path, reason in left_out],
                "rejected": rejected,
            }
        )
    else:
        for study in studies:
            route_words.show(study, show_values=show_values)
        for path, reason in left_out:
            say(f"left out: {path}: {'not DICOM' if reason == 'not_dicom' else 'cannot be read'}")
        if rejected:
            complain(rejected)
        explain_reasons({study.reason for study in studies if study.reason} | _gate_reasons(studies))
    unread = any(reason == "file_unreadable" for _, reason in left_out)
    return 1 if rejected or unread or any(study.is_held for study in studies) else 0


def _gate_reasons(studies: list[StudyRoute]) -> set[str]:
    jobs = [job for study in studies for job in study.jobs]
    return {"not_assessed" for job in jobs if job.holds} | {job.reason for job in jobs if job.reason}


app.command()(route_echo.echo)
