"""`audit` and `audit compare`: how linkable embeddings are, before a release and after an anonymiser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer.core import TyperGroup

from gateway.cli.homes import HomeOption, made_home, named_home, settings_of
from gateway.cli.output import errors, say
from gateway.errors import UsageError

Metadata = Annotated[
    Path, typer.Option("--metadata", metavar="CSV", help="scan, subject; optional session, date, site, dataset, sex …")
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where audit.html and audit.json go.")]
Seed = Annotated[int, typer.Option(help="Decides every random draw: the same seed gives the same figures.")]
Replicates = Annotated[int, typer.Option(min=100, help="Bootstrap draws and permutations of each bound.")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Mark the report: these people do not exist.")]


class _RunByDefault(TyperGroup):
    """`audit FILE …` means `audit run FILE …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or not args else ["run", *args])


app = typer.Typer(
    cls=_RunByDefault, no_args_is_help=True, help="How linkable are these people? Figures with bounds, as a page."
)


@app.command()
def run(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|EMBEDDINGS.npz",
            help="A folder of DICOM (or of a research data set, with --reader); or `scan` names and a (scans, d) array "
            "for each encoder.",
        ),
    ],
    out: Out,
    metadata: Annotated[
        Path | None,
        typer.Option(
            "--metadata",
            metavar="CSV",
            help="For embeddings: scan, subject; optional session, date, site, dataset, sex … For a folder: attributes "
            "by subject.",
        ),
    ] = None,
    card: Annotated[
        list[str] | None,
        typer.Option("--card", help="An encoder, for a folder; again for more. Default: those that fit."),
    ] = None,
    preparation: Annotated[
        list[str] | None,
        typer.Option("--preparation", help="raw, skull-stripped, registered, tissue-mapped; again for more."),
    ] = None,
    reader: Annotated[str, typer.Option("--reader", help="The layout of a research data set; default: DICOM.")] = "",
    home: HomeOption = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    synthetic: Synthetic = False,
) -> int:
    """Linkage, rank-1, inferred attributes, worst people, time gaps and groups, for each encoder."""
    from gateway.audit import Options, measure, read_inputs, write_report

    if not source.exists():
        raise UsageError(f"{source} is not there; name a folder of scans, or a file of embeddings")
    options = Options(seed=seed, replicates=replicates, permutations=replicates - 1, synthetic=synthetic)
    with progress() as tick:
        if source.is_dir():
            data = _embedded(source, home, tick, tuple(card or ()), tuple(preparation or ("raw",)), reader, metadata)
        elif metadata is None:
            raise UsageError("embeddings need --metadata: a CSV that says whose each scan is")
        else:
            data = read_inputs(source, metadata)
        report = measure(data, options, tick)
    _, page = write_report(report, out)
    say(f"{report['people']} people, {report['scans']} scans; open {page}")
    return 0


def _embedded(
    folder: Path,
    home: Path | None,
    tick: Callable[[str, int, int], None],
    cards: tuple[str, ...],
    preparations: tuple[str, ...],
    reader: str,
    metadata: Path | None,
) -> Any:
    from gateway.app.audit_folder import Keeping, Wish, card_folders, embed_folder

    place = made_home(home) if named_home(home) is not None else None
    wish = Wish(cards, preparations, reader, metadata)
    keeping, left_out = Keeping.of(place, settings_of(place)), Counter[str]()
    without: dict[str, str] = {}
    data = embed_folder(
        folder, wish, keeping, card_folders(place), tick, lambda why: left_out.update([why]), without.__setitem__
    )
    for name, why in without.items():
        say(f"left out: {name} ({why})")
    for why, count in sorted(left_out.items()):
        say(f"left out: {count} of the files or slices ({why})")
    return data


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE.npz", help="Embeddings of the originals.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER.npz", help="Of what is released, same scans, same order.")],
    metadata: Metadata,
    out: Out,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    synthetic: Synthetic = False,
) -> int:
    """What an attacker who holds originals still finds: of this very scan, and of another visit."""
    from gateway.audit import Options, compare, read_inputs, write_report

    options = Options(seed=seed, replicates=replicates, permutations=replicates - 1, synthetic=synthetic)
    with progress() as tick:
        report = compare(read_inputs(before, metadata), read_inputs(after, metadata), options, tick)
    _, page = write_report(report, out)
    say(f"{report['people']} people, {report['scans']} scans; open {page}")
    return 0


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as bar:
        task = bar.add_task("reading")
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
