"""`models import|list|show|calibrate|measures`: the learned parts of this gateway, and weights that a site brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gateway.cli.homes import HomeOption, made_home, named_home
from gateway.cli.output import JsonOption, errors, plain, say, say_json, table
from gateway.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.cards import Card, CardFolder

app = typer.Typer(help="Learned parts: their cards, and weights that you bring.", no_args_is_help=True)

CardName = Annotated[str, typer.Argument(metavar="CARD", help="Its name, as `models list` shows it.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the card, such as fold=3 or prepared=turboprep."),
]


@app.command(name="import")
def import_card(
    name: CardName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The checkpoint as its owner publishes it.")],
    home: HomeOption = None,
    set_: Settings = None,
    new_name: Annotated[str, typer.Option("--name", help="Of the site's card; else that of CARD.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite the site's card of that name.")] = False,
    json: JsonOption = False,
) -> int:
    """Convert a published checkpoint once: nothing in it is run, every tensor is checked, a card goes to HOME/models.

    Do it on a machine without network, and with three times the memory that the file takes on disk.
    """
    from gateway.learn.importing import import_weights

    place = made_home(home)
    with _steps() as told:
        made = import_weights(
            name,
            file,
            place.root,
            settings=_settings(set_ or []),
            today=datetime.now(UTC).date(),
            new_name=new_name,
            replace=replace,
            told=told,
        )
    found = made.converted
    if json:
        say_json(
            {
                "card": made.card.name,
                "path": str(made.path),
                "container": found.container,
                "dropped": dict(found.dropped),
                "inert": list(found.inert),
                "tensors": len(found.tensors),
                "parameters": found.parameters,
            }
        )
        return 0
    say(f"{file}: a {found.container}, tensors under {found.path or 'the file itself'}")
    say(f"taken off the names: {', '.join(found.stripped) or 'nothing'}")
    say(f"left out: {', '.join(f'{head}* ({count})' for head, count in found.dropped.items()) or 'nothing'}")
    say(f"not run: {', '.join(found.inert) or 'nothing'}")
    say(f"{len(found.tensors)} tensors, {found.parameters:,} parameters, as the card expects")
    say(f"written: {made.path}; name it in a policy as {made.card.name}")
    for limit in (made.card.limits, f"licence: {made.card.licence}"):
        say(limit)
    return 0


@app.command()
def calibrate(
    name: CardName,
    cohort: Annotated[
        list[str],
        typer.Option(
            "--cohort",
            metavar="READER=FOLDER",
            help="People like those to be judged, 200 and more; dicom=FOLDER for DICOM; may be given again.",
        ),
    ],
    home: HomeOption = None,
    new_name: Annotated[str, typer.Option("--name", help="Of the site's card; a policy names it.")] = "",
    valid_until: Annotated[
        datetime | None, typer.Option("--valid-until", formats=["%Y-%m-%d"], help="After it the card does not load.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides who is set against whom.")] = 0,
) -> int:
    """Let a card judge single studies (`same_scan`): how near people lie whom it was not trained on."""
    from gateway.learn.calibrating import calibrate, read_calibration
    from gateway.learn.importing import site_folder

    place = made_home(home)
    with _steps() as told:
        made = calibrate(
            name,
            [read_calibration(text) for text in cohort],
            _folders(home),
            site_folder(place.root),
            lambda what, done, total: told(f"{what}: {done} of {total}"),
            new_name=new_name,
            valid_until=valid_until.date() if valid_until is not None else None,
            seed=seed,
        )
    people = made.card.impostors.people if made.card.impostors is not None else 0
    say(f"written: {made.path}: {people} people, {made.left_out} left out whom {name} was trained on")
    say(f"name it in a policy as {made.card.name}: gate, study, same_scan")
    return 0


@app.command(name="list")
def list_cards(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every card, what ships first: what it is for, and whether its weights are there."""
    folders = _folders(home)
    names = dict.fromkeys(path.stem for folder in folders for path in sorted(folder.cards.glob("*.yaml")))
    cards = [_card(name, folders) for name in names]
    rows = [(card.name, card.role, "/".join(card.modalities), card.dimensions, _state(card)) for card, _ in cards]
    if json:
        keys = ("card", "role", "modalities", "dimensions", "weights")
        say_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        table("Cards", ["card", "role", "modality", "dimensions", "weights"], rows, keyed=True)
    return 0


@app.command()
def show(name: CardName, home: HomeOption = None, json: JsonOption = False) -> int:
    """One card in full: on whom it was trained, what it was measured at, its limits, its licence."""
    card, folder = _card(name, _folders(home))
    document: dict[str, Any] = card.model_dump(mode="json", exclude_none=True)
    if json:
        say_json(document)
        return 0
    table(card.name, ["", ""], [(key, _shown(value)) for key, value in document.items() if key != "name"], keyed=True)
    say(f"weights: {_state(card)}; {folder.cards / (card.name + '.yaml')}")
    return 0


@app.command()
def measures(
    subjects: Annotated[Path, typer.Argument(metavar="SUBJECTS_DIR", help="FreeSurfer's, one folder a scan.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="For `audit`.")],
    by_head: Annotated[bool, typer.Option("--by-head", help="Divide by intracranial volume (area: ^2/3).")] = False,
) -> int:
    """Embeddings without a network: FreeSurfer's fifteen measures, and AnatCL's three descriptors, of every subject."""
    import numpy as np

    from gateway.durable import writing
    from models.audit_encoders.freesurfer import measures_of
    from models.audit_encoders.freesurfer_stats import StatsError

    folders = sorted(path.parent for path in subjects.glob("*/stats") if path.is_dir())
    if not folders:
        raise UsageError(f"{subjects}: no folder in it has stats; name recon-all's SUBJECTS_DIR")
    try:
        found = [measures_of(folder, by_head=by_head) for folder in folders]
    except StatsError as error:
        raise UsageError(str(error)) from None
    arrays = {name: np.stack([one[name] for one in found]) for name in found[0]}
    with writing(out.absolute()) as file:
        np.savez(file, scan=np.array([folder.name for folder in folders]), **arrays)  # type: ignore[arg-type]
    say(f"{len(folders)} scans: {out}; next: deid-gateway audit {out} --metadata CSV --out DIR")
    return 0


def _settings(given: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    wrong = [text for text, (name, equals, value) in zip(given, pairs, strict=True) if not (name and equals and value)]
    if wrong or len({name for name, _, _ in pairs}) < len(pairs):
        raise UsageError("--set takes NAME=VALUE, each name once")
    return {name: value for name, _, value in pairs}


def _folders(home: Path | None) -> list[CardFolder]:
    from gateway.learn.importing import site_folder
    from models.cards import SHIPPED

    place = named_home(home)
    return [SHIPPED, *([site_folder(place.root)] if place is not None else [])]


def _card(name: str, folders: list[CardFolder]) -> tuple[Card, CardFolder]:
    from models.cards import CardError, find_card

    try:
        return find_card(name, folders)
    except CardError as error:
        raise UsageError(str(error)) from None


def _state(card: Card) -> str:
    if card.imported is not None:
        return f"imported {card.imported.on}"
    if card.weights is not None:
        return "there"
    return f"bring {' or '.join(card.published.files)}" if card.published is not None else "needs none"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_shown(one)}" for key, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@contextmanager
def _steps() -> Iterator[Callable[[str], None]]:
    """A spinner with the step under way, on stderr."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("")
        yield lambda step: progress.update(task, description=plain(step))
