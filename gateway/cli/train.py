"""`train`: a learned part of one's own data, judged on people that it was not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.cli.output import errors, say

Cohorts = Annotated[
    list[str],
    typer.Option(
        "--cohort",
        metavar="READER=FOLDER",
        help="A data set in its owner's layout, or synthetic-chest=PEOPLE,SESSIONS,SEED; may be given again.",
    ),
]
Judged = Annotated[
    list[str] | None, typer.Option("--judge", metavar="READER=FOLDER", help="People to judge on, and never train on.")
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where card, weights and lists of people go.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Instead of the number that the card's training plans.")]
Seed = Annotated[int, typer.Option(help="Decides every random draw.")]
Share = Annotated[float, typer.Option(help="Of the people that are trained on; on the others it is judged.")]


def train(
    card: Annotated[str, typer.Argument(metavar="CARD", help="Such as chest-audit-1.")],
    cohort: Cohorts,
    out: Out,
    judge: Judged = None,
    steps: Steps = None,
    seed: Seed = 0,
    share: Share = 0.6,
) -> int:
    """Train a card on these people. Interrupted, it goes on where it was when started again with the same options."""
    from gateway.learn.training import read_cohort, train
    from models.cards import CardFolder

    cohorts, judged = ([read_cohort(one) for one in texts] for texts in (cohort, judge or []))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as bar:
        task = bar.add_task("reading")
        run = train(
            card,
            cohorts,
            CardFolder.flat(out),
            lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
            steps=steps,
            seed=seed,
            share=share,
            judged=judged,
            keep=out,
        )
    say(f"{run.path}: judged on {run.held_out} people that it was not trained on")
    return 0
