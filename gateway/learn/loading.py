"""Pixels of one scan out of its files, and the masks that a segmentation (PS3.3 A.51) gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydicom.dataset import Dataset

from gateway.frames import EncodedImage
from gateway.volumes import Turn
from models.cohorts.cohort import Pixels

HU = -1024.0, 3071.0
WHITE_PERCENTILE = 99.9
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of one file; `instance` is its SOP Instance UID."""

    path: Path
    frame: int
    instance: str
    slope: float = 1.0
    intercept: float = 0.0


@dataclass(frozen=True, slots=True)
class StackOf:
    """A volume. `shape` (slices, rows, columns) as acquired; `spacing_mm` along the axes of the turned array."""

    frames: tuple[Frame, ...]
    turn: Turn
    spacing_mm: tuple[float, ...]
    modality: str
    shape: tuple[int, int, int]

    def load(self) -> Pixels:
        """(slices, rows, columns), 0 to 1. Raises Hold."""
        planes, depth = [], 0
        opened: tuple[Path, EncodedImage] | None = None
        try:
            for frame in self.frames:
                if opened is None or opened[0] != frame.path:
                    if opened:
                        opened[1].close()
                    opened = frame.path, EncodedImage.open(frame.path)
                image = opened[1]
                planes.append(image.stored(frame.frame).astype(np.float32) * frame.slope + frame.intercept)
                depth = image.bits_stored
        finally:
            if opened:
                opened[1].close()
        plain = all(one.slope == 1 and one.intercept == 0 for one in self.frames)
        volume = _scaled(np.stack(planes).astype(np.float32), self.modality, depth, plain=plain)
        return np.asarray(self.turn.of(volume), np.float32)


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame by itself: (rows, columns). `colour`: of three samples."""

    frame: Frame
    spacing_mm: tuple[float, ...] | None
    modality: str
    colour: bool = False

    def load(self) -> Pixels:
        """(rows, columns), 0 to 1, larger is brighter; colour becomes grey (ITU-R 601). Raises Hold."""
        with EncodedImage.open(self.frame.path) as image:
            if image.samples == 3 or image.photometric == "PALETTE COLOR":
                shown = Image.fromarray(np.asarray(image.shown(self.frame.frame)))
                return np.asarray(shown.convert("L"), np.float32) / np.float32(255)
            slope, intercept = (
                float(image.dataset.get(keyword) or default)
                for keyword, default in (("RescaleSlope", 1.0), ("RescaleIntercept", 0.0))
            )
            values = image.stored(self.frame.frame).astype(np.float32) * slope + intercept
            plain = slope == 1 and intercept == 0
            found = _scaled(values.astype(np.float32), self.modality, image.bits_stored, plain=plain)
            return np.float32(1) - found if image.photometric == "MONOCHROME1" else found

    def load_colour(self) -> Pixels:
        """(rows, columns, 3), red, green, blue, 0 to 1, of a picture of three samples. Raises Hold."""
        with EncodedImage.open(self.frame.path) as image:
            return np.asarray(image.shown(self.frame.frame), np.float32) / np.float32(255)


def _scaled(values: Pixels, modality: str, bits: int, *, plain: bool) -> Pixels:
    """0 to 1. `plain`: the header rescales nothing."""
    low, high = float(values.min()), float(values.max())
    if not plain and low >= 0 and high <= 1:
        return values
    if modality == "CT":
        return np.asarray(((values - HU[0]) / (HU[1] - HU[0])).clip(0, 1), np.float32)
    if plain and bits == 8 and low >= 0:
        return values / np.float32(255)
    white = float(np.percentile(values, WHITE_PERCENTILE))
    dark = min(low, 0.0)
    return np.asarray(((values - dark) / max(white - dark, 1e-6)).clip(0, 1), np.float32)


def instances_of(dataset: Dataset) -> set[str]:
    """SOP Instance UIDs that the frames of a segmentation refer to."""
    return {_refers(groups)[0] for groups in dataset.get("PerFrameFunctionalGroupsSequence") or []} - {""}


def mask_of(path: Path, dataset: Dataset, source: StackOf | Picture) -> Iterator[tuple[str, Callable[[], Bools]]]:
    """Label and mask of each segment of a binary segmentation of this scan; a segment without frames is empty."""
    if dataset.get("SegmentationType") != "BINARY":
        return
    own = {(one.instance, one.frame): at for at, one in enumerate(_frames(source))}
    places: dict[int, list[tuple[int, int]]] = {}  # by segment: frame of the segmentation, slice of the scan
    for frame, groups in enumerate(dataset.get("PerFrameFunctionalGroupsSequence") or []):
        instance, source_frame, segment = _refers(groups)
        if (instance, source_frame) in own:
            places.setdefault(segment, []).append((frame, own[instance, source_frame]))
    if not places:
        return
    for item in dataset.get("SegmentSequence") or []:
        label, at = str(item.get("SegmentLabel") or ""), places.get(int(item.get("SegmentNumber") or 0), [])
        if label:
            yield label, partial(_mask, path, tuple(at), source)


def _frames(source: StackOf | Picture) -> tuple[Frame, ...]:
    return source.frames if isinstance(source, StackOf) else (source.frame,)


def _refers(groups: Dataset) -> tuple[str, int, int]:
    """SOP Instance UID and frame (from 0) of the source, and segment, of one frame; ("", 0, 0) if it says none."""
    try:
        source = groups.DerivationImageSequence[0].SourceImageSequence[0]
        segment = groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber
        number = source.get("ReferencedFrameNumber") or 1
        frame = int(number if isinstance(number, int | str) else number[0]) - 1
        return str(source.ReferencedSOPInstanceUID), frame, int(segment)
    except (AttributeError, IndexError, TypeError):
        return "", 0, 0


def _mask(path: Path, places: tuple[tuple[int, int], ...], source: StackOf | Picture) -> Bools:
    """Of the shape that `source.load` gives."""
    with EncodedImage.open(path) as image:
        size = (image.rows, image.columns)
        stacked = np.zeros((len(_frames(source)), *size), np.bool_)
        for frame, index in places:
            stacked[index] |= image.stored(frame) > 0
    return np.asarray(source.turn.of(stacked) if isinstance(source, StackOf) else stacked[0], np.bool_)
