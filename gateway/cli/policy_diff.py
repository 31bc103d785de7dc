"""`policy diff`: what changes from one policy to another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from gateway.cli.homes import HomeOption, named_home, policy_at
from gateway.cli.output import JsonOption, console, explain_reasons, plain, say, say_json
from gateway.cli.policy_preview import ItemsOption, ProjectOption, previews

if TYPE_CHECKING:
    from gateway.app.policy.difference import FileChange, TagChange
    from gateway.app.preview.rows import Row
    from gateway.policy.difference import SectionChange

MAX_CHARACTERS = 120  # of one key's value; --json tells all
SHOWN = 24  # attributes of one kind of change; --tags lists all


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="A policy file, or a name in the policies folder.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The policy to compare it with.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", readable=False, help="DICOM files or folders: compare the results too."),
    ] = None,
    tags: Annotated[bool, typer.Option(help="List every attribute that is treated otherwise.")] = False,
    items: ItemsOption = 40,
    project: ProjectOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Say what changes from policy A to policy B: section by section, attribute by attribute, and for real files.

    Lines with - hold for A alone, lines with + for B alone. With files, both policies run on them with the same
    pseudonyms; the values shown identify people. Exit 1 when a file would not leave under A or B.
    """
    from gateway.app.policy.difference import file_changes, tag_changes
    from gateway.app.preview.files import files_of
    from gateway.policy.difference import differences

    old, new = (policy_at(name, named_home(home)) for name in (first, second))
    sections, attributes = differences(old, new), tag_changes(old.header, new.header)
    results: list[FileChange] = []
    keyed, held, count = "", False, 0
    if files:
        named = files_of(files)
        found, keyed = previews([(first, old), (second, new)], named, home=home, project=project, items=items)
        results = list(file_changes(*found))
        held = not all(one.leaves for side in found for one in side)
        count = len(named)
    if json:
        say_json(_document(sections, attributes, results))
        return 1 if held else 0
    if old.digest == new.digest:
        say("the two policies say the same")
    _show_sections(sections)
    _show_tags(attributes, SHOWN if not tags else None)
    if files:
        _show_results(results)
        say("")
        say(f"{len(results)} of {count} files come out otherwise; {keyed}")
        explain_reasons(reason for change in results for reason in (change.old, change.new))
    return 1 if held else 0


def _show_sections(sections: Sequence[SectionChange]) -> None:
    for change in sections:
        say(f"\n{change.section}", "bold")
        for line in change.gone:
            say(f"- {line}", "red")
        for line in change.come:
            say(f"+ {line}", "green")
        for key in change.keys:
            say(f"    {key.key}: {_short(key.old)} -> {_short(key.new)}", "dim")


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


def _show_tags(changes: Sequence[TagChange], most: int | None) -> None:
    if changes:
        total = sum(len(change.attributes) for change in changes)
        say(f"\nattributes treated otherwise: {total}", "bold")
    for change in changes:
        say(f"- {change.old}", "red")
        say(f"+ {change.new}", "green")
        words = [f"({tag[:4]},{tag[4:]}) {keyword}".rstrip() for tag, keyword in change.attributes[:most]]
        left = len(change.attributes) - len(words)
        say(
            f"    {len(change.attributes)}: {', '.join(words)}" + (f", and {left} more (--tags)" if left else ""), "dim"
        )


def _show_results(changes: Sequence[FileChange]) -> None:
    from gateway.app.preview.names import name_of, tag_text

    for change in changes:
        say(f"\n{change.file}", "bold")
        if change.old != change.new:
            say(f"- {_verdict(change.old)}", "red")
            say(f"+ {_verdict(change.new)}", "green")
        for element in change.elements:
            row = element.new or element.old
            if row is None:
                continue
            inside = f" in {element.path.rpartition('/')[0]}" if "/" in element.path else ""
            say(
                f"  {tag_text(row.tag)} {name_of(row)}{inside}: {row.before if row.before is not None else 'not there'}"
            )
            for sign, side, style in (("-", element.old, "red"), ("+", element.new, "green")):
                console.print(Text(f"    {sign} {plain(_side(side))}", style), soft_wrap=True)


def _verdict(reason: str) -> str:
    return f"held: {reason}" if reason else "would leave"


def _side(row: Row | None) -> str:
    if row is None:
        return "not there"
    value = f"{row.outcome}: {row.after}" if row.after else str(row.outcome)
    why = " ".join(part for part in (row.code, row.why) if part)
    return f"{value} ({why})" if why else value


def _document(
    sections: Sequence[SectionChange], attributes: Sequence[TagChange], results: Sequence[FileChange]
) -> dict[str, object]:
    return {
        "sections": [
            {
                "section": change.section,
                "only_first": list(change.gone),
                "only_second": list(change.come),
                "keys": [{"key": key.key, "first": key.old, "second": key.new} for key in change.keys],
            }
            for change in sections
        ],
        "attributes": [
            {"tag": tag, "keyword": keyword, "first": change.old, "second": change.new}
            for change in attributes
            for tag, keyword in change.attributes
        ],
        "files": [
            {
                "file": str(change.file),
                "first": change.old,
                "second": change.new,
                "elements": [
                    {
                        "path": element.path,
                        "before": next((row.before for row in (element.old, element.new) if row), None),
                        "first": element.old.after if element.old else None,
                        "second": element.new.after if element.new else None,
                    }
                    for element in change.elements
                ],
            }
            for change in results
        ],
    }
