"""What a study holds for `lesion_preserving`: one stack of each sequence in one space, the lesion, and the rest.

Headers are read from the originals (values may have been emptied since), stored values from the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydicom.dataset import Dataset
from scipy import ndimage

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.pixels.anatomy_shown import FAILURES, shown_in
from gateway.pixels.lesion_masks import SEGMENTATION, STRUCTURES, Drawn, Mask, from_segmentation, from_structures
from gateway.pixels.lesion_sequences import sequence_of
from gateway.pixels.stage import Instance
from gateway.volumes import Stack, planes_of, sort

TOUCHED = 0.25
SAME_PLACE = 0.05  # of a voxel, at every corner of the grid


@dataclass(frozen=True, slots=True)
class Survey:
    """`sequences`: the stack of each, all in one space; the first covers most. `lesions`: of each, [slice, row, column]
    on its grid; none of any where nothing draws a lesion. `kept`: numbers of instances that show lesions and nothing
    else; `uncovered`: number -> why it cannot leave as it is.
    """

    sequences: dict[str, Stack]
    lesions: dict[str, Mask]
    kept: frozenset[int]
    uncovered: dict[int, str]


def survey(
    group: Sequence[Instance], headers: Sequence[Dataset], known: Sequence[str], names: Sequence[str], sources: str
) -> Survey:
    """`known`: sequences of the card; `names`: labels of lesions beside the usual; `sources`: from-study, from-seg or
    from-rtstruct.

    Raises Hold: pixels_unreadable, no_sequence, lesion_mask_empty, lesion_mask_unusable.
    """
    sequences, beside = _sequences(headers, known)
    if not sequences:
        raise Hold("no_sequence", at=f"the card makes {', '.join(known)}")
    first = next(iter(sequences.values()))
    lesion, kept, drawn = _lesion(group, headers, first, names, sources)
    lesions = on_grids(lesion, first, sequences) if lesion is not None else {}
    covered = {plane.instance for stack in sequences.values() for plane in stack.planes}
    uncovered = {
        number: beside.get(number) or drawn.get(number) or "shows the anatomy that is replaced"
        for number in shown_in(headers)
        if number not in covered | kept
    }
    return Survey(sequences, lesions, kept, uncovered)


def _sequences(headers: Sequence[Dataset], known: Sequence[str]) -> tuple[dict[str, Stack], dict[int, str]]:
    """The stacks of the space that has masks, else most sequences, the one that covers most first; and why others are
    in none.
    """
    placed = [number for number, header in enumerate(headers) if header.get("Modality") == "MR" and "Rows" in header]
    stacks, strays = sort(one for number in placed for one in planes_of(headers[number], number))
    why = {stray.instance: stray.why for stray in strays}
    spaces: dict[str, dict[str, Stack]] = {}
    for stack in sorted(stacks, key=_covers_mm3, reverse=True):
        numbers = sorted({plane.instance for plane in stack.planes})
        name = sequence_of(headers[numbers[0]])
        if name is None or name not in known:
            why |= dict.fromkeys(numbers, "no sequence that the card makes")
        elif set(numbers) & why.keys() or any(_frames(headers[n]) != _count(stack, n) for n in numbers):
            why |= dict.fromkeys(numbers, "several volumes in one object")
        elif not stack.frame_of_reference:
            why |= dict.fromkeys(numbers, "no frame of reference")
        elif name in spaces.setdefault(stack.frame_of_reference, {}):
            why |= dict.fromkeys(numbers, f"another series of {name}")
        else:
            spaces[stack.frame_of_reference][name] = stack
    drawn_in = {one for header in headers for one in _spaces_of_masks(header)}
    best: dict[str, Stack] = {}
    if spaces:
        best = spaces[max(spaces, key=lambda one: (one in drawn_in, len(spaces[one])))]
    for space in spaces.values():
        if space is not best:
            for stack in space.values():
                why |= dict.fromkeys((plane.instance for plane in stack.planes), "another frame of reference")
    return best, why


def _spaces_of_masks(header: Dataset) -> set[str]:
    """Frames of reference in which an object draws regions."""
    kind = str(header.get("SOPClassUID", ""))
    if kind == SEGMENTATION:
        return {str(header.get("FrameOfReferenceUID") or "")}
    rois = (header.get("StructureSetROISequence") or ()) if kind == STRUCTURES else ()
    return {str(roi.get("ReferencedFrameOfReferenceUID") or "") for roi in rois}


def _covers_mm3(stack: Stack) -> float:
    return float(np.prod(stack.shape) * np.prod(stack.spacing_mm))


def same_grid(one: Stack, other: Stack) -> bool:
    """Same shape, and every corner in the same place."""
    if other.shape != one.shape:
        return False
    slices, rows, columns = one.shape
    corners = np.array([[c, r, s, 1] for c in (0, columns - 1) for r in (0, rows - 1) for s in (0, slices - 1)]).T
    apart = np.linalg.norm(((other.affine - one.affine) @ corners)[:3], axis=0)
    return bool(apart.max() <= SAME_PLACE * min(one.spacing_mm))


def _lesion(
    group: Sequence[Instance], headers: Sequence[Dataset], grid: Stack, names: Sequence[str], sources: str
) -> tuple[Mask | None, frozenset[int], dict[int, str]]:
    """The union of everything that is drawn as a lesion (None: nothing is), who draws nothing else, and why others may
    not stay.
    """
    lesion = np.zeros(grid.shape, np.bool_)
    kept, why, found = set(), {}, False
    for number, header in enumerate(headers):
        drawn = _drawn(group[number], header, grid, names, sources)
        if drawn is None:
            continue
        found = True
        lesion |= drawn.mask
        if drawn.others:
            why[number] = "draws other anatomy beside the lesion"
        else:
            kept.add(number)
    if not found:
        return None, frozenset(), {}
    if not lesion.any():
        raise Hold("lesion_mask_empty")
    return lesion, frozenset(kept), why


def _drawn(instance: Instance, header: Dataset, grid: Stack, names: Sequence[str], sources: str) -> Drawn | None:
    kind = str(header.get("SOPClassUID", ""))
    try:
        if kind == SEGMENTATION and sources != "from-rtstruct":
            with EncodedImage.open(instance.candidate) as image:
                return from_segmentation(header, image.stored, grid, names, instance.name)
        if kind == STRUCTURES and sources != "from-seg":
            return from_structures(header, grid, names, instance.name)
    except FAILURES:
        raise Hold("lesion_mask_unusable", at=instance.name) from None
    return None


def on_grids(mask: Mask, of: Stack, sequences: Mapping[str, Stack]) -> dict[str, Mask]:
    """A mask of one grid on that of each sequence."""
    return {name: on_grid(mask, of, stack) for name, stack in sequences.items()}


def on_grid(mask: Mask, of: Stack, stack: Stack) -> Mask:
    """A mask of one grid on another: every voxel that it touches by a quarter. As it is where the grids are one."""
    if same_grid(of, stack):
        return mask
    matrix = np.linalg.inv(of.affine) @ stack.affine  # (column, row, slice); arrays count the other way round
    order = matrix[:3, :3][::-1, ::-1], matrix[:3, 3][::-1]
    inside = ndimage.affine_transform(mask.astype(np.float32), *order, output_shape=stack.shape, order=1)
    return np.asarray(inside > TOUCHED, np.bool_)


def _frames(header: Dataset) -> int:
    return int(header.get("NumberOfFrames") or 1)


def _count(stack: Stack, number: int) -> int:
    return sum(plane.instance == number for plane in stack.planes)
