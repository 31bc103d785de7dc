"""What stands where a face was: air, the same region blurred past recognition, or an average face.

`remove`   air of this volume
`blur`     a mean over `BLUR_MM`, of the volume with everything at its 4 mm: features of a face are smaller
`reface`   the template's own tissue and air, in the brightness of this volume's soft tissue
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.deface_mask import Mask
from gateway.pixels.head_template import head_template
from gateway.pixels.head_tissue import tissue_of
from gateway.volumes import Plane, Volume

Mode = Literal["remove", "blur", "reface"]
BLUR_MM = 14.0  # standard deviation
CT_AIR_HU, CT_SOFT_HU = -1000.0, 40.0


@dataclass(frozen=True, slots=True)
class Levels:
    """Rescaled values of one volume's air and soft tissue."""

    air: float
    soft: float


def levels_of(values: NDArray[np.float32], tissue: NDArray[np.bool_], *, hounsfield: bool) -> Levels:
    """Known in Hounsfield units; elsewhere the medians outside and inside."""
    if hounsfield:
        return Levels(CT_AIR_HU, CT_SOFT_HU)
    air = float(np.median(values[~tissue])) if not tissue.all() else float(values.min())
    return Levels(air, float(np.median(values[tissue])) if tissue.any() else air)


@dataclass(frozen=True)
class Fill:
    """Gives the rescaled values that stand in a plane's mask."""

    mode: Mode
    mask: Mask
    levels: Levels
    volume: Volume | None = None  # for blur

    def on(self, plane: Plane, where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """One value for each True of `where`, row by row."""
        from scipy import ndimage

        if self.mode == "remove" or (self.mode == "blur" and self.volume is None):
            return np.full(int(where.sum()), self.levels.air)
        rows, columns = np.nonzero(where)
        index = np.stack([columns, rows, np.zeros(len(rows)), np.ones(len(rows))])
        patient = plane.affine() @ index
        if self.mode == "blur" and self.volume is not None:
            at = (np.linalg.inv(self.volume.affine) @ patient)[:3][::-1]
            return np.asarray(ndimage.map_coordinates(self.volume.values, at, order=1, mode="nearest"), np.float64)
        template = head_template()
        at = (np.linalg.inv(template.affine) @ self.mask.to_template @ patient)[:3][::-1]
        soft = float(np.median(template.t1[template.face & template.head]))
        share = (
            ndimage.map_coordinates(template.t1.astype(np.float32), at, order=1, mode="constant", prefilter=False)
            / soft
        )
        return np.asarray(self.levels.air + np.clip(share, 0, 1.2) * (self.levels.soft - self.levels.air), np.float64)


def blurred(volume: Volume) -> Volume:
    """A volume in which no feature of a face is left."""
    from scipy import ndimage

    sigma = BLUR_MM / volume.spacing_mm[::-1]
    return Volume(ndimage.gaussian_filter(volume.values, sigma, mode="nearest"), volume.affine)


def soft_tissue(volume: Volume, shown: Volume, *, hounsfield: bool) -> Levels:
    """Levels of a volume that was read at a coarse spacing. `shown` is what its tissue is found in (`lifted`)."""
    return levels_of(volume.values, tissue_of(shown, hounsfield=hounsfield), hounsfield=hounsfield)


def as_stored(
    values: NDArray[np.float64], plane: Plane, limits: tuple[float, float], kind: np.dtype[np.generic]
) -> NDArray[np.generic]:
    """Rescaled values as stored values of a frame, within what its bits can hold."""
    stored = np.clip((values - plane.intercept) / plane.slope, *limits)
    return stored.astype(kind) if kind.kind == "f" else np.rint(stored).astype(kind)
