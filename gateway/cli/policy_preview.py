"""`policy preview`: what a policy does to real files, element by element, before and after."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gateway.cli.homes import HomeOption, made_home, named_home, policy_at, settings_of
from gateway.cli.output import console, errors, explain_reasons, plain, say

if TYPE_CHECKING:
    from gateway.app.preview.files import FilePreview
    from gateway.app.preview.rows import Row
    from gateway.policy import Policy

WIDE = 110  # columns from which a row fits beside its reason
STYLES = {"=": "dim", ">": "", "~": "yellow", "0": "magenta", "-": "red", "+": "green"}
LEGEND = "= kept   > changed inside   ~ replaced   0 emptied   - removed   + added"

PolicyArgument = Annotated[
    str, typer.Argument(metavar="POLICY", help="A policy file, or a name in the policies folder.")
]
ProjectOption = Annotated[str, typer.Option(help="Whose pseudonyms, with --home. Default: the policy's name.")]
ItemsOption = Annotated[int, typer.Option("--items", min=1, help="List so many items of one sequence; count the rest.")]


def preview(
    policy: PolicyArgument,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", readable=False, help="DICOM files, or folders that are read to the bottom."),
    ],
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", readable=False, help="Write a page for a browser (mode 0600) instead of the lines here."
        ),
    ] = None,
    changes: Annotated[bool, typer.Option("--changes", help="Leave out what stays as it is.")] = False,
    items: ItemsOption = 40,
    project: ProjectOption = "",
    home: HomeOption = None,
) -> int:
    """Show what a policy does to each element of real files: before, after, and the rule that says so.

    Runs the policy's header, pixel stages and gate; the files are only read, nothing is sent, logged or stored. What is
    shown identifies people: look at it where you may look at the files. Exit 1 when a file would not leave.
    """
    from gateway.app.preview.files import files_of
    from gateway.app.preview.page import preview_page, require_page, write_page

    chosen = policy_at(policy, named_home(home))
    named = files_of(files)
    if html is not None:
        require_page(html, named)
    pictures = html is not None
    found, keyed = previews([(policy, chosen)], named, home=home, project=project, items=items, pictures=pictures)
    if html is not None:
        write_page(html, preview_page(chosen, found[0], keyed=keyed, changes=changes))
        say(f"{html} holds the values of {_count(len(named), 'file')}; delete it when you have read it")
    else:
        say(LEGEND, "bold")
        for one in found[0]:
            _show(one, changes=changes)
    _sum_up(found[0], keyed=keyed)
    return 0 if all(one.leaves for one in found[0]) else 1


def previews(
    policies: Sequence[tuple[str, Policy]],
    files: Sequence[Path],
    *,
    home: Path | None,
    project: str,
    items: int,
    pictures: bool = False,
) -> tuple[list[list[FilePreview]], str]:
    """Previews under each policy, by how it was named, with the same pseudonyms; and whose key makes these."""
    from gateway.app.batch.studies import require_project, tables_beside
    from gateway.app.preview.making import Preview
    from gateway.app.preview.people import PreviewPeople
    from gateway.app.release.references import MODELS
    from gateway.app.workers import Workers
    from gateway.durable import make_folder
    from gateway.observe import silence_libraries

    silence_libraries()
    place = made_home(home) if named_home(home) is not None else None
    settings = settings_of(place)
    project = require_project(project or policies[0][1].name)
    master = secrets.token_bytes(32)
    tables = [tables_beside(reference, settings.policies) for reference, _ in policies]
    models = place.root / MODELS if place is not None else None
    people = [PreviewPeople.of(place, settings, project, folder, master) for folder in tables]
    workers = Workers(min(settings.workers if place is not None else 1, len(files)))
    try:
        with tempfile.TemporaryDirectory(prefix="deid-preview-") as folder, errors.status("de-identifying"):
            found = []
            for number, (_, policy) in enumerate(policies):
                work = make_folder(Path(folder) / str(number))
                shown = Preview(
                    policy, people[number], workers, work, models=models, most_items=items, pictures=pictures
                )
                found.append(shown.of(files))
    finally:
        workers.close()
    return found, people[0].says


def _show(one: FilePreview, *, changes: bool) -> None:
    from gateway.app.preview.rows import Outcome

    say("")
    say(f"{one.file}: {one.kind}", "bold")
    shown = [row for row in one.rows if not (changes and row.outcome is Outcome.KEPT)]
    if shown:
        console.print(_wide(shown) if console.width >= WIDE else _narrow(shown))
    for line in told(one):
        say(f"  {line}")


def told(one: FilePreview) -> Iterator[str]:
    """What there is to say of a file beside its rows."""
    from gateway.app.preview.names import SIGNS, counted

    if one.reason:
        yield f"held: {one.reason}" + (f" at {one.at}" if one.at else "")
        return
    yield ", ".join(f"{one.counts[outcome]} {outcome}" for outcome in SIGNS if one.counts.get(outcome))
    for step in one.steps[1:]:
        yield f"pixel stage {step.stage}: {counted(step)}"
    if one.held_by is not None:
        yield f"held with its study, because of {one.held_by}"
    elif one.gate_reason:
        yield f"held by the gate: {one.gate_reason}" + (f" at {one.gate_at}" if one.gate_at else "")
    else:
        yield "cleared by the gate"


def _value(row: Row) -> Table | Text:
    """Before and after, each on lines of its own where they differ."""
    from gateway.app.preview.rows import Outcome

    if row.outcome in (Outcome.KEPT, Outcome.INSIDE):
        return Text(plain(row.before or ""))
    both = Table.grid(padding=(0, 1, 0, 0))
    both.add_column(no_wrap=True)
    both.add_column(overflow="fold")
    for sign, value in (("-", row.before), ("+", row.after)):
        if value or (value is not None and row.outcome is not Outcome.EMPTIED):
            both.add_row(Text(sign, STYLES[sign]), Text(plain(value), STYLES[sign]))
    return both


def _wide(rows: Iterable[Row]) -> Table:
    from gateway.app.preview.names import SIGNS, name_of, tag_text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.expand = True
    for share in (None, None, 5, None, 8, None, 6):  # sign, tag, attribute, VR, values, code, why
        grid.add_column(ratio=share, overflow="fold", no_wrap=share is None)
    for row in rows:
        sign = SIGNS[row.outcome]
        tag = name_of(row) if row.number else tag_text(row.tag)
        name = "" if row.number else plain(name_of(row))
        cells = [sign, " " * row.depth + tag, name, row.vr.partition(" ")[0]]
        grid.add_row(*(Text(cell, STYLES[sign]) for cell in cells), _value(row), Text(row.code), Text(row.why, "dim"))
    return grid


def _narrow(rows: Iterable[Row]) -> Table:
    from gateway.app.preview.names import SIGNS, name_of, tag_text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        sign = SIGNS[row.outcome]
        label = "" if row.number else f"{tag_text(row.tag)} {row.vr.partition(' ')[0]} "
        name = Text(f"{label}{plain(name_of(row))}", STYLES[sign])
        why = Text(" ".join(part for part in (row.code, row.why) if part), "dim")
        shown: list[RenderableType] = [name]
        if row.before or row.after:
            shown.append(Padding(_value(row), (0, 0, 0, 2)))
        if why.plain:
            shown.append(Padding(why, (0, 0, 0, 2)))
        grid.add_row(Text(sign, STYLES[sign]), Padding(Group(*shown), (0, 0, 0, row.depth)))
    return grid


def _sum_up(found: Sequence[FilePreview], *, keyed: str) -> None:
    held = sum(not one.leaves for one in found)
    say("")
    say(f"{_count(len(found), 'file')}: {len(found) - held} would leave, {held} would be held; {keyed}")
    explain_reasons(reason for one in found for reason in (one.reason, one.gate_reason))


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
