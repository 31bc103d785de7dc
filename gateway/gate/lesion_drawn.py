"""Where the lesion lies on the grid of an image, as segmentations and contours that go along with a study draw it.

The gate's own reading of PS3.3 C.8.20 and C.8.8.6, for both sides: what the original draws on the original, what leaves
on what leaves. Which segments and regions are lesions is read from the original, whose words are still there; the
numbers that name them are the same on both sides. What has no place on the grid holds: a lesion that is not seen would
be judged as background.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom import Dataset

from gateway.errors import Hold
from gateway.gate.face_reading import Headers, Side, headers_of
from gateway.gate.pixel_layout import Unseen
from gateway.gate.reading import Pair, judging
from gateway.policy import Policy
from gateway.volumes import Plane, Stack, planes_of

SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
STRUCTURES = "1.2.840.10008.5.1.4.1.1.481.3"
UNDRAWN = "lesion_undrawn"
ABNORMAL = frozenset({"49755003", "M-01000"})  # category (CID 7150): morphologically abnormal structure
KINDS = frozenset(  # property types of CID 7151 and 7159 that are lesions or their tissue, SNOMED CT and RT
    {"52988006", "108369006", "367651003", "86049000", "14799000", "4147007", "79654002", "267038008", "6574001"}
    | {"1522000", "2641000146101", "M-80003", "M-03000", "M-36300", "M-54000"}
)
TARGET = "GTV"  # RT ROI Interpreted Type: gross tumour volume
WORDS = re.compile(
    r"LESION|LAESION|LÄSION|TUMOU?R|NEOPLASM|GLIOMA|METASTAS|\bMETS?\b|O?EDEMA|NECRO|ENHANC|PLAQUE|\bGTV|\bCORE\b"
)
SAME_PLACE_MM = 0.05
ROUNDING = 1.001  # of half a slice: positions are rounded

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drawing:
    """One side of a study: `datasets` and `side` are its headers and its frames, `names` ours. `lesions` maps the
    instances that draw lesions to the numbers of segments or regions that are lesions.
    """

    datasets: Sequence[Dataset]
    side: Side
    names: Sequence[str]
    lesions: Mapping[int, frozenset[int]]

    def mask(self, stack: Stack) -> Mask:
        """[slice, row, column] on a grid that the originals make. Raises Hold("lesion_undrawn") for images or
        masks without a place in one space, Hold("gate_failed") for what cannot be read.
        """
        grid = self._own(stack)
        mask = np.zeros(grid.shape, np.bool_)
        for number, lesions in self.lesions.items():
            with judging(self.names[number]):
                dataset = self.datasets[number]
                if str(dataset.SOPClassUID) == SEGMENTATION:
                    self._add_segments(mask, grid, number, lesions)
                else:
                    for region in dataset.get("ROIContourSequence") or ():
                        if int(region.ReferencedROINumber) in lesions:
                            mask |= self._region(region, grid, number)
        return mask

    def _own(self, stack: Stack) -> Stack:
        """The same slices as this side states them: its frame of reference, and geometry as the original's."""
        numbers = sorted({plane.instance for plane in stack.planes})
        placed: dict[tuple[int, int], Plane] = {}
        for number in numbers:
            for plane in planes_of(self.datasets[number], number):
                if isinstance(plane, Plane):
                    placed[plane.instance, plane.frame] = plane
        mine = [placed.get((plane.instance, plane.frame)) for plane in stack.planes]
        for was, now in zip(stack.planes, mine, strict=True):
            if now is None or not np.allclose(now.affine(), was.affine(), atol=SAME_PLACE_MM):
                raise Hold(UNDRAWN, at=f"{self.names[was.instance]} frame {was.frame}: it lies elsewhere than before")
        return Stack(tuple(plane for plane in mine if plane is not None), stack.affine)

    def _add_segments(self, mask: Mask, grid: Stack, number: int, lesions: frozenset[int]) -> None:
        dataset, at = self.datasets[number], self.names[number]
        kind = str(dataset.SegmentationType)
        if kind not in ("BINARY", "FRACTIONAL"):
            raise Hold(UNDRAWN, at=f"{at}: segmentation type")
        least = 1 if kind == "BINARY" else (int(dataset.MaximumFractionalValue) + 1) // 2
        for frame, plane in enumerate(planes_of(dataset, number)):
            if _segment(dataset, frame) not in lesions:
                continue
            if not isinstance(plane, Plane):
                raise Hold(UNDRAWN, at=f"{at} frame {frame}: {plane.why}")
            _require_one_space(plane.frame_of_reference, grid, at)
            try:
                marked = np.asarray(self.side.frame(number, frame)) >= least
            except Unseen as unseen:
                raise Hold(UNDRAWN, at=f"{at} frame {frame}: {unseen.rule}") from None
            _add(mask, marked, plane, grid)

    def _region(self, region: Dataset, grid: Stack, number: int) -> Mask:
        """Contours of one region that lie in one slice cut each other out (PS3.3 C.8.8.6.3)."""
        dataset, at = self.datasets[number], self.names[number]
        spaces = {int(roi.ROINumber): roi for roi in dataset.StructureSetROISequence}
        own = spaces[int(region.ReferencedROINumber)]
        _require_one_space(str(own.get("ReferencedFrameOfReferenceUID") or ""), grid, at)
        found = np.zeros(grid.shape, np.bool_)
        to_index = np.linalg.inv(grid.affine)
        for contour in region.get("ContourSequence") or ():
            if str(contour.ContourGeometricType) not in ("CLOSED_PLANAR", "CLOSEDPLANAR_XOR"):
                raise Hold(UNDRAWN, at=f"{at}: contours are not closed and planar")
            points = np.array([float(one) for one in contour.ContourData]).reshape(-1, 3)
            columns, rows, slices = to_index[:3, :3] @ points.T + to_index[:3, 3:]
            index = round(float(slices.mean()))
            apart = float(np.abs(slices - index).max())
            if not (np.isfinite(points).all() and apart <= 0.5 * ROUNDING and 0 <= index < len(found)):
                raise Hold(UNDRAWN, at=f"{at}: a contour lies in no slice")
            found[index] ^= inside(rows, columns, found.shape[1], found.shape[2])
        return found


