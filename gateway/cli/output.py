"""How commands speak: rich tables for people, one JSON document for scripts, complaints on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from gateway.errors import UsageError
from gateway.settings import Home

PIPED_WIDTH = 140  # columns of a table that goes to a file or a pipe

console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
errors = Console(stderr=True)

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="The gateway's home folder; else DEID_HOME.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
ActorOption = Annotated[str, typer.Option("--by", help="Your name or role; it goes to the ledger.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", help="Why; it goes to the ledger. Write no patient's name or number here.")
]


def complain(text: str) -> None:
    """One message on stderr."""
    errors.print(f"[bold red]error:[/] {_plain(text)}", highlight=False, soft_wrap=True)


def say(text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def say_json(document: Any) -> None:
    """The document on stdout, and nothing else."""
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table; long cells wrap. The title says what the rows are."""
    made = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(_plain(str(cell)) for cell in row))
    console.print(made)


def find_home(given: Path | None) -> Home:
    """The home named by --home or DEID_HOME. Raises UsageError when neither is there."""
    path = given or (Path(os.environ["DEID_HOME"]) if os.environ.get("DEID_HOME") else None)
    if path is None:
        raise UsageError("which home? name it with --home or DEID_HOME; `deid-gateway init HOME` makes one")
    return Home(path.expanduser().absolute())


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
