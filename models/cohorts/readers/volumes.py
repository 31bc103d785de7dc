"""Volumes of NIfTI (.nii, .nii.gz, .hdr/.img) and Analyze files, turned to the axes of a `Scan`.

A file stores voxels in any order, and its affine says which. Axes are permuted and flipped, never resampled: an oblique
volume takes the nearest axes. nibabel is loaded when a volume is.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.cohorts.cohort import Pixels
from models.cohorts.readers.tables import LayoutError

SUFFIXES = (".nii", ".nii.gz", ".hdr")
SCAN_AXES = ("L", "P", "S")  # where x, y, z of the file must grow to; the array is then (z, y, x)
WHITE_PERCENTILE = 99.9  # of the voxels above black: a few bright vessels must not darken the head
Affine = NDArray[np.float64]


def volume(path: Path, orientation: Affine | None = None) -> Pixels:
    """(slices, rows, columns), 0 to 1, axes as in `Scan`. Black is 0 (or the least value, where that is negative).

    `orientation` (4, 4) stands in for the affine of a file that has none. Raises LayoutError.
    """
    voxels = _canonical(path, orientation).astype(np.float32)
    voxels = np.nan_to_num(voxels, nan=0.0, posinf=0.0, neginf=0.0)
    black = min(0.0, float(voxels.min()))
    above = voxels[voxels > black]
    if not above.size:
        return np.zeros_like(voxels)
    white = float(np.percentile(above, WHITE_PERCENTILE))
    return np.asarray(np.clip((voxels - np.float32(black)) / np.float32(white - black), 0, 1), np.float32)


def mask(path: Path, chosen: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = None) -> NDArray[np.bool_]:
    """(slices, rows, columns), axes as in `Scan`: voxels that are `chosen` by value, all but 0 without it."""
    stored = _canonical(path, None)
    return np.ascontiguousarray(stored != 0 if chosen is None else chosen(stored))


def spacing_mm(path: Path, orientation: Affine | None = None) -> tuple[float, ...]:
    """(slices, rows, columns) from the header alone. Raises LayoutError."""
    from nibabel.affines import voxel_sizes

    affine = affine_of(opened(path), orientation)
    order = _axes(affine, path)
    sizes = voxel_sizes(affine)  # type: ignore[no-untyped-call]
    along = [0.0, 0.0, 0.0]
    for file_axis, (to, _) in enumerate(order):
        along[2 - int(to)] = round(float(sizes[file_axis]), 6)
    return tuple(along)


def affine_of(image: Any, orientation: Affine | None) -> Affine:
    """(4, 4) in mm to right, front and up. `orientation` with the file's zooms where the header has no affine."""
    header = image.header
    codes = [int(header[key]) for key in ("qform_code", "sform_code") if key in header]
    if any(codes) or orientation is None:
        return np.asarray(image.affine, np.float64)
    zooms = np.abs(np.asarray(header.get_zooms()[:3], np.float64))
    return orientation @ np.diag([*zooms, 1.0])


def _canonical(path: Path, orientation: Affine | None) -> NDArray[Any]:
    image = opened(path)
    try:
        stored = np.asanyarray(image.dataobj)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise _unreadable(path, error) from error
    while stored.ndim > 3 and stored.shape[-1] == 1:
        stored = stored[..., 0]
    if stored.dtype.fields:
        raise LayoutError(f"{path.name} is a colour volume; a scan has one value a voxel")
    if stored.ndim != 3:
        raise LayoutError(f"{path.name} holds {stored.ndim} axes, not the three of a volume")
    return canonical_of(stored, affine_of(image, orientation), path)


def canonical_of(stored: NDArray[Any], affine: Affine, path: Path) -> NDArray[Any]:
    """An array of the file's axes (x, y, z) turned to those of `Scan`; `path` is named in errors."""
    from nibabel.orientations import apply_orientation

    turned = apply_orientation(stored, _axes(affine, path))  # type: ignore[no-untyped-call]
    return np.ascontiguousarray(np.transpose(turned, (2, 1, 0)))


def _axes(affine: Affine, path: Path) -> NDArray[np.float64]:
    from nibabel.orientations import axcodes2ornt, io_orientation, ornt_transform

    now = io_orientation(affine)  # type: ignore[no-untyped-call]
    if not np.isfinite(now).all():
        raise LayoutError(f"{path.name} has an affine without three axes")
    wanted = axcodes2ornt(SCAN_AXES)  # type: ignore[no-untyped-call]
    return np.asarray(ornt_transform(now, wanted), np.float64)  # type: ignore[no-untyped-call]


def opened(path: Path) -> Any:
    """An image of nibabel: header read, voxels not. Raises LayoutError."""
    import nibabel as nib

    try:
        return nib.load(path)
    except (OSError, EOFError, ValueError, zlib.error, nib.filebasedimages.ImageFileError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> LayoutError:
    what = (
        "its .img is missing"
        if isinstance(error, FileNotFoundError) and path.suffix == ".hdr"
        else type(error).__name__
    )
    return LayoutError(f"the volume {path.name} cannot be read ({what}); fetch it again")