def drawings(pairs: Sequence[Pair], policy: Policy) -> tuple[Headers, tuple[Drawing, Drawing]]:
    """A study's headers as the originals have them, and both sides' drawings: before, and what would leave. Raises
    Hold: "lesion_undrawn" when none of it draws a lesion, "gate_failed" for what cannot be read.
    """
    headers = headers_of(pairs)
    names = [pair.name for pair in pairs]
    lesions = lesions_in(headers.datasets, names, labels_of(policy))
    if not lesions:
        raise Hold(UNDRAWN, at="no lesion is drawn in what would leave")
    released = []
    for pair in pairs:
        with judging(pair.name):
            released.append(pydicom.dcmread(pair.candidate, stop_before_pixels=True))
    before = Drawing(headers.datasets, Side([one.original for one in pairs], names, original=True), names, lesions)
    return headers, (
        before,
        Drawing(released, Side([one.candidate for one in pairs], names, original=False), names, lesions),
    )


def labels_of(policy: Policy) -> tuple[str, ...]:
    """Names of segments and regions that a stage of the policy calls lesions."""
    return tuple(label for _, stage in policy.pixels for label in getattr(stage, "labels", ()))


def lesions_in(datasets: Sequence[Dataset], names: Sequence[str], labels: Sequence[str]) -> dict[int, frozenset[int]]:
    """Of the originals' headers: instance -> segments or regions that are lesions; `labels` are names that the policy
    calls so. Raises Hold("gate_failed") for a header that cannot be read.
    """
    own = frozenset(label.casefold() for label in labels)
    found = {}
    for number, dataset in enumerate(datasets):
        with judging(names[number]):
            kind = str(dataset.get("SOPClassUID", ""))
            of = {SEGMENTATION: _segments, STRUCTURES: _regions}.get(kind)
            lesions = frozenset(of(dataset, own)) if of is not None else frozenset()
        if lesions:
            found[number] = lesions
    return found


