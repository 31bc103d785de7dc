"""`train`: a learned part of one's own data, judged on people that it was not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from gateway.cli.homes import HomeOption, named_home
from gateway.cli.output import errors, say
from gateway.errors import UsageError

if TYPE_CHECKING:
    from models.train.trained import Privacy

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
Steps = Annotated[int | None, typer.Option(min=0, help="Instead of the number that the card's training plans.")]
Start = Annotated[
    str,
    typer.Option(metavar="CARD", help="Go on from its weights; with --steps 0 only what stands beside the network."),
]
Seed = Annotated[int, typer.Option(help="Decides every random draw.")]
Share = Annotated[float, typer.Option(help="Of the people that are trained on; on the others it is judged.")]
Epsilon = Annotated[
    float | None,
    typer.Option(metavar="EPSILON", help="Differential privacy of each patient trained on (DP-SGD); needs opacus."),
]
Delta = Annotated[float | None, typer.Option(help="Its delta, below one over the number of people. Without: 1e-5.")]
Clip = Annotated[float | None, typer.Option(help="Norm that one patient's gradient is clipped to. Without: 1.")]


class Tenths:
    """For logs, where a bar cannot be drawn: true at the beginning of each part, and at each tenth of it."""

    def __init__(self) -> None:
        self._last = ("", -1)

    def is_new(self, what: str, done: int, total: int) -> bool:
        now = what.partition(":")[0], 10 * done // max(total, 1)
        new, self._last = now != self._last, now
        return new


def train(
    card: Annotated[str, typer.Argument(metavar="CARD", help="Such as chest-audit-1, or reid for reid-chest-1.")],
    cohort: Cohorts,
    out: Out,
    judge: Judged = None,
    steps: Steps = None,
    seed: Seed = 0,
    share: Share = 0.6,
    start: Start = "",
    dp_epsilon: Epsilon = None,
    dp_delta: Delta = None,
    dp_clip: Clip = None,
    home: HomeOption = None,
) -> int:
    """Train a card on these people. Interrupted, it goes on where it was when started again with the same options.

    Where no terminal shows a bar, a line is written for each tenth of each part.
    """
    from gateway.app.audit_folder import card_folders
    from gateway.learn.training import read_cohort, train
    from models.cards import CardFolder
    from models.train import entry_of

    cohorts, judged = ([read_cohort(one) for one in texts] for texts in (cohort, judge or []))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as bar:
        task = bar.add_task("reading")
        told = Tenths()

        def tick(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)
            if not errors.is_terminal and told.is_new(what, done, total):
                errors.print(Text(f"{what}, {done} of {total}"), soft_wrap=True)

        run = train(
            entry_of(card),
            cohorts,
            CardFolder.flat(out),
            tick,
            steps=steps,
            seed=seed,
            share=share,
            judged=judged,
            keep=out,
            start=start,
            folders=card_folders(named_home(home)),
            privacy=_privacy(dp_epsilon, dp_delta, dp_clip),
        )
    say(f"{run.path}: judged on {run.held_out} people that it was not trained on")
    if run.card.privacy is not None:
        said = run.card.privacy
        say(f"each of {said.people} patients: epsilon {said.epsilon:.3g} at delta {said.delta:g}")
        say(f"{out}: checkpoints hold the key of the noise; remove them before anybody else gets the folder")
    return 0


def _privacy(epsilon: float | None, delta: float | None, clip: float | None) -> Privacy | None:
    """Raises UsageError."""
    if epsilon is None:
        if delta is not None or clip is not None:
            raise UsageError("--dp-delta and --dp-clip go with --dp-epsilon")
        return None
    from models.train.trained import Privacy

    try:
        return Privacy(epsilon, 1e-5 if delta is None else delta, 1.0 if clip is None else clip)
    except ValueError as error:
        raise UsageError(str(error)) from None
