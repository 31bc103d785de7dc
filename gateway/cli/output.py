"""How commands speak: rich tables for people, one JSON document for scripts, complaints on stderr.

Whatever is printed is text, never markup, and unprintable characters are replaced: a file name may hold anything.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.errors import REASONS

PIPED_WIDTH = 140  # columns of a table that goes to a file or a pipe

console = Console(width=None if (sys.stdout and sys.stdout.isatty()) or os.environ.get("COLUMNS") else PIPED_WIDTH)
errors = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
ActorOption = Annotated[str, typer.Option("--by", help="Your name or role; it goes to the ledger.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", help="Why; it goes to the ledger. Write no patient's name or number here.")
]


def complain(text: str) -> None:
    """One message on stderr."""
    errors.print(Text.assemble(("error: ", "bold red"), plain(text)), soft_wrap=True)


def say(text: str, style: str = "") -> None:
    """One message on stdout; long lines are left to the terminal."""
    console.print(Text(plain(text), style), soft_wrap=True)


def say_json(document: Any) -> None:
    """The document on stdout, and nothing else."""
    typer.echo(json.dumps(document, indent=1))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, keyed: bool = False) -> None:
    """A table; long cells wrap, but not those of the first column where it holds keys that a person copies."""
    made = Table(title=title, title_justify="left", header_style="bold", show_header=any(columns))
    for i, column in enumerate(columns):
        made.add_column(column, overflow="fold", no_wrap=keyed and i == 0)
    for row in rows:
        made.add_row(*(Text(plain(str(cell)).replace("\n", "?")) for cell in row))
    console.print(made)


def explain_reasons(codes: Iterable[str]) -> None:
    """What each of these reason codes means and what to do, one line each."""
    for code in sorted(set(codes) & REASONS.keys()):
        say(f"  {code}: {REASONS[code].says}; {REASONS[code].hint}")


def plain(text: str) -> str:
    """Printable characters and line ends; others, also halves of undecodable bytes in file names, become "?"."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
