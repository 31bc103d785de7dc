"""`calibrate`: which level of an adjustable anonymiser gives which risk."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from gateway.cli.homes import HomeOption, made_home, named_home
from gateway.cli.output import JsonOption, errors, say, say_json, table
from gateway.cli.train import Tenths
from gateway.errors import UsageError

CardName = Annotated[str, typer.Option("--card", metavar="CARD", help="The anonymiser, such as resynthesis-chest-1.")]
Cohorts = Annotated[
    list[str],
    typer.Option(
        "--cohort",
        metavar="READER=FOLDER",
        help="People like those to come, each with two visits or more; dicom=FOLDER for DICOM; may be given again.",
    ),
]
Target = Annotated[
    float, typer.Option("--target-rank1", min=0.001, max=0.999, help="How often somebody may be found first, at most.")
]
Confidence = Annotated[float, typer.Option(help="Of the bound of each level.")]
Levels = Annotated[str, typer.Option(help="Quantiles r, the weakest first; empty for the usual ones.")]
Attacker = Annotated[
    str, typer.Option(metavar="CARD", help="What fresh attackers start from; that of the modality where none is named.")
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the card goes; else into HOME/models.")]


def calibrate(
    card: CardName,
    cohort: Cohorts,
    target_rank1: Target = 0.05,
    confidence: Confidence = 0.95,
    levels: Levels = "",
    attacker: Attacker = "",
    gallery: Annotated[int, typer.Option(min=2, help="People among whom somebody is looked for.")] = 50,
    steps: Annotated[int | None, typer.Option(min=1, help="Of each attacker's training, instead of its plan.")] = None,
    valid_days: Annotated[int, typer.Option(min=1, help="Days after which the card does not load.")] = 365,
    new_name: Annotated[str, typer.Option("--name", help="Of the calibrated card; a policy names it.")] = "",
    out: Out = None,
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 0,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Train fresh attackers at each level, on people of their own, and write what they find of others into the card.

    A policy may then say `privacy: {target_rank1: ...}`. Ends with 1 when no level keeps the target.
    """
    from gateway.app.audit_folder import card_folders
    from gateway.learn.calibrating import read_calibration
    from gateway.learn.calibrating_risk import LEVELS, Wanted, calibrate_risk
    from gateway.learn.importing import site_folder
    from models.cards import CardFolder

    wanted = Wanted(
        levels=_numbers(levels) or LEVELS,
        confidence=confidence,
        gallery=gallery,
        attacker=attacker,
        steps=steps,
        valid_days=valid_days,
        seed=seed,
    )
    target = CardFolder.flat(out) if out is not None else site_folder(made_home(home).root)
    folders = [*card_folders(named_home(home)), *([CardFolder.flat(out)] if out is not None else [])]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as bar:
        task = bar.add_task("reading")
        told = Tenths()

        def tick(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)
            if not errors.is_terminal and told.is_new(what, done, total):
                errors.print(Text(f"{what}, {done} of {total}"), soft_wrap=True)

        cohorts = [read_calibration(text) for text in cohort]
        today = datetime.now(UTC).date()
        made = calibrate_risk(card, cohorts, folders, target, tick, today=today, wanted=wanted, new_name=new_name)
    found = made.card.calibration
    if found is None:
        raise UsageError(f"{made.path} was written without a calibration")
    keeps = found.meeting(target_rank1)
    if json:
        document = {"card": made.card.name, "path": str(made.path), "target_rank1": target_rank1, "keeps": list(keeps)}
        say_json(document | {"calibration": found.model_dump(mode="json")})
        return 0 if keeps else 1
    rows = [(one.level, one.rank1, one.upper, "yes" if one.level in keeps else "no") for one in found.levels]
    table("Risk by level", ["r", "rank-1", "at most", f"keeps {target_rank1:g}"], rows)
    whose = "synthetic people" if found.synthetic else "people"
    say(
        f"{found.people} {whose} judged among {found.gallery}, {found.auxiliary} for the attackers, {made.left_out} "
        f"left out who were trained on, {made.outside} pictures outside the card's domain"
    )
    say(f"in untouched originals the attackers find {found.untouched:.3f}: a target from there on would be no promise")
    say(f"written: {made.path}, valid until {made.card.valid_until}")
    if keeps:
        say(f"a policy may say privacy: {{target_rank1: {target_rank1:g}}}; it works at r = {keeps[0]:g}")
        return 0
    say(
        f"no level keeps rank-1 at {target_rank1:g} with confidence {confidence:g}: a policy that asks it does not load"
    )
    return 1


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(one) for one in text.split(",") if one.strip())
    except ValueError:
        raise UsageError("--levels takes numbers between 0 and 1, such as 0.95,0.7,0.4") from None
