"""The lesion on the grid of the images, out of segmentations and structure sets of the study.

A segment or region is a lesion by its coded category or type (CID 7150, 7159 and the tissues of a tumour), by its RT
interpreted type (GTV), by its name, or because the policy names it. What is drawn beside lesions shows the old anatomy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset
from skimage.draw import polygon2mask

from gateway.errors import Hold
from gateway.volumes import Plane, Stack, planes_of

SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
STRUCTURES = "1.2.840.10008.5.1.4.1.1.481.3"
ABNORMAL = frozenset({("SCT", "49755003"), ("SRT", "M-01000"), ("99SDM", "M-01000")})
TYPES = frozenset(  # lesion, neoplasm, malignant one, primary, metastasis, mass, oedema, necrosis, plaque, cavity
    {("SCT", one) for one in ("52988006", "108369006", "367651003", "86049000", "14799000", "4147007")}
    | {("SCT", one) for one in ("79654002", "267038008", "6574001", "1522000", "2641000146101")}
    | {("SRT", one) for one in ("M-01000", "M-80003", "M-03000", "M-36300", "M-54000")}
)
TARGETS = frozenset({"GTV"})
NAMES = re.compile(
    r"LESION|TUMOU?R|GLIOMA|METASTAS|\bMETS?\b|\bGTV|EDEMA|OEDEMA|NECRO|ENHANC|PLAQUE|NEOPLASM|LAESION|LÄSION|\bCORE\b"
)
PARALLEL = 0.9995  # cosine between normals of a mask's plane and of the images
HALF = 0.5 + 1e-3  # of the distance of slices: a mask's plane belongs to slices whose centre lies within it

Mask = NDArray[np.bool_]
Frames = Callable[[int], NDArray[Any]]  # stored values of a frame


@dataclass(frozen=True, slots=True)
class Drawn:
    """`mask` [slice, row, column] on the grid; `others`: something that is no lesion is drawn as well."""

    mask: Mask
    others: bool


def from_segmentation(dataset: Dataset, frames: Frames, stack: Stack, names: Sequence[str], at: str) -> Drawn | None:
    """None when no segment is a lesion. Raises Hold("lesion_mask_unusable") for a mask without a place on the grid."""
    segments = {int(one.get("SegmentNumber") or 0): one for one in dataset.get("SegmentSequence") or ()}
    lesions = {number for number, one in segments.items() if _is_lesion(one, names)}
    if not lesions:
        return None
    if dataset.get("SegmentationType") not in ("BINARY", "FRACTIONAL"):
        raise Hold("lesion_mask_unusable", at=f"{at}: segmentation type")
    least = 1 if dataset.SegmentationType == "BINARY" else (int(dataset.get("MaximumFractionalValue") or 255) + 1) // 2
    mask = np.zeros(stack.shape, np.bool_)
    groups = dataset.get("PerFrameFunctionalGroupsSequence") or ()
    for number, plane in enumerate(planes_of(dataset, 0)):
        segment = _segment_of(dataset, groups, number)
        if segment not in segments:
            raise Hold("lesion_mask_unusable", at=f"{at} frame {number}: no segment")
        if segment in lesions:
            if not isinstance(plane, Plane):
                raise Hold("lesion_mask_unusable", at=f"{at} frame {number}: {plane.why}")
            _require_same_space(plane.frame_of_reference, stack, at)
            _add_frame(mask, np.asarray(frames(number)) >= least, plane, stack, f"{at} frame {number}")
    return Drawn(mask, others=len(lesions) < len(segments))


def from_structures(dataset: Dataset, stack: Stack, names: Sequence[str], at: str) -> Drawn | None:
    """Closed planar contours; contours of one region on one slice cut each other out (exclusive or).

    None when no region is a lesion. Raises Hold("lesion_mask_unusable").
    """
    kinds = {
        int(one.get("ReferencedROINumber") or 0): str(one.get("RTROIInterpretedType") or "").upper()
        for one in dataset.get("RTROIObservationsSequence") or ()
    }
    rois = {int(one.get("ROINumber") or 0): one for one in dataset.get("StructureSetROISequence") or ()}
    lesions = {
        number
        for number, one in rois.items()
        if kinds.get(number) in TARGETS or _named(str(one.get("ROIName") or ""), names)
    }
    if not lesions:
        return None
    mask = np.zeros(stack.shape, np.bool_)
    drawn = dataset.get("ROIContourSequence") or ()
    for region in drawn:
        number = int(region.get("ReferencedROINumber") or 0)
        if number in lesions:
            _require_same_space(str(rois[number].get("ReferencedFrameOfReferenceUID") or ""), stack, at)
            mask |= _region(region, stack, at)
    others = any(int(one.get("ReferencedROINumber") or 0) not in lesions for one in drawn)
    return Drawn(mask, others=others)


def _region(region: Dataset, stack: Stack, at: str) -> Mask:
    out = np.zeros(stack.shape, np.bool_)
    for contour in region.get("ContourSequence") or ():
        if str(contour.get("ContourGeometricType")) not in ("CLOSED_PLANAR", "CLOSEDPLANAR_XOR"):
            raise Hold("lesion_mask_unusable", at=f"{at}: contours are not closed and planar")
        points = _points(contour, at)
        columns, rows, slices = _to_index(points, stack)
        number = int(np.rint(slices.mean()))
        if np.abs(slices - slices.mean()).max() > HALF or not -HALF <= slices.mean() <= stack.shape[0] - 1 + HALF:
            raise Hold("lesion_mask_unusable", at=f"{at}: a contour lies in no slice")
        number = min(max(number, 0), stack.shape[0] - 1)
        inside: Mask = polygon2mask(stack.shape[1:], np.stack([rows, columns], 1))  # type: ignore[no-untyped-call]
        out[number] ^= inside
    return out


def _points(contour: Dataset, at: str) -> NDArray[np.float64]:
    try:
        points = np.array([float(one) for one in contour.get("ContourData") or ()]).reshape(-1, 3)
    except (TypeError, ValueError):
        points = np.zeros((0, 3))
    if len(points) < 3 or not np.isfinite(points).all():
        raise Hold("lesion_mask_unusable", at=f"{at}: a contour without points")
    return points


def _to_index(points: NDArray[np.float64], stack: Stack) -> NDArray[np.float64]:
    """(3, n): column, row, slice of points (n, 3) in LPS mm."""
    inverse = np.linalg.inv(stack.affine)
    return np.asarray(inverse[:3, :3] @ points.T + inverse[:3, 3:])


def _add_frame(mask: Mask, inside: Mask, plane: Plane, stack: Stack, at: str) -> None:
    """Every voxel of the grid whose centre lies in a marked pixel of the frame."""
    if not inside.any():
        return
    first = stack.planes[0]
    if abs(float(plane.normal @ first.normal)) < PARALLEL:
        raise Hold("lesion_mask_unusable", at=f"{at}: not parallel to the images")
    centre = np.asarray([plane.affine()[:3, 3]])
    slice_mm = stack.spacing_mm[2]
    reach = HALF * max(1.0, plane.thickness_mm / slice_mm)
    number = float(_to_index(centre, stack)[2, 0])
    low, high = int(np.ceil(number - reach)), int(np.floor(number + reach))
    if high < 0 or low > stack.shape[0] - 1:
        raise Hold("lesion_mask_unusable", at=f"{at}: beside the images")
    to_frame = np.linalg.inv(plane.affine())
    rows, columns = np.meshgrid(*(np.arange(count) for count in stack.shape[1:]), indexing="ij")
    for index in range(max(low, 0), min(high, stack.shape[0] - 1) + 1):
        voxels = np.stack([columns.ravel(), rows.ravel(), np.full(rows.size, index), np.ones(rows.size)])
        pixel = np.rint((to_frame @ stack.affine @ voxels)[:2]).astype(int)
        within = (pixel >= 0).all(0) & (pixel[0] < plane.columns) & (pixel[1] < plane.rows)
        found = np.zeros(rows.size, np.bool_)
        found[within] = inside[pixel[1, within], pixel[0, within]]
        mask[index] |= found.reshape(rows.shape)


def _require_same_space(frame_of_reference: str, stack: Stack, at: str) -> None:
    if not stack.frame_of_reference or frame_of_reference != stack.frame_of_reference:
        raise Hold("lesion_mask_unusable", at=f"{at}: another frame of reference than the images")


def _segment_of(dataset: Dataset, groups: Sequence[Dataset], frame: int) -> int:
    shared = dataset.get("SharedFunctionalGroupsSequence") or ()
    for group in (*groups[frame : frame + 1], *shared[:1]):
        items = group.get("SegmentIdentificationSequence")
        if items:
            return int(items[0].get("ReferencedSegmentNumber") or 0)
    return 0


def _is_lesion(segment: Dataset, names: Sequence[str]) -> bool:
    category = set(_codes(segment, "SegmentedPropertyCategoryCodeSequence"))
    kind = set(_codes(segment, "SegmentedPropertyTypeCodeSequence"))
    named = _named(str(segment.get("SegmentLabel") or ""), names)
    return bool(category & ABNORMAL) or bool(kind & TYPES) or named


def _codes(dataset: Dataset, keyword: str) -> Iterator[tuple[str, str]]:
    for item in dataset.get(keyword) or ():
        yield str(item.get("CodingSchemeDesignator") or ""), str(item.get("CodeValue") or "")


def _named(label: str, names: Sequence[str]) -> bool:
    return label.strip().casefold() in {one.casefold() for one in names} or bool(NAMES.search(label.upper()))
