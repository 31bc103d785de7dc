"""`scrub`: files or folders, without a running gateway."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import JsonOption, console, errors, explain_reasons, say, say_json, table
from gateway.study import State

if TYPE_CHECKING:
    from gateway.app.batch.inputs import Inputs
    from gateway.app.batch.studies import Progress as Report
    from gateway.app.batch.studies import StudyResult

NEEDS_A_PERSON = frozenset({State.HELD, State.AWAITING_RELEASE})
WIDE = 110  # columns from which every fact has its own
SHOWN = 40  # rows of the table; --json tells of all
WORDS = {"examine": "reading", "scrub": "de-identifying"}


def scrub(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            readable=False,
            help="A file, or a folder that is read to the bottom.",
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="DST",
            readable=False,
            help="The folder for cleared files, under names of ours.",
        ),
    ],
    policy: Annotated[str, typer.Option("--policy", help="A policy file, or a name in the policies folder.")],
    home: HomeOption = None,
    project: Annotated[
        str, typer.Option(help="Whose pseudonyms; the same project maps alike. Default: the policy's name.")
    ] = "",
    close_release: Annotated[
        bool, typer.Option("--close-release", help="Judge this batch as one release, for a policy with `release:`.")
    ] = False,
    preview: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            readable=False,
            help="Also write pictures here: before, after, difference. They show the originals: delete them after.",
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """De-identify files. Cleared ones go to DST, the others stay in HOME/held; run again to go on after a stop.

    Exit 1 when anything was held or waits for its release. The source is only read.
    """
    from gateway.app.batch.inputs import find_inputs
    from gateway.app.batch.scrub import Scrub
    from gateway.app.batch.studies import find_policy, require_project, tables_beside
    from gateway.app.policy.approvals import require_approved
    from gateway.app.policy.registry import registry_of
    from gateway.app.release.references import MODELS
    from gateway.observe import silence_libraries
    from gateway.pseudonyms import Keys, master_key

    place = made_home(home)
    settings = settings_of(place)
    chosen = find_policy(policy, lambda: settings.policies, registry_of(place.root / MODELS))
    require_approved(place, settings, chosen)
    project = require_project(project or chosen.name)
    keys = Keys(master_key(place, settings))
    silence_libraries()
    inputs = find_inputs(source.absolute(), target.absolute(), place.root)
    run = Scrub(
        place,
        settings,
        keys,
        chosen,
        target.absolute(),
        project,
        preview.absolute() if preview else None,
        tables_beside(policy, settings.policies),
    )
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        disable=json or not errors.is_terminal,
    ) as bar:
        task = bar.add_task("reading", total=len(inputs.files))

        def report(progress: Report) -> None:
            bar.update(task, description=WORDS[progress.phase], completed=progress.done, total=progress.total)

        results = run.run(inputs, close_release=close_release, report=report)
    if json:
        say_json(_document(results, inputs))
    else:
        _show(results, inputs, source.absolute(), target, place.held, preview)
    return 1 if any(result.state in NEEDS_A_PERSON for result in results) else 0


def _document(results: list[StudyResult], inputs: Inputs) -> dict[str, object]:
    studies = [
        {
            "key": r.key,
            "file": str(r.file),
            "instances": r.instances,
            "state": str(r.state),
            "reason": r.reason,
            "at": r.at,
            "sent": r.sent,
            "resumed": r.resumed,
        }
        for r in results
    ]
    return {"studies": studies, "not_followed": inputs.not_followed}


def _show(
    results: list[StudyResult], inputs: Inputs, source: Path, target: Path, held: Path, preview: Path | None
) -> None:
    from gateway.app.batch.studies import NOT_DICOM

    studies = [r for r in results if r.reason != NOT_DICOM]
    waiting = [r for r in studies if r.state in NEEDS_A_PERSON or r.state == State.REFUSED]
    shown = (studies if len(studies) <= SHOWN else waiting)[:SHOWN]
    title = "Studies" if len(shown) == len(studies) else f"{len(shown)} of {len(waiting)} that were not sent"
    if shown and console.width >= WIDE:
        columns = ["study", "file", "files", "state", "reason", "where"]
        wide = [(r.key, _below(source, r.file), r.instances, r.state, r.reason, _place(r)) for r in shown]
        table(title, columns, wide, keyed=True)
    elif shown:
        narrow = [
            (r.key, _below(source, r.file), r.instances, ": ".join(filter(None, (r.state, r.reason)))) for r in shown
        ]
        table(title, ["study", "file", "files", "state"], narrow, keyed=True)
    explain_reasons(r.reason for r in waiting)
    counted = Counter(str(r.state) for r in studies)
    say(f"studies: {', '.join(f'{n} {state}' for state, n in sorted(counted.items())) or 'none'}")
    say(f"{sum(r.sent for r in studies)} files are cleared in {target}")
    if preview is not None:
        say(f"pictures of before and after, by study, are in {preview}; they show the originals: delete them after")
    if any(r.state in NEEDS_A_PERSON for r in studies):
        say(f"what waits is in {held}, by study; look further: deid-gateway held show STUDY")
    for count, says in (
        (sum(r.resumed for r in studies), "studies were decided in an earlier run and not done again"),
        (len(results) - len(studies), "files are not DICOM and were left alone"),
        (inputs.not_followed, "links or special files were not followed"),
    ):
        if count:
            say(f"{count} {says}")


def _below(source: Path, file: Path) -> str:
    return str(file.relative_to(source)) if file != source and file.is_relative_to(source) else file.name


def _place(result: StudyResult) -> str:
    """Where in the study; which file it is, the table says by its path."""
    return "" if result.at.startswith("file ") else result.at
