"""What a study holds for `deface`: volumes by frame of reference, frames beside them, and shapes drawn on them.

Geometry is read from the originals (header values may have been emptied since), stored values from the candidates:
what other stages removed from the pixels is not looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.errors import InvalidDicomError

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.pixels.stage import Instance
from gateway.volumes import Plane, Stack, Stray, Unplaced, planes_of, sort

SHAPES = ("ROIContourSequence", "SurfaceSequence", "TrackSetSequence", "EncapsulatedDocument")
DESCRIPTIONS = (
    "BodyPartExamined",
    "StudyDescription",
    "SeriesDescription",
    "ProtocolName",
    "RequestedProcedureDescription",
)
EMISSION = frozenset({"PT", "NM"})
HEAD_WORDS = (
    *("HEAD", "BRAIN", "SKULL", "FACE", "FACIAL", "SINUS", "ORBIT", "CRANI", "CEREBR", "NEURO", "PITUIT", "MAXILL"),
    *("KOPF", "SCHAEDEL", "SCHÄDEL", "HIRN", "GESICHT", "TETE", "TÊTE", "CRÂN", "CABEZA", "TESTA"),
)
FAILURES = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    NotImplementedError,
    InvalidDicomError,
)


@dataclass(frozen=True)
class Space:
    """One frame of reference (or, where none is stated, one series): its volumes, the planes that are in none of them,
    and why not, by number of the instance.
    """

    stacks: tuple[Stack, ...]
    planes: tuple[Plane, ...]
    reasons: Mapping[int, str]


@dataclass(frozen=True)
class Survey:
    """Numbers of instances: `unplaced` have a frame without a place (and why), `shapes` draw surfaces, `hounsfield` are
    CT, `emission` are PET and other pictures of a tracer.

    `suspected` are heads, or infants, by their header: evidence against a head counts less there. No header counts as
    evidence that something is no head.
    """

    spaces: tuple[Space, ...]
    unplaced: Mapping[int, str]
    shapes: frozenset[int]
    hounsfield: frozenset[int]
    emission: frozenset[int]
    suspected: frozenset[int]


def survey(group: Sequence[Instance]) -> Survey:
    """Look at the headers of a study. Raises Hold("pixels_unreadable")."""
    listed: list[Plane | Unplaced] = []
    shapes, hounsfield, emission, suspected = set(), set(), set(), set()
    for number, instance in enumerate(group):
        dataset = _header(instance)
        if any(keyword in dataset for keyword in SHAPES):
            shapes.add(number)
        if str(dataset.get("Modality", "")) == "CT":
            hounsfield.add(number)
        if str(dataset.get("Modality", "")) in EMISSION:
            emission.add(number)
        if _is_suspected(dataset):
            suspected.add(number)
        if "Rows" in dataset:
            listed += planes_of(dataset, number)
    stacks, strays = sort(listed)
    keys = sorted(
        {_space(one) for stack in stacks for one in stack.planes[:1]} | {_space(s.plane) for s in strays if s.plane}
    )
    spaces = tuple(
        Space(
            tuple(stack for stack in stacks if _space(stack.planes[0]) == key),
            tuple(stray.plane for stray in strays if stray.plane is not None and _space(stray.plane) == key),
            {stray.instance: stray.why for stray in strays if stray.plane is not None and _space(stray.plane) == key},
        )
        for key in keys
    )
    return Survey(spaces, _unplaced(strays), *map(frozenset, (shapes, hounsfield, emission, suspected)))


def _is_suspected(dataset: Dataset) -> bool:
    words = " ".join(str(dataset.get(keyword, "")) for keyword in DESCRIPTIONS).upper()
    age = str(dataset.get("PatientAge", ""))
    infant = age.endswith(("D", "W", "M")) or age in ("000Y", "001Y", "002Y")
    return infant or any(word in words for word in HEAD_WORDS)


def _unplaced(strays: Sequence[Stray]) -> dict[int, str]:
    return {stray.instance: stray.why for stray in strays if stray.plane is None}


def _space(plane: Plane) -> tuple[str, str]:
    return (plane.frame_of_reference, "") if plane.frame_of_reference else ("", plane.series)


def _header(instance: Instance) -> Dataset:
    try:
        dataset = pydicom.dcmread(instance.original, stop_before_pixels=True)
        return (
            dataset
            if "SOPClassUID" in dataset
            else pydicom.dcmread(instance.original, stop_before_pixels=True, force=True)
        )
    except FAILURES:
        raise Hold("pixels_unreadable", at=instance.name) from None


@dataclass
class Pixels:
    """Stored values of a plane out of the candidates; keeps the last object open."""

    group: Sequence[Instance]
    _number: int = -1
    _image: EncodedImage | None = field(default=None)

    def __call__(self, plane: Plane) -> NDArray[np.generic]:
        """(rows, columns). Raises Hold("pixels_unreadable") and those of `EncodedImage.open`."""
        if plane.instance != self._number or self._image is None:
            self.close()
            self._image, self._number = EncodedImage.open(Path(self.group[plane.instance].candidate)), plane.instance
        if plane.frame >= self._image.frames:
            raise Hold("pixels_unreadable", at=f"{self.group[plane.instance].name}: fewer frames than stated")
        return self._image.stored(plane.frame)

    def close(self) -> None:
        """Let go of the object that is open."""
        if self._image is not None:
            self._image.close()
            self._image = None
