"""What rows of a preview are called: tags as PS3.6 writes them, keywords, and names of private attributes."""

from __future__ import annotations

from pydicom.datadict import private_dictionary_description

from gateway.app.preview.rows import PREAMBLE, Outcome, Row
from gateway.header.dictionary import dictionary, is_private, repeating_form
from gateway.policy.private_lists import creator_key, load_safe_private
from gateway.study import Step

# One sign for each outcome, so that nothing is told by colour alone.
SIGNS = {
    Outcome.KEPT: "=",
    Outcome.INSIDE: ">",
    Outcome.REPLACED: "~",
    Outcome.EMPTIED: "0",
    Outcome.REMOVED: "-",
    Outcome.ADDED: "+",
}


def counted(step: Step) -> str:
    """What a stage says that it did, in numbers."""
    return ", ".join(f"{count} {name}" for name, count in sorted(step.counts.items())) or "nothing to do"


def tag_text(tag: int) -> str:
    """(gggg,eeee)."""
    return f"({tag >> 16:04X},{tag & 0xFFFF:04X})"


def name_of(row: Row) -> str:
    """What the row is about, in one or a few words."""
    if row.number:
        return f"item {row.number}" if row.number > 0 else "more items"
    if row.path == PREAMBLE:
        return "preamble"
    if is_private(row.tag):
        return _private(row)
    entry = dictionary().get(row.tag)
    if entry is not None:
        return entry.keyword or "unnamed, retired"
    if not row.tag & 0xFFFF:
        return "group length"
    return {"50xx": "curve", "60xx": "overlay"}.get(repeating_form(row.tag), "not in PS3.6")


def _private(row: Row) -> str:
    if 0x10 <= row.tag & 0xFFFF <= 0xFF:
        return "private creator"
    if not row.creator:
        return "private, of nobody"
    safe = load_safe_private().get((creator_key(row.creator), row.tag >> 16, row.tag & 0xFF))
    if safe is not None and safe.meaning:
        return f"{row.creator}: {safe.meaning}"
    try:
        return f"{row.creator}: {private_dictionary_description(row.tag, row.creator)}"
    except KeyError:
        return f"{row.creator}: unknown"
