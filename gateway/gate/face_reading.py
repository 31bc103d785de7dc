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
from gateway.gate.pixel_views import palette_of
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

    def emission(self, instance: int) -> bool:
        """True where values are the uptake of a tracer, in which skin is faint."""
        return str(self.datasets[instance].get("Modality", "")) in ("PT", "NM")


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
    _palette: NDArray[np.float32] | None = field(default=None)

    def __call__(self, plane: Plane) -> NDArray[np.generic]:
        """Raises Unseen for what cannot be decoded, Hold("gate_failed") for a file that cannot be read."""
        return self.frame(plane.instance, plane.frame)

    def frame(self, instance: int, frame: int) -> NDArray[np.generic]:
        """One frame of one file; colour has a third axis."""
        with judging(self.names[instance]):
            if instance != self._number or self._frames is None:
                scan = scan_file(self.paths[instance], original=self.original)
                self._frames, self._number = top_frames(scan), instance
                self._palette = palette_of(self._frames.layout, {leaf.path: leaf for leaf in scan.leaves})
            if frame >= self._frames.layout.frames:
                raise Unseen(self._frames.layout.place, "fewer frames than the original has")
            words = self._frames.words(frame)
            return words if self._frames.layout.kind == "float" else stored_values(self._frames.layout, words)

    def coloured(self, instance: int, values: NDArray[np.generic]) -> NDArray[np.generic] | None:
        """(rows, columns, 3) of a frame of the file that was read last: its samples, or what its palette says; None
        for grey. Raises Unseen for a palette that cannot be read.
        """
        photometric = self.photometric(instance)
        if values.ndim == 3:
            return values
        if photometric != "PALETTE COLOR" or self._palette is None:
            return None
        palette = self._palette / max(float(self._palette.max()), 1.0) * 255
        return palette.astype(np.uint8)[np.clip(values.astype(np.int64), 0, len(palette) - 1)]

    def photometric(self, instance: int) -> str:
        """PhotometricInterpretation of the file that was read last. Raises Unseen for another one."""
        if self._frames is None or instance != self._number:
            raise Unseen("(0028,0004)", "no frame of this file was read")
        return self._frames.layout.photometric


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
