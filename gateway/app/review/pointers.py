"""Where a finding of the gate points: a frame, a box on it, or an element. Read off its place, which holds no value."""

from __future__ import annotations

import re

from gateway.review.desk import Box, Pointer
from gateway.study import Finding

_FRAME = re.compile(r"\bframe (\d{1,7})\b")
_BOX = re.compile(r"\brows (\d{1,7})-(\d{1,7}) columns (\d{1,7})-(\d{1,7})\b")
_TAGS = re.compile(r"\(([0-9a-fA-F]{4}),([0-9a-fA-F]{4})\)(?:\[(\d+)\])?")


def pointer(finding: Finding) -> Pointer:
    """Frames of findings count from 0; "every frame" points to the first."""
    frame = _FRAME.search(finding.where)
    box = _BOX.search(finding.where)
    on_every = "every frame" in finding.where
    return Pointer(
        check=finding.check,
        rule=finding.rule,
        name=finding.instance,
        where=finding.where,
        frame=int(frame[1]) if frame else 0 if on_every or box else None,
        box=_sides(box) if box else None,
        path=path_of(finding.where),
    )


def _sides(found: re.Match[str]) -> Box:
    top, bottom, left, right = map(int, found.groups())
    return top, left, bottom, right


def path_of(where: str) -> str:
    """`(0040,0275)[0].(0010,0010)`, items from 0, as the header lists it, items from 1: 00400275[1]/00100010; "" for a
    place that is no element.
    """
    head = where.split(" ", 1)[0]
    parts = _TAGS.findall(head)
    steps = [f"{group}{element}".upper() + (f"[{int(item) + 1}]" if item else "") for group, element, item in parts]
    return "/".join(steps)
