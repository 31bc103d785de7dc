"""One object's header before and after, for a reviewer's screen: the rows of `policy preview`. Runs in a worker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.app.preview.names import SIGNS, name_of, tag_text
from gateway.app.preview.reasons import PolicyReasons
from gateway.app.preview.rows import Comparison, Row
from gateway.app.preview.sides import Side
from gateway.app.preview.values import legible
from gateway.app.tasks import policy_of
from gateway.header.admission import SOP_CLASS
from gateway.review.desk import HeaderLine

PIXELS_OR_SO = frozenset({"7FE00008", "7FE00009", "7FE00010", "00280301"})


def header_lines(original: Path, candidate: Path, snapshot: str) -> list[HeaderLine]:
    """Every element, with why it became what it is. Raises Hold for a file that cannot be read whole, OSError."""
    sop_class = bytes(Side.of_file(original).value((SOP_CLASS, 0)) or b"").decode("latin-1").strip(" \0")
    policy = policy_of(snapshot)
    lines = [line_of(row) for row in Comparison(PolicyReasons(policy, sop_class)).rows(original, candidate)]
    stages = ", ".join(name for name, _ in policy.pixels)
    why = f"pixel stages of the policy: {stages}; or a box that was drawn" if stages else "a box that was drawn"
    return [replace(line, code="", why=why) if _is_of_pixels(line) else line for line in lines]


def _is_of_pixels(line: HeaderLine) -> bool:
    """What header rules leave alone, and stages and drawn boxes change."""
    return line.path in PIXELS_OR_SO and line.outcome != "kept"


def original_lines(original: Path) -> list[HeaderLine]:
    """The same for an object that nothing was made of yet: every element as it came."""
    return [line_of(row, alone=True) for row in Comparison(_Nothing()).rows(original, original)]


class _Nothing:
    """Nothing was decided, so nothing is explained."""

    def of_element(self, _row: Row, _place: object) -> tuple[str, str]:
        return "", ""

    def of_item(self, _row: Row, _place: object) -> tuple[str, str]:
        return "", ""


def line_of(row: Row, *, alone: bool = False) -> HeaderLine:
    return HeaderLine(
        path=row.path,
        depth=row.depth,
        sign="?" if alone else SIGNS[row.outcome],
        outcome="as it came" if alone else str(row.outcome),
        tag="" if row.number else tag_text(row.tag),
        name=legible(name_of(row)),
        vr=row.vr,
        before=legible(row.before or ""),
        after="" if alone else legible(row.after or ""),
        code=row.code,
        why=row.why,
    )
