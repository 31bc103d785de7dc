"""`demo`, as a person sees it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.output import JsonOption, console, errors, explain_reasons, say, say_json, table
from gateway.study import State

if TYPE_CHECKING:
    from gateway.app.demo import DemoReport, DemoStudy
    from gateway.app.demo_releases import DemoRelease

WIDE = 120  # columns from which every fact has its own
WAITING = "a gateway and an archive on loopback; real studies go through over DICOM"


def demo(
    keep: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            help="Where to leave the files. Default: a new folder under the temporary one.",
        ),
    ] = None,
    releases: Annotated[
        bool,
        typer.Option("--releases/--no-releases", help="Then two releases of drawn films: a minute or two more."),
    ] = True,
    json: JsonOption = False,
) -> int:
    """Gateway and archive on loopback, real studies in, a table of what became of each, and two releases of drawn
    films: one is blocked, one cleared. Ends by itself.

    Uses none of your settings and touches nothing but its own folder.
    """
    from gateway.app.demo import new_root, perform
    from gateway.observe import start_logging

    root = new_root(keep)
    with open(root / "gateway.log", "w", encoding="utf-8") as log_file:
        start_logging(log_file)
        with nullcontext() if json else errors.status(WAITING) as waiting:
            report = perform(root, releases=releases, tick=waiting.update if waiting else lambda _said: None)
    if json:
        say_json(_document(report))
    else:
        _show(report)
    return 0


def _document(report: DemoReport) -> dict[str, object]:
    return {
        "studies": [
            {
                "file": study.file,
                "modality": study.modality,
                "route": study.job.route if study.job else "",
                "policy": study.job.policy if study.job else "",
                "instances": study.instances,
                "state": study.state,
                "reason": study.reason,
                "destination": _went_to(study),
            }
            for study in report.studies
        ],
        "header": [{"attribute": word, "before": before, "after": after} for word, before, after in report.excerpt],
        "metrics": list(report.metrics),
        "archived": report.archived,
        "releases": [asdict(release) for release in report.releases],
        "seconds": round(report.seconds, 1),
        "root": str(report.root),
    }


def _show(report: DemoReport) -> None:
    """The tables, the metrics, and where the files lie."""
    rows: list[tuple[object, ...]]
    if console.width >= WIDE:
        columns = ["study", "route", "policy", "instances", "verdict", "reason", "went to"]
        rows = [
            (_name(s), *_judged_by(s), s.instances, s.state, s.reason or "-", _went_to(s) or "stays here")
            for s in report.studies
        ]
    else:
        columns = ["study", "route, policy", "n", "verdict, reason or archive"]
        rows = [
            (_name(s), ", ".join(_judged_by(s)) if s.job else "-", s.instances, f"{s.state}: {s.reason or _went_to(s)}")
            for s in report.studies
        ]
    table("Studies", columns, rows)
    explain_reasons(study.reason for study in report.studies)
    say("")
    table(f"Header of {report.studies[0].file}", ["attribute", "before", "after"], list(report.excerpt))
    say("\nWhat a dashboard would show (from /metrics)", "bold")
    for line in report.metrics:
        say(f"  {line}")
    _show_releases(report.releases)
    sent = sum(study.state == State.SENT for study in report.studies)
    say(f"\n{sent} studies sent, {len(report.studies) - sent} held, {report.archived} objects in the archive, "
        f"{report.seconds:.0f} s; nothing is left running.")  # fmt: skip
    home = report.root / "home"
    say(f"archive:  {report.root / 'archive'}")
    say(f"home:     {home} (spool, ledger, database)")
    say(f"policies: {report.root / 'policies'}")
    say(f"log:      {report.root / 'gateway.log'}")
    say(f"further:  {program()} held list --home {home}")


def _show_releases(releases: Sequence[DemoRelease]) -> None:
    if not releases:
        return
    columns = ["release", "films", "people", "check", "at most", "limit", "verdict"]
    rows: list[tuple[object, ...]] = []
    for release in releases:
        for number, score in enumerate(release.scores):
            begin = ("", "", "") if number else (release.name, release.done, release.people)
            rows.append(
                (*begin, score.check, f"{score.upper:.2f}", f"{score.limit:g}", "" if number else release.state)
            )
    say("")
    table("Releases of drawn films (synthetic)", columns, rows)
    say("at most: the worst attacker's upper bound; D_sys beyond chance for linkability, share found first for rank1")


def program() -> str:
    """What a person can type to start this program: `make demo` starts it in .venv, which is not on the PATH."""
    name, started = "deid-gateway", Path(sys.argv[0])
    return str(started) if started.name == name and shutil.which(name) is None else name


def _name(study: DemoStudy) -> str:
    return f"{study.file} ({study.modality})"


def _judged_by(study: DemoStudy) -> tuple[str, str]:
    return (study.job.route, study.job.policy) if study.job else ("-", "-")


def _went_to(study: DemoStudy) -> str:
    return study.job.destination if study.job and study.state == State.SENT else ""
