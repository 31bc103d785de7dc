"""`scrub`: files or folders, without a running gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.app import batch as batches
from gateway.app.scrub import Scrub
from gateway.cli.output import HomeOption, JsonOption, errors, find_home, say, say_json, table
from gateway.errors import REASONS
from gateway.observe import silence_libraries
from gateway.pseudonyms import Keys, master_key
from gateway.settings import load_settings
from gateway.study import State

NEEDS_A_PERSON = frozenset({State.HELD, State.AWAITING_RELEASE})


def scrub(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A file, or a folder that is read to the bottom.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="The folder for cleared files, under names of ours.")],
    policy: Annotated[str, typer.Option("--policy", help="A policy file, or a name in the policies folder.")],
    home: HomeOption = None,
    project: Annotated[
        str, typer.Option(help="Whose pseudonyms; the same project maps alike. Default: the policy's name.")
    ] = "",
    close_release: Annotated[
        bool, typer.Option("--close-release", help="Judge this batch as one release, for a policy with `release:`.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """De-identify files. Cleared ones go to DST, the others stay in HOME/held; run again to go on after a stop.

    Exit 1 when anything was held or waits for its release.
    """
    place = find_home(home)
    place.require()
    settings = load_settings(place.root)
    silence_libraries()
    keys = Keys(master_key(place, settings))
    chosen = batches.find_policy(policy, settings)
    files = batches.input_files(source, target)
    run = Scrub(place, settings, keys, chosen, target, project or chosen.name)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=errors
    ) as bar:
        task = bar.add_task("reading", total=len(files))

        def report(progress: batches.Progress) -> None:
            words = {"examine": "reading", "scrub": "de-identifying"}
            bar.update(task, description=words[progress.phase], completed=progress.done, total=progress.total)

        results = run.run(files, close_release=close_release, report=report)
    _show(results, target, place.held, json=json)
    return 1 if any(result.state in NEEDS_A_PERSON for result in results) else 0


def _show(results: list[batches.StudyResult], target: Path, held: Path, *, json: bool) -> None:
    if json:
        say_json(
            [
                {
                    "study": r.key,
                    "first_file": str(r.first),
                    "instances": r.instances,
                    "state": str(r.state),
                    "reason": r.reason,
                    "at": r.at,
                    "resumed": r.resumed,
                }
                for r in results
            ]
        )
        return
    others = [r for r in results if r.reason != batches.NOT_DICOM]
    if others:
        rows = [(str(r.first), r.instances, r.state, r.reason, r.at) for r in others]
        table("Studies", ["first file", "files", "state", "reason", "where"], rows)
    for reason in sorted({r.reason for r in others} & REASONS.keys()):
        say(f"  {reason}: {REASONS[reason].says}; {REASONS[reason].hint}")
    sent = sum(r.instances for r in others if r.state == State.SENT)
    resumed = sum(r.resumed for r in others)
    strangers = len(results) - len(others)
    say(f"{sent} files cleared into {target}; what was held is in {held}")
    if resumed:
        say(f"{resumed} studies were decided in an earlier run and not done again")
    if strangers:
        say(f"{strangers} files are not DICOM and were left alone")