def _segments(dataset: Dataset, labels: frozenset[str]) -> Iterator[int]:
    for segment in dataset.get("SegmentSequence") or ():
        category = _codes(segment, "SegmentedPropertyCategoryCodeSequence")
        kind = _codes(segment, "SegmentedPropertyTypeCodeSequence")
        if category & ABNORMAL or kind & KINDS or _named(str(segment.get("SegmentLabel") or ""), labels):
            yield int(segment.SegmentNumber)


def _regions(dataset: Dataset, labels: frozenset[str]) -> Iterator[int]:
    kinds = {
        int(one.ReferencedROINumber): str(one.get("RTROIInterpretedType") or "").upper()
        for one in dataset.get("RTROIObservationsSequence") or ()
    }
    for roi in dataset.get("StructureSetROISequence") or ():
        if kinds.get(int(roi.ROINumber)) == TARGET or _named(str(roi.get("ROIName") or ""), labels):
            yield int(roi.ROINumber)


def _codes(dataset: Dataset, keyword: str) -> set[str]:
    return {str(item.get("CodeValue") or "") for item in dataset.get(keyword) or ()}


def _named(word: str, labels: frozenset[str]) -> bool:
    return word.strip().casefold() in labels or WORDS.search(word.upper()) is not None


def _segment(dataset: Dataset, frame: int) -> int:
    """Which segment a frame belongs to (PS3.3 C.8.20.3); 0 for none."""
    groups = [*(dataset.get("PerFrameFunctionalGroupsSequence") or ())[frame : frame + 1]]
    for group in (*groups, *(dataset.get("SharedFunctionalGroupsSequence") or ())):
        for item in group.get("SegmentIdentificationSequence") or ():
            return int(item.ReferencedSegmentNumber)
    return 0


def _require_one_space(frame_of_reference: str, grid: Stack, at: str) -> None:
    if not grid.frame_of_reference or frame_of_reference != grid.frame_of_reference:
        raise Hold(UNDRAWN, at=f"{at}: another frame of reference than the images")


def _add(mask: Mask, marked: Mask, plane: Plane, grid: Stack) -> None:
    """Every voxel whose centre lies in a marked pixel of a frame, within half its thickness or half a slice."""
    half = 0.5 * ROUNDING * max(plane.thickness_mm, grid.spacing_mm[2])
    axes = np.array(
        [
            np.divide(plane.along_row, plane.column_spacing_mm),
            np.divide(plane.along_column, plane.row_spacing_mm),
            plane.normal,
        ]
    )
    turn = axes @ grid.affine[:3, :3]  # (column, row, slice) of the grid -> column, row of the frame, mm from it
    start = axes @ (grid.affine[:3, 3] - plane.position)
    slices, height, width = grid.shape
    corners = np.array([[column, row] for column in (0, width - 1) for row in (0, height - 1)])
    ends = (corners @ turn[2, :2])[None, :] + (turn[2, 2] * np.arange(slices) + start[2])[:, None]  # mm, by slice
    rows, columns = np.indices((height, width), dtype=np.float64)
    for index in np.flatnonzero((ends.min(1) <= half) & (ends.max(1) >= -half)) if marked.any() else ():
        column, row = (
            np.rint(turn[n, 0] * columns + turn[n, 1] * rows + turn[n, 2] * index + start[n]).astype(np.int64)
            for n in (0, 1)
        )
        near = np.abs(turn[2, 0] * columns + turn[2, 1] * rows + turn[2, 2] * index + start[2]) <= half
        near &= (row >= 0) & (row < plane.rows) & (column >= 0) & (column < plane.columns)
        mask[index][near] |= marked[row[near], column[near]]


def inside(rows: Floats, columns: Floats, height: int, width: int) -> Mask:
    """(height, width): pixels whose centre lies within a polygon of corners (rows, columns), even-odd."""
    found = np.zeros((height, width), np.bool_)
    across = np.arange(width)
    for r0, c0, r1, c1 in zip(rows, columns, np.roll(rows, -1), np.roll(columns, -1), strict=True):
        low, high = max(0, int(np.ceil(min(r0, r1)))), min(height, int(np.ceil(max(r0, r1))))
        if low < high:
            at = c0 + (np.arange(low, high) - r0) * (c1 - c0) / (r1 - r0)
            found[low:high] ^= across[None, :] < at[:, None]
    return found
