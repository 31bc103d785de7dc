"""`text review`: which words of descriptions a site might allow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.output import JsonOption, complain, say, say_json, table
from gateway.errors import UsageError

if TYPE_CHECKING:
    from gateway.policy import HeaderPolicy

app = typer.Typer(help="The words of descriptions and comments (option clean-descriptors).", no_args_is_help=True)


@app.command()
def review(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="SRC...", readable=False, help="Files, or folders that are read to the bottom."),
    ],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", readable=False, help="A policy file; the words that it allows already are left out."),
    ] = None,
    least: Annotated[int, typer.Option("--least", min=1, help="Leave out words of fewer files.")] = 1,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show so many words; --json tells of all.")] = 100,
    json: JsonOption = False,
) -> int:
    """Show the words that cleaning masks only because no list knows them.

    What is technical among them may go into the policy's own list (header.descriptors.allow_list), one word a line. The
    words come from original objects and may be somebody's names: look at every one. Nothing is stored.
    """
    from gateway.header.descriptors_review import review as reviewed
    from gateway.observe import silence_libraries

    silence_libraries()
    header = _header(policy)
    found = reviewed(_files(sources), header)
    shown = [candidate for candidate in found.candidates if candidate.files >= least]
    if json:
        words = [
            {"word": one.word, "files": one.files, "times": one.times, "attributes": list(one.attributes)}
            for one in shown
        ]
        say_json({"read": found.read, "unread": found.unread, "words": words})
        return 0
    if shown:
        rows = [(one.word, one.files, one.times, ", ".join(one.attributes)) for one in shown[:limit]]
        table("Words that no list knows", ["word", "files", "times", "in"], rows)
    if len(shown) > limit:
        say(f"{len(shown) - limit} more words; --limit shows more, --json all")
    say(f"{len(shown)} words in {found.read} files; check each: it may be a name")
    if found.unread:
        complain(f"{found.unread} files could not be read as DICOM objects and were left out")
    return 0


def _header(path: Path | None) -> HeaderPolicy:
    """The header part of a policy file. Raises UsageError for one that does not clean descriptors."""
    from gateway.app.policy.registry import REGISTRY
    from gateway.policy import HeaderPolicy, load_policy
    from gateway.policy.model import CLEAN_DESCRIPTORS

    if path is None:
        return HeaderPolicy(options=frozenset({CLEAN_DESCRIPTORS}))
    header = load_policy(path, REGISTRY).header
    if CLEAN_DESCRIPTORS not in header.options:
        raise UsageError(f"{path} does not clean descriptions; add the option {CLEAN_DESCRIPTORS}")
    return header


def _files(sources: list[Path]) -> Iterator[Path]:
    """Regular files, folders to the bottom, links not followed. Raises UsageError for a source that is not there."""
    missing = [source for source in sources if not source.exists()]
    if missing:
        raise UsageError(f"{missing[0]} does not exist")
    for source in sources:
        if not source.is_dir():
            yield source
            continue
        for folder, folders, names in os.walk(source):
            folders.sort()
            paths = (Path(folder) / name for name in sorted(names))
            yield from (path for path in paths if path.is_file() and not path.is_symlink())
