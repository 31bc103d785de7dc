"""Faces and ears taken out of head volumes: MR, CT and PET, single slices and enhanced multi-frame.

One volume of each frame of reference is aligned with a template head; what the alignment says is measured
(`head_evidence`), and the same mask then lies over every frame that has a place in that frame of reference, localisers
and segmentations too. The brain and what is near it is never touched. A volume that by this evidence is no head passes
untouched; where the evidence is in doubt the study is held. What has no place (screenshots, renderings, drawn
contours) cannot be masked and follows `uncovered`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gateway.durable import writing
from gateway.errors import Hold
from gateway.frames import Changes, EncodedImage, change_header, replace_frames
from gateway.pixels.deface_fill import Fill, Levels, Mode, as_stored, blurred
from gateway.pixels.deface_find import find_heads
from gateway.pixels.deface_mask import Mask
from gateway.pixels.deface_study import Pixels, survey
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.study import Step
from gateway.volumes import Plane, Stack, read

NAME = "deface"
METHOD = ("113102", "DCM", "Clean Recognizable Visual Features Option")
FEATURES = 0x00280302  # Recognizable Visual Features (PS3.3 C.7.6.1)
BLUR_READ_MM = 4.0


@dataclass(frozen=True)
class Deface:
    """`mode` is what stands where the face was. `ears` go too. `uncovered`: what becomes of objects that may show a
    face and cannot be masked. `applies_to` every-volume holds a study with a volume that is not found to be a head.
    """

    VERSION: ClassVar[str] = "3"
    SCOPE: ClassVar[Scope] = Scope.STUDY

    mode: Mode = "remove"
    ears: bool = True
    uncovered: Literal["hold", "drop"] = "hold"
    applies_to: Literal["head-volumes", "every-volume"] = "head-volumes"

    def estimate(self, group: Sequence[Instance], _work: Work) -> Estimate:
        """Find the heads. Raises Hold: face_not_found, deface_failed, geometry_unsuitable, pixels_unreadable."""
        found = find_heads(group, ears=self.ears, every=self.applies_to == "every-volume")
        if found.uncovered and self.uncovered == "hold":
            number, why = min(found.uncovered.items())
            raise Hold("geometry_unsuitable", at=f"{group[number].name}: {why}")
        facts = {
            "masked": {str(number): space for number, space in sorted(found.masked.items())},
            "levels": {str(number): [one.air, one.soft] for number, one in sorted(found.levels.items())},
            "dropped": sorted(found.uncovered),
            "evidence": list(found.evidence),
        }
        arrays = {name: array for n, mask in found.masks.items() for name, array in mask.packed(f"{n}_").items()}
        return Estimate(facts, arrays)

    def apply(self, group: Sequence[Instance], _work: Work, estimate: Estimate) -> list[Step]:
        """Raises Hold: pixels_unreadable, transcoding_failed, deface_failed."""
        facts = estimate.facts
        masked = {int(number): int(space) for number, space in facts["masked"].items()}
        masks = {space: Mask.unpacked(estimate.arrays, f"{space}_") for space in set(masked.values())}
        planes, stacks = self._planes(group) if masked else ({}, {})
        blur = _Blurs(group, stacks) if self.mode == "blur" else None
        steps = []
        for number, instance in enumerate(group):
            if number in facts["dropped"]:
                steps.append(Step(NAME, self.VERSION, dropped="uncovered"))
            elif number not in masked:
                steps.append(Step(NAME, self.VERSION))
            else:
                levels = Levels(*facts["levels"][str(number)])
                fill = Fill(self.mode, masks[masked[number]], levels)
                steps.append(self._deface(instance, planes[number], fill, blur))
        return steps

    def _planes(self, group: Sequence[Instance]) -> tuple[dict[int, list[Plane]], dict[tuple[int, int], Stack]]:
        """The planes of each instance by frame, and the stack that each is in."""
        planes: dict[int, list[Plane]] = {}
        stacks: dict[tuple[int, int], Stack] = {}
        for space in survey(group).spaces:
            for stack in space.stacks:
                stacks.update({(plane.instance, plane.frame): stack for plane in stack.planes})
            for plane in (*space.planes, *(plane for stack in space.stacks for plane in stack.planes)):
                planes.setdefault(plane.instance, []).append(plane)
        return {number: sorted(some, key=lambda plane: plane.frame) for number, some in planes.items()}, stacks

    def _deface(self, instance: Instance, planes: list[Plane], fill: Fill, blur: _Blurs | None) -> Step:
        counts = {"frames": 0, "voxels": 0}
        changes = Changes(set={FEATURES: ("CS", "NO")}, method_codes=(METHOD,))
        where = {plane.frame: mask for plane in planes if (mask := fill.mask.on(plane)) is not None}
        with EncodedImage.open(instance.candidate) as image, writing(instance.candidate) as file:
            target = Path(file.name)
            if [plane.frame for plane in planes] != list(range(image.frames)):
                raise Hold("pixels_unreadable", at=f"{instance.name}: frames are not those of the original")
            if where:
                frames = _frames(image, planes, where, fill, blur, counts)
                replace_frames(instance.candidate, target, frames, changes)
            else:
                change_header(instance.candidate, target, changes)
        return Step(NAME, self.VERSION, counts)

    def describe(self) -> str:
        what = {
            "remove": "are removed",
            "blur": "are blurred past recognition",
            "reface": "are replaced by an average face",
        }[self.mode]
        rest = "held" if self.uncovered == "hold" else "left out"
        return (
            f"Faces: face{' and ears' if self.ears else ''} of head volumes {what}, the brain stays as it is; "
            f"a head that cannot be aligned is held, and what has no place in the patient is {rest}."
        )


class _Blurs:
    """Blurred volumes by stack; the last one is kept."""

    def __init__(self, group: Sequence[Instance], stacks: dict[tuple[int, int], Stack]) -> None:
        self._group, self._stacks = group, stacks
        self._last: tuple[Stack, Any] | None = None

    def of(self, plane: Plane) -> Any:
        """The blurred volume that a plane is in; None when it is in none."""
        stack = self._stacks.get((plane.instance, plane.frame))
        if stack is None:
            return None
        if self._last is None or self._last[0] is not stack:
            pixels = Pixels(self._group)
            self._last = stack, blurred(read(stack, pixels, BLUR_READ_MM))
            pixels.close()
        return self._last[1]


def _frames(
    image: EncodedImage,
    planes: list[Plane],
    where: dict[int, NDArray[np.bool_]],
    fill: Fill,
    blur: _Blurs | None,
    counts: dict[str, int],
) -> Iterator[NDArray[np.generic]]:
    """All frames of one object with what is masked filled."""
    limits = image.layout.limits if image.layout and image.layout.kind != "f" else (-np.inf, np.inf)
    for plane in planes:
        stored = image.stored(plane.frame)
        mask = where.get(plane.frame)
        if mask is not None:
            stored = stored.copy()
            filled = Fill(fill.mode, fill.mask, fill.levels, blur.of(plane)) if blur else fill
            values = as_stored(filled.on(plane, mask), plane, limits, stored.dtype)
            counts["frames"] += 1
            counts["voxels"] += int((stored[mask] != values).sum())
            stored[mask] = values
        yield stored
