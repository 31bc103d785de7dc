"""Boxes that a person drew over a picture, redacted on every frame (PS3.15 E.3.1, Clean Pixel Data Option).

No policy names this: a reviewer does, for one study. What was drawn is an estimate like any other, stored before it is
used, and applied before the stages of the policy, so that what they then look at is what a person left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gateway.durable import sync_file, sync_folder
from gateway.errors import Hold
from gateway.frames import Box, Changes, EncodedImage, redact
from gateway.frames.boxes import EVERY_FRAME
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.study import Step

NAME = "drawn_boxes"
CLEAN_PIXEL_DATA = ("113101", "DCM", "Clean Pixel Data Option")
# BurnedInAnnotation stays as it is: who drew a box does not say that nothing else is burned in.
CLEANED = Changes(method_codes=(CLEAN_PIXEL_DATA,))


@dataclass(frozen=True)
class DrawnBoxes:
    """`boxes` are (top, left, bottom, right) in pixels, half open; each goes on every frame of its object."""

    VERSION: ClassVar[str] = "1"
    SCOPE: ClassVar[Scope] = Scope.INSTANCE

    boxes: tuple[tuple[int, int, int, int], ...]

    def describe(self) -> str:
        return f"Boxes drawn by a reviewer: redacts {len(self.boxes)} on every frame."

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:  # noqa: ARG002 - a person looked, not we
        """What was drawn."""
        return Estimate({"boxes": [list(box) for box in sorted(set(self.boxes))]})

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:  # noqa: ARG002
        """Redact. Raises Hold for pixels that cannot be decoded or written, and for a box that lies beyond them."""
        boxes = [Box(EVERY_FRAME, *box) for box in estimate.facts["boxes"]]
        return [self._redacted(instance, boxes) for instance in group]

    def _redacted(self, instance: Instance, boxes: Sequence[Box]) -> Step:
        with EncodedImage.open(instance.candidate) as image:
            frames, rows, columns = image.frames, image.rows, image.columns
        if not frames or not boxes:
            return Step(NAME, self.VERSION)
        if not all(0 <= box.top < box.bottom <= rows and 0 <= box.left < box.right <= columns for box in boxes):
            raise Hold("stage_failed", at="a drawn box that is not on the picture")  # cut to it, it would clean less
        redact(instance.candidate, instance.candidate, boxes, CLEANED)
        sync_file(instance.candidate)
        sync_folder(instance.candidate.parent)
        return Step(NAME, self.VERSION, {"boxes": len(boxes), "frames": frames})
