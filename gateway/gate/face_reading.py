"""The originals and candidates of a study as volumes, read with the gate's own decoders.

Where frames lie is taken from the originals for both sides: a candidate is its original with other pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom import Dataset

from gateway.gate.bytescan import Scan, scan_file
from gateway.gate.decoding import Frames, stored_values
from gateway.gate.pixel_layout import EXTENDED_OFFSETS, Unseen, frame_streams, images, layout_of
from gateway.gate.reading import Pair, judging
from gateway.gate.walk import tag_path
from gateway.volumes import Plane, Stack, Stray, Unplaced, planes_of, sort


@dataclass(frozen=True)
class Headers:
    """`stacks` and `strays` of all pairs; `datasets` are the originals' headers, in the order of the pairs."""

    stacks: tuple[Stack, ...]
    strays: tuple[Stray, ...]
    datasets: tuple[Dataset, ...]

    def hounsfield(self, instance: int) -> bool:
        """True where rescaled values are Hounsfield units."""
        return str(self.datasets[instance].get("Modality", "")) == "CT"


def headers_of(pairs: Sequence[Pair]) -> Headers:
    """Raises Hold("gate_failed") for a header that cannot be read."""
    planes: list[Plane | Unplaced] = []
    datasets = []
    for number, pair in enumerate(pairs):
        with judging(pair.name):
            dataset = pydicom.dcmread(pair.original, stop_before_pixels=True)
            if "Rows" in dataset:
                planes += planes_of(dataset, number)
            datasets.append(dataset)
    stacks, strays = sort(planes)
    return Headers(tuple(stacks), tuple(strays), tuple(datasets))


@dataclass
class Side:
    """Stored values of one side; keeps the last file open. Called with a plane it gives (rows, columns)."""

    paths: Sequence[Path]
    names: Sequence[str]
    original: bool
    _number: int = field(default=-1)
    _frames: Frames | None = field(default=None)

    def __call__(self, plane: Plane) -> NDArray[np.generic]:
        """Raises Unseen for what cannot be decoded, Hold("gate_failed") for a file that cannot be read."""
        return self.frame(plane.instance, plane.frame)

    def frame(self, instance: int, frame: int) -> NDArray[np.generic]:
        """One frame of one file; colour has a third axis."""
        with judging(self.names[instance]):
            if instance != self._number or self._frames is None:
                self._frames, self._number = (
                    top_frames(scan_file(self.paths[instance], original=self.original)),
                    instance,
                )
            if frame >= self._frames.layout.frames:
                raise Unseen(self._frames.layout.place, "fewer frames than the original has")
            words = self._frames.words(frame)
            return words if self._frames.layout.kind == "float" else stored_values(self._frames.layout, words)


def top_frames(scan: Scan) -> Frames:
    """The pixel data of an object. Raises Unseen when it has none or one that cannot be laid out."""
    for prefix, leaves in images(scan):
        if prefix:
            continue
        by_path = {leaf.path: leaf for leaf in scan.leaves}
        layout = layout_of(scan, prefix, leaves, by_path)
        streams = None
        if leaves[0].fragment:
            streams = frame_streams(layout, leaves, by_path.get(tag_path(EXTENDED_OFFSETS)))
        return Frames(layout, leaves, streams)
    raise Unseen(tag_path(0x7FE00010), "no pixel data")
