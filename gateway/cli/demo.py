"""`demo`, as a person sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.app.demo import DemoReport, new_root, perform
from gateway.cli.output import console, say, table
from gateway.errors import REASONS
from gateway.observe import start_logging
from gateway.study import State


def demo(
    keep: Annotated[
        Path | None, typer.Option(help="Where to leave the files. Default: a new folder under the temporary one.")
    ] = None,
) -> int:
    """Gateway and archive on loopback, real studies in, a table of what became of each. Ends by itself."""
    root = new_root(keep)
    with open(root / "gateway.log", "w", encoding="utf-8") as log_file:
        start_logging(log_file)
        with console.status("a gateway and an archive on loopback; real studies go through over DICOM"):
            report = perform(root)
    show(report)
    return 0


def show(report: DemoReport) -> None:
    """The tables, the metrics, and where the files lie."""
    rows = [
        (
            f"{study.file} ({study.modality})",
            study.job.route if study.job else "-",
            study.job.policy if study.job else "-",
            study.instances,
            study.state,
            study.reason or "-",
            study.job.destination if study.job and study.state == State.SENT else "stays here",
        )
        for study in report.studies
    ]
    table("Studies", ["study", "route", "policy", "instances", "verdict", "reason", "went to"], rows)
    for code in sorted({study.reason for study in report.studies} - {""}):
        say(f"  [bold]{code}[/]: {REASONS[code].says}; {REASONS[code].hint}")
    say("")
    table(f"Header of {report.studies[0].file}", ["attribute", "before", "after"], list(report.excerpt))
    say("\n[bold]What a dashboard would show[/] (from /metrics)")
    for line in report.metrics:
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    sent = sum(study.state == State.SENT for study in report.studies)
    say(f"\n{sent} studies sent, {len(report.studies) - sent} held, {report.archived} objects in the archive, "
        f"{report.seconds:.0f} s; nothing is left running.")  # fmt: skip
    say(f"archive: {report.root / 'archive'}\nhome (spool, ledger, database): {report.root / 'home'}")
    say(f"log: {report.root / 'gateway.log'}\nlook further: deid-gateway held list --home {report.root / 'home'}")
