"""Where each frame of an object lies in the patient (PS3.3 C.7.6.2; enhanced: C.7.6.16.2.3, C.7.6.16.2.4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

LARGEST_MM = 1e5  # beyond this a position or a spacing is no place in a patient
MAX_ANGLE_COSINE = 1e-3  # rows and columns at right angles


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A frame without a place in the patient: `why` is a bounded phrase, never a value."""

    instance: int
    frame: int
    why: str


@dataclass(frozen=True, slots=True)
class Plane:
    """One frame with its place, in LPS mm. `instance` counts in the caller's order, `frame` from 0."""

    instance: int
    frame: int
    position: tuple[float, float, float]  # centre of the first voxel
    along_row: tuple[float, float, float]  # unit vector in which the column index grows
    along_column: tuple[float, float, float]
    row_spacing_mm: float  # between rows
    column_spacing_mm: float
    thickness_mm: float  # 0.0 when not stated
    rows: int
    columns: int
    slope: float
    intercept: float
    series: str
    frame_of_reference: str
    order: tuple[float, ...]  # time, echo, diffusion, acquisition, instance: what tells repeated positions apart

    @property
    def normal(self) -> NDArray[np.float64]:
        """Unit vector at right angles to the plane."""
        return np.cross(self.along_row, self.along_column)

    def affine(self, step: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """4x4 from (column, row, slice, 1) to LPS mm (PS3.3 C.7.6.2.1.1). `step` (3,) leads to the next slice."""
        matrix = np.eye(4)
        matrix[:3, 0] = np.multiply(self.along_row, self.column_spacing_mm)
        matrix[:3, 1] = np.multiply(self.along_column, self.row_spacing_mm)
        matrix[:3, 2] = self.normal * (self.thickness_mm or 1.0) if step is None else step
        matrix[:3, 3] = self.position
        return matrix


def planes_of(dataset: Dataset, instance: int) -> Iterator[Plane | Unplaced]:
    """Every frame of one image object, in order. Raises nothing for what is in the data set: see Unplaced."""
    try:
        frames = int(dataset.get("NumberOfFrames") or 1)
    except (TypeError, ValueError):
        yield Unplaced(instance, 0, "number of frames")
        return
    shared = _first(dataset, "SharedFunctionalGroupsSequence")
    per_frame = dataset.get("PerFrameFunctionalGroupsSequence") or []
    why = _refused(dataset, frames, len(per_frame))
    for frame in range(frames):
        if why:
            yield Unplaced(instance, frame, why)
            continue
        groups = [group for group in (per_frame[frame] if len(per_frame) else None, shared) if group is not None]
        try:
            yield _plane(dataset, groups, instance, frame)
        except _Missing as missing:
            yield Unplaced(instance, frame, str(missing))
        except (TypeError, ValueError, OverflowError, AttributeError, KeyError):
            yield Unplaced(instance, frame, "geometry cannot be read")


class _Missing(Exception):
    """What a frame lacks to have a place."""


def _refused(dataset: Dataset, frames: int, groups: int) -> str:
    """Why no frame of this object can have a place, "" when nothing says so."""
    if (dataset.get("SamplesPerPixel") or 1) != 1:
        return "colour"
    kinds = [str(one).upper() for one in _several(dataset.get("ImageType"))]
    if "MOSAIC" in kinds:
        return "mosaic of slices"
    if "LOCALIZER" in kinds and dataset.get("Modality") == "CT":
        return "projection"
    if groups not in (0, frames):
        return "functional groups do not match the frames"
    if frames > 1 and not groups:
        return "several frames without a place each"
    return ""


def _plane(dataset: Dataset, groups: list[Dataset], instance: int, frame: int) -> Plane:
    position = _vector(_value(dataset, groups, "PlanePositionSequence", "ImagePositionPatient"), 3, "position")
    orientation = _vector(
        _value(dataset, groups, "PlaneOrientationSequence", "ImageOrientationPatient"), 6, "orientation"
    )
    spacing = _vector(_value(dataset, groups, "PixelMeasuresSequence", "PixelSpacing"), 2, "pixel spacing")
    along_row, along_column = np.array(orientation[:3]), np.array(orientation[3:])
    lengths = np.linalg.norm(along_row), np.linalg.norm(along_column)
    if not all(abs(length - 1) < 0.01 for length in lengths) or abs(along_row @ along_column) > MAX_ANGLE_COSINE:
        raise _Missing("orientation is not at right angles")
    if not all(0 < one < LARGEST_MM for one in spacing):
        raise _Missing("pixel spacing")
    rescale = "PixelValueTransformationSequence"
    slope, intercept = (
        _number(_value(dataset, groups, rescale, keyword), default)
        for keyword, default in (("RescaleSlope", 1.0), ("RescaleIntercept", 0.0))
    )
    if slope == 0:
        raise _Missing("rescale slope of zero")
    return Plane(
        instance=instance,
        frame=frame,
        position=(position[0], position[1], position[2]),
        along_row=tuple((along_row / lengths[0]).tolist()),
        along_column=tuple((along_column / lengths[1]).tolist()),
        row_spacing_mm=spacing[0],
        column_spacing_mm=spacing[1],
        thickness_mm=abs(_number(_value(dataset, groups, "PixelMeasuresSequence", "SliceThickness"), 0.0)),
        rows=int(dataset.Rows),
        columns=int(dataset.Columns),
        slope=slope,
        intercept=intercept,
        series=str(dataset.get("SeriesInstanceUID", "")),
        frame_of_reference=str(dataset.get("FrameOfReferenceUID", "")),
        order=_order(dataset, groups, frame),
    )


def _order(dataset: Dataset, groups: list[Dataset], frame: int) -> tuple[float, ...]:
    content, echo, diffusion = "FrameContentSequence", "MREchoSequence", "MRDiffusionSequence"
    values = (
        _value(dataset, groups, content, "TemporalPositionIndex", "TemporalPositionIdentifier"),
        _value(dataset, groups, echo, "EffectiveEchoTime", "EchoTime"),
        _value(dataset, groups, diffusion, "DiffusionBValue"),
        dataset.get("AcquisitionNumber"),
        dataset.get("InstanceNumber"),
    )
    return (*(_number(value, 0.0) for value in values), float(frame))


def _value(dataset: Dataset, groups: list[Dataset], sequence: str, *keywords: str) -> Any:
    """The value in the frame's own group, else the shared one, else at top level. The last keyword is the classic."""
    for group in groups:
        item = _first(group, sequence)
        if item is not None and item.get(keywords[0]) is not None:
            return item.get(keywords[0])
    return dataset.get(keywords[-1])


def _first(dataset: Dataset, sequence: str) -> Dataset | None:
    items = dataset.get(sequence)
    return items[0] if items else None


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value) if hasattr(value, "__iter__") else [value]


def _vector(value: Any, length: int, what: str) -> list[float]:
    numbers = [float(one) for one in _several(value)]
    if len(numbers) != length:
        raise _Missing(f"no {what}")
    if not all(math.isfinite(one) and abs(one) < LARGEST_MM for one in numbers):
        raise _Missing(f"{what} is not a place")
    return numbers


def _number(value: Any, default: float) -> float:
    if value is None or value == "":
        return default
    number = float(value)
    if not math.isfinite(number):
        raise _Missing("a number that is none")
    return number
