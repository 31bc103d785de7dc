"""Which volumes of a study are heads, where their faces are, and what cannot be said: the estimate of `deface`.

For each frame of reference the volumes are tried from the most telling one on (`_telling`) until one is a head. All
others in it must agree with that alignment, or are aligned by themselves; what does neither is in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.pixels.deface_fill import Levels, soft_tissue
from gateway.pixels.deface_guard import guard_of
from gateway.pixels.deface_mask import Mask, mask_of
from gateway.pixels.deface_measure import Measured, measure
from gateway.pixels.deface_study import Pixels, Space, Survey, survey
from gateway.pixels.head_alignment import Alignment, align
from gateway.pixels.head_evidence import Evidence, evidence_of
from gateway.pixels.head_seen import Seen, see
from gateway.pixels.head_size import Size, head_size
from gateway.pixels.head_tissue import lifted, tissue_of
from gateway.pixels.stage import Instance
from gateway.volumes import TOO_FEW, Plane, Stack, Volume, read

READ_MM = 2.0
TRIED = 3  # volumes of a frame of reference that are aligned; one more that could be a head is in doubt
BESIDE_MM = 40.0  # how far a localiser may reach beyond a volume that shows no head; slices of a volume may not


class Judged(StrEnum):
    """What a volume is."""

    HEAD = "head"
    NONE = "none"
    DOUBT = "doubt"


@dataclass
class Found:
    """By number of the instance: the mask's number, the levels of its volume; why an object cannot be masked."""

    masks: dict[int, Mask] = field(default_factory=dict)
    masked: dict[int, int] = field(default_factory=dict)
    levels: dict[int, Levels] = field(default_factory=dict)
    uncovered: dict[int, str] = field(default_factory=dict)
    evidence: list[dict[str, float | str]] = field(default_factory=list)


def judged(evidence: Evidence) -> Judged:
    """A head, none, or doubt. The thresholds lie between what heads and other volumes were measured to give."""
    fits = evidence.scale[0] > 0.78 and evidence.scale[1] < 1.25 and evidence.brain > 0.93
    if fits and evidence.nmi > 1.055 and evidence.overlap > 0.92 and evidence.imaged > 0.25:
        return Judged.HEAD
    if evidence.nmi < 1.05 and evidence.overlap < 0.6:
        return Judged.NONE
    return Judged.DOUBT


def look_at(
    volume: Volume, *, hounsfield: bool, aligning: bool = True
) -> tuple[Judged, Alignment | None, dict[str, float | str]]:
    """(what it is, where its head lies, what says so). Without anything of a head's size nothing is aligned; without
    `aligning`, what has something of that size is in doubt.
    """
    size = head_size(volume, tissue_of(volume, hounsfield=hounsfield))
    alignment = align(volume, hounsfield=hounsfield) if aligning and size is not Size.IMPOSSIBLE else None
    if alignment is None:
        verdict = Judged.NONE if size is Size.IMPOSSIBLE else Judged.DOUBT
        return verdict, None, {"judged": str(verdict), "size": str(size)}
    evidence = evidence_of(volume, alignment, hounsfield=hounsfield)
    verdict = judged(evidence)
    return verdict, alignment, {"judged": str(verdict), "size": str(size), **evidence.numbers()}


def find_heads(group: Sequence[Instance], *, ears: bool, every: bool) -> Found:
    """Raises Hold: face_not_found, deface_failed, pixels_unreadable, geometry_unsuitable."""
    look, found, pixels = survey(group), Found(), Pixels(group)
    try:
        for space in look.spaces:
            _space(space, look, pixels, found, group, ears=ears, every=every)
    finally:
        pixels.close()
    for number, why in sorted(look.unplaced.items()):
        found.uncovered.setdefault(number, f"a frame without a place in the patient ({why})")
    if found.masks:
        for number in sorted(look.shapes):
            found.uncovered.setdefault(number, "shapes that may follow a face")
    for number in found.uncovered:
        found.masked.pop(number, None)
    return found


def _space(
    space: Space, look: Survey, pixels: Pixels, found: Found, group: Sequence[Instance], *, ears: bool, every: bool
) -> None:
    hounsfield, emission = (
        {id(stack): stack.planes[0].instance in numbers for stack in space.stacks}
        for numbers in (look.hounsfield, look.emission)
    )
    ranked = sorted(space.stacks, key=_telling)
    reference: tuple[Mask, Stack, Seen] | None = None
    seen: dict[int, tuple[Judged, Volume]] = {}
    tried = 0
    for stack in _distinct(ranked):
        volume = _shown(read(stack, pixels, READ_MM), emission=emission[id(stack)])
        verdict, alignment, evidence = look_at(volume, hounsfield=hounsfield[id(stack)], aligning=tried < TRIED)
        tried += evidence["size"] != Size.IMPOSSIBLE
        if verdict is Judged.NONE and any(plane.instance in look.suspected for plane in stack.planes):
            verdict = Judged.DOUBT
        found.evidence.append(evidence)
        seen[id(stack)] = verdict, volume
        if verdict is Judged.HEAD and alignment:
            mask, known = _aligned(volume, alignment, hounsfield=hounsfield[id(stack)], ears=ears)
            reference = mask, stack, known
            break
    if reference is None:
        _no_head(space, seen, found, group, every=every)
        return
    number = len(found.masks)
    found.masks[number], fitted, known = reference
    for stack in ranked:
        volume = read(stack, pixels, READ_MM)
        shown = _shown(volume, emission=emission[id(stack)])
        if stack is fitted and _fits(measure(known, found.masks[number])):
            own = number
        else:
            own = _mask_for(stack, shown, found, number, group, hounsfield=hounsfield[id(stack)], ears=ears)
        levels = soft_tissue(volume, shown, hounsfield=hounsfield[id(stack)])
        for plane in stack.planes:
            found.masked[plane.instance], found.levels[plane.instance] = own, levels
    for plane in space.planes:
        if plane.instance not in found.masked:
            found.masked[plane.instance] = number
            found.levels[plane.instance] = _levels_of_plane(plane, pixels, hounsfield=plane.instance in look.hounsfield)


