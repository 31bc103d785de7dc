"""`learn synthesize`: people who do not exist, as DICOM, to send through a gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.cli.output import errors, say

if TYPE_CHECKING:
    from models.cohorts import Cohort

People = Annotated[int, typer.Option("--people", min=1, help="How many people.")]
Sessions = Annotated[int, typer.Option("--sessions", min=1, help="Visits of each.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is drawn: other seed, other people.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="An empty folder; it gets one folder for each series.")]
Difficulty = Annotated[
    str, typer.Option("--difficulty", help="How hard they are to link: easy, medium, hard, or 0 to 1.")
]

Flat = Annotated[float, typer.Option("--difficulty", min=0, max=1, help="How hard they are to link, 0 to 1.")]
Size = Annotated[int, typer.Option("--size", min=64, max=1024, help="Pixels of a side.")]

app = typer.Typer(no_args_is_help=True, help="Cohorts for the learned parts.")
synthesize = typer.Typer(no_args_is_help=True, help="Synthetic people as DICOM series; every patient says SYNTHETIC.")
app.add_typer(synthesize, name="synthesize")


@synthesize.command()
def brains(
    out: Out,
    people: People = 10,
    sessions: Sessions = 2,
    seed: Seed = 0,
    difficulty: Difficulty = "medium",
    spacing_mm: Annotated[float, typer.Option("--spacing", min=0.5, max=12, help="Millimetres between voxels.")] = 2.0,
    sequence: Annotated[
        list[str] | None, typer.Option("--sequence", help="T1, T1c, T2 or FLAIR; may be given again. Default: T1.")
    ] = None,
    sites: Annotated[int, typer.Option("--sites", min=1, help="Scanners with a signature of their own.")] = 3,
    brain_only: Annotated[bool, typer.Option("--brain-only", help="Without skull and scalp.")] = False,
    masks: Annotated[
        bool,
        typer.Option("--masks/--no-masks", help="Segmentations of lesions beside the series; a policy must judge SEG."),
    ] = True,
) -> int:
    """MR series of heads, some with gliomas or plaques, and segmentations of those. Run again to go on."""
    from gateway.errors import UsageError
    from models.cohorts import synthetic_brains

    try:
        cohort = synthetic_brains(
            people,
            sessions,
            seed,
            _level(difficulty),
            sequences=tuple(sequence or ("T1",)),
            spacing_mm=spacing_mm,
            sites=sites,
            head=not brain_only,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    _write(cohort, out, f"difficulty {difficulty}, sites {sites}, brain only {brain_only}", masks=masks)
    return 0


@synthesize.command()
def chest(
    out: Out,
    people: People = 10,
    sessions: Sessions = 2,
    seed: Seed = 0,
    difficulty: Flat = 0.5,
    size: Size = 512,
) -> int:
    """Frontal films (CR) with ribs, heart, vessels, findings and their masks."""
    from models.cohorts import synthetic_chest

    cohort = synthetic_chest(people, sessions, seed, difficulty=difficulty, size=size)
    _write(cohort, out, f"difficulty {difficulty}, size {size}", masks=False)
    return 0


@synthesize.command()
def fundus(
    out: Out,
    people: People = 10,
    sessions: Sessions = 2,
    seed: Seed = 0,
    difficulty: Flat = 0.5,
    size: Size = 512,
) -> int:
    """Photographs of the retina (OP, in colour) with disc, vessels and findings."""
    from models.cohorts import synthetic_fundus

    cohort = synthetic_fundus(people, sessions, seed, difficulty=difficulty, size=size)
    _write(cohort, out, f"difficulty {difficulty}, size {size}", masks=False)
    return 0


def _level(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _write(cohort: Cohort, out: Path, made_by: str, *, masks: bool) -> None:
    from gateway.learn import MASKS, write_dicom

    with _progress() as tick:
        files = write_dicom(cohort, out, masks=MASKS if masks else (), made_by=made_by, tick=tick)
    say(f"{len(cohort.subjects)} synthetic people, {len(cohort)} series, {files} files in {out}")


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as bar:
        task = bar.add_task("series")
        yield lambda done, total: bar.update(task, completed=done, total=total)
