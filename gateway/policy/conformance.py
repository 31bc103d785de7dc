"""A conformance statement as a document: sections of paragraphs, lists and tables, written as Markdown.

What the document says is put together above, where the rooms are that do what it describes (PS3.15 E.1.1, last list).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; every row has as many cells as there are headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = str | Listing | Grid


@dataclass(frozen=True, slots=True)
class Section:
    """A section with its number ("3", "3.1") and blocks; a paragraph is plain text."""

    number: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A whole statement."""

    title: str
    sections: tuple[Section, ...]


def numbered(titled: Sequence[tuple[str, Sequence[Block]]], *, under: str = "") -> list[Section]:
    """Sections with running numbers."""
    return [Section(f"{under}{number}", title, tuple(blocks)) for number, (title, blocks) in enumerate(titled, 1)]


def markdown(statement: Statement) -> str:
    """The statement in CommonMark with tables. What is in it shows as text, whatever characters it holds."""
    lines = [f"# {_text(statement.title)}", ""]
    for section in statement.sections:
        level = "#" * (2 + section.number.count("."))
        lines += [f"{level} {section.number} {_text(section.title)}", ""]
        for block in section.blocks:
            lines += [*_block(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, str):
        yield _text(block)
    elif isinstance(block, Listing):
        yield from (f"- {_text(item)}" for item in block.items)
    else:
        yield f"| {' | '.join(map(_text, block.headings))} |"
        yield f"|{'---|' * len(block.headings)}"
        yield from (f"| {' | '.join(map(_text, row))} |" for row in block.rows)


def _text(text: str) -> str:
    """`text` on one line, with the characters that mean something in Markdown or HTML escaped."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))