def _shown(volume: Volume, *, emission: bool) -> Volume:
    """What the head is looked for in."""
    return lifted(volume) if emission else volume


def _mask_for(
    stack: Stack,
    volume: Volume,
    found: Found,
    number: int,
    group: Sequence[Instance],
    *,
    hounsfield: bool,
    ears: bool,
) -> int:
    """The number of the mask that fits this volume: the shared one, one of another volume in this frame of reference
    since which the patient moved, or one of its own.
    """
    for shared in range(number, len(found.masks)):
        mask = found.masks[shared]
        if _fits(measure(see(volume, mask.to_template, hounsfield=hounsfield), mask)):
            return shared
    verdict, alignment, _ = look_at(volume, hounsfield=hounsfield)
    if verdict is Judged.HEAD and alignment:
        own, seen = _aligned(volume, alignment, hounsfield=hounsfield, ears=ears)
        if _fits(measure(seen, own)):
            found.masks[len(found.masks)] = own
            return len(found.masks) - 1
    raise Hold("deface_failed", at=group[stack.planes[0].instance].name)


def _aligned(volume: Volume, alignment: Alignment, *, hounsfield: bool, ears: bool) -> tuple[Mask, Seen]:
    """The mask for the head of one volume, and what it was made of."""
    seen = see(volume, alignment.to_template, hounsfield=hounsfield)
    return mask_of(alignment.to_template, ears=ears, protected=guard_of(seen)), seen


def _fits(measured: Measured) -> bool:
    """Nothing of a face stands before the cut, the brain is spared, and the outline is that of the head, if any is
    there: a volume of another part of the patient has nothing to fit.
    """
    if measured.brain:
        return False
    return measured.imaged < 0.02 or (measured.overlap > 0.85 and measured.left < 0.01)


def _no_head(
    space: Space, seen: dict[int, tuple[Judged, Volume]], found: Found, group: Sequence[Instance], *, every: bool
) -> None:
    """Untouched on evidence, or held. Planes in no volume pass where one shows the same part of the patient."""
    for stack in space.stacks:
        if id(stack) in seen and (every or seen[id(stack)][0] is Judged.DOUBT):  # the others share a grid with one
            raise Hold("face_not_found", at=group[stack.planes[0].instance].name)
    for plane in space.planes:
        why = space.reasons[plane.instance]
        beside_mm = BESIDE_MM if why == TOO_FEW else 0.0
        if not any(_within(plane, volume, beside_mm) for _, volume in seen.values()):
            found.uncovered.setdefault(plane.instance, f"planes that make no volume ({why}), of what no volume shows")


def _telling(stack: Stack) -> tuple[float, int]:
    """Sort key: the coarsest spacing first, then size; thin slices over a large range tell most."""
    extent = float(np.prod([count * one for count, one in zip(stack.shape[::-1], stack.spacing_mm, strict=True)]))
    return round(max(stack.spacing_mm)), -int(extent)


def _distinct(stacks: Sequence[Stack]) -> list[Stack]:
    """One of those that share a grid."""
    kept: list[Stack] = []
    for stack in stacks:
        if not any(one.shape == stack.shape and np.allclose(one.affine, stack.affine, atol=0.1) for one in kept):
            kept.append(stack)
    return kept


def _within(plane: Plane, volume: Volume, beside_mm: float) -> bool:
    """True when the whole plane lies in the volume or less than that beside it."""
    corners = np.array([[c, r, 0, 1] for c in (0, plane.columns - 1) for r in (0, plane.rows - 1)], float)
    at = (np.linalg.inv(volume.affine) @ plane.affine() @ corners.T)[:3]
    margin = (beside_mm / volume.spacing_mm)[:, None]
    limits = np.array(volume.values.shape[::-1])[:, None] - 1
    return bool(((at >= -margin) & (at <= limits + margin)).all())


def _levels_of_plane(plane: Plane, pixels: Pixels, *, hounsfield: bool) -> Levels:
    values: NDArray[np.float64] = np.asarray(pixels(plane), np.float64) * plane.slope + plane.intercept
    if hounsfield:
        return Levels(-1000.0, 40.0)
    low, high = np.percentile(values, (2, 75))
    return Levels(float(low), float(high))
