"""The four forms in which the audit compares one and the same scan."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from models.preparation.registration import align, brain_of, resampled

Floats = NDArray[np.float32]
TISSUES = 3
SEED = 0  # of the mixture's first guess


def raw(volume_zyx: Floats, _spacing_mm: tuple[float, ...], _brain: NDArray[np.bool_] | None) -> Floats:
    """As it is."""
    return volume_zyx


def skull_stripped(volume_zyx: Floats, spacing_mm: tuple[float, ...], brain: NDArray[np.bool_] | None) -> Floats:
    """0 outside the brain; without a mask of its own, outside the aligned template's hull."""
    inside = brain if brain is not None else brain_of(volume_zyx, spacing_mm, align(volume_zyx, spacing_mm))
    return np.where(inside, volume_zyx, np.float32(0))


def registered(volume_zyx: Floats, spacing_mm: tuple[float, ...], brain: NDArray[np.bool_] | None) -> Floats:
    """Skull-stripped, and turned and shifted into the template's pose. The size of the head stays."""
    stripped = skull_stripped(volume_zyx, spacing_mm, brain)
    return resampled(stripped, spacing_mm, align(volume_zyx, spacing_mm))


def tissue_map(volume_zyx: Floats, spacing_mm: tuple[float, ...], brain: NDArray[np.bool_] | None) -> Floats:
    """Three classes of intensity in the brain, darkest 1/3 to brightest 1: scanner and contrast gone, shape left."""
    from sklearn.mixture import GaussianMixture

    stripped = skull_stripped(volume_zyx, spacing_mm, brain)
    inside = stripped > 0
    values = stripped[inside][:, None].astype(np.float64)
    if len(values) < TISSUES:
        raise ValueError("no brain is left to map")
    fitted = GaussianMixture(TISSUES, random_state=SEED, n_init=1).fit(values[:: max(1, len(values) // 20_000)])
    order = np.argsort(np.argsort(fitted.means_.ravel()))
    out = np.zeros(stripped.shape, np.float32)
    out[inside] = (order[fitted.predict(values)] + 1) / TISSUES
    return out


PREPARATIONS: dict[str, Callable[[Floats, tuple[float, ...], NDArray[np.bool_] | None], Floats]] = {
    "raw": raw,
    "skull-stripped": skull_stripped,
    "registered": registered,
    "tissue-mapped": tissue_map,
}


def prepare(
    name: str, volume_zyx: Floats, spacing_mm: tuple[float, ...], brain: NDArray[np.bool_] | None = None
) -> Floats:
    """(slices, rows, columns), 0 to 1, in one of `PREPARATIONS`, same size. Raises ValueError for what is no volume."""
    if volume_zyx.ndim != 3:
        raise ValueError("preparations are of volumes")
    return PREPARATIONS[name](np.asarray(volume_zyx, np.float32), spacing_mm, brain)
