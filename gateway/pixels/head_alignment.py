"""A volume aligned with the template head, and how well: affine, by normalised mutual information.

    NMI(A, B) = (H(A) + H(B)) / H(A, B)      (Studholme, Hill and Hawkes 1999: does not reward a smaller overlap)

A = template, sampled over its head and the air around it; B = the volume at the same places. The measure fits T1, T2,
FLAIR, CT and PET alike. Sizes and shears far from those of heads cost (`PRIOR`), so that a fit cannot collapse into a
part of something else. Rigid from several poses at 8 mm, then affine at 8 and 4 mm, by Powell's method: no random
numbers, every sample used, so the same volume gives the same affine. Whether what was aligned is a head is judged by
`head_evidence`, never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.head_template import head_template
from gateway.pixels.head_tissue import tissue_of
from gateway.volumes import Volume

TOPS_MM = (0.0, -25.0, 25.0, 50.0)  # the vertex may be cut off, or what is highest may be no vertex
PITCHES = (-0.3, 0.0, 0.3)  # radians
TRIED_POSES, KEPT_POSES = 6, 2
BINS = 32
RING_MM, BELOW_MM = 14.0, -85.0  # air around the head that is sampled; lowest height (template LPS) that is
RADIUS_MM = 80.0  # a rotation, scale or shear of 1/80 moves the scalp by about 1 mm: parameters are in mm
PRIOR = 0.02  # cost in NMI of a scale or shear of 10 %
OUTSIDE = 0.1  # cost in NMI of a head wholly outside what was imaged
MIN_SHARE = 0.15  # of the template's samples that must lie in the volume
CENTRE_MM = np.array([0.0, -10.0, 10.0])  # of the template's cranium

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Alignment:
    """`to_patient` (4, 4) leads from template LPS mm to patient LPS mm; `nmi` in 1..2; `share` of samples imaged."""

    to_patient: Array
    nmi: float
    share: float

    @property
    def to_template(self) -> Array:
        """(4, 4) from patient LPS mm to template LPS mm."""
        return np.asarray(np.linalg.inv(self.to_patient), dtype=np.float64)


def align(volume: Volume, *, hounsfield: bool) -> Alignment | None:
    """Align with the template; None when the volume holds no tissue, or no pose puts a head into it."""
    tissue = tissue_of(volume, hounsfield=hounsfield)
    if tissue.sum() < 100:
        return None
    coarse, fine = (_Fit(volume, tissue, spacing, hounsfield=hounsfield) for spacing in (8.0, 4.0))
    starts = sorted(_starts(volume, tissue), key=coarse.cost)[:TRIED_POSES]
    poses = [found for start in starts if (found := coarse.improve(start, free=6, sweeps=3)) is not None]
    poses.sort(key=lambda pose: pose[0])
    fits = [fit for _, pose in poses[:KEPT_POSES] if (fit := coarse.improve(pose, free=12, sweeps=4)) is not None]
    if not fits:
        return None
    best = fine.improve(min(fits, key=lambda fit: fit[0])[1], free=12, sweeps=3)
    if best is None:
        return None
    nmi, share = fine.measure(best[1])
    return Alignment(_matrix(best[1]), nmi, share)


class _Fit:
    """The cost of parameters at one spacing.

    Parameters, in mm: translation (3), rotation * RADIUS (3), log scale * RADIUS (3), shear * RADIUS (3).
    """

    def __init__(self, volume: Volume, tissue: NDArray[np.bool_], spacing_mm: float, *, hounsfield: bool) -> None:
        from scipy import ndimage

        self._points, self._bins_of_template = _samples(spacing_mm)
        low, high = (-200.0, 300.0) if hounsfield else _range(volume.values, tissue)
        smooth = ndimage.gaussian_filter(np.clip(volume.values, low, high), 0.4 * spacing_mm / volume.spacing_mm[::-1])
        self._values = (smooth - low) * ((BINS - 1) / (high - low))
        self._to_index = np.linalg.inv(volume.affine)

    def measure(self, parameters: Array) -> tuple[float, float]:
        """(NMI, share of the samples that lie in the volume)."""
        from scipy import ndimage

        matrix = self._to_index @ _matrix(parameters)
        at = self._points @ matrix[:3, :3].T + matrix[:3, 3]
        limits = np.array(self._values.shape[::-1]) - 1
        inside = np.all((at >= 0) & (at <= limits), axis=1)
        share = float(inside.mean())
        if share < MIN_SHARE:
            return 1.0, share
        values = ndimage.map_coordinates(self._values, at[inside].T[::-1], order=1, prefilter=False, mode="nearest")
        return _nmi(self._bins_of_template[inside], values), share

    def cost(self, parameters: Array) -> float:
        """What is minimised: less mutual information, less of the head imaged, more strain and turning."""
        nmi, share = self.measure(parameters)
        strain, turn = parameters[6:] / (0.1 * RADIUS_MM), parameters[3:6] / (0.6 * RADIUS_MM)
        return -nmi + OUTSIDE * (1 - share) + PRIOR * float(strain @ strain + turn @ turn)

    def improve(self, start: Array, free: int, sweeps: int) -> tuple[float, Array] | None:
        """(cost, parameters) with the first `free` parameters optimised; None when no head lies in the volume."""
        from scipy import optimize

        fixed = start[free:]
        found = optimize.minimize(
            lambda parameters: self.cost(np.concatenate([parameters, fixed])),
            start[:free],
            method="Powell",
            options={"direc": np.eye(free) * 4.0, "xtol": 0.02, "ftol": 2e-4, "maxiter": sweeps},
        )
        parameters = np.concatenate([found.x, fixed])
        return None if self.measure(parameters)[1] < MIN_SHARE else (float(found.fun), parameters)


def _nmi(first: NDArray[np.int64], second: NDArray[np.float32]) -> float:
    """Of bins and of values in bin units; a value is shared by the two bins around it, so the measure is smooth."""
    low = np.minimum(second.astype(np.int64), BINS - 2)
    upper = second - low
    counts = np.bincount(first * BINS + low, 1 - upper, BINS * BINS) + np.bincount(
        first * BINS + low + 1, upper, BINS * BINS
    )
    joint = counts.reshape(BINS, BINS) / len(first)
    both = _entropy(joint.ravel())
    return (_entropy(joint.sum(0)) + _entropy(joint.sum(1))) / both if both > 0 else 1.0


def _entropy(shares: Array) -> float:
    positive = shares[shares > 1e-12]
    return float(-(positive * np.log(positive)).sum())


def _range(values: NDArray[np.float32], tissue: NDArray[np.bool_]) -> tuple[float, float]:
    low, high = float(np.percentile(values, 0.5)), float(np.percentile(values[tissue], 99))
    return low, max(high, low + 1e-6)


@cache
def _samples(spacing_mm: float) -> tuple[Array, NDArray[np.int64]]:
    """Template LPS mm (samples, 3) and the bin of the template's value there."""
    from scipy import ndimage

    template = head_template()
    step = round(spacing_mm / template.spacing_mm)
    near = ndimage.binary_dilation(template.head, iterations=round(RING_MM / template.spacing_mm)) & template.valid
    smooth = ndimage.gaussian_filter(template.t1.astype(np.float32), 0.4 * step)
    index = np.argwhere(near[::step, ::step, ::step]) * step  # every other one of them: a checkerboard
    points = index[:, ::-1] * template.spacing_mm + np.array(template.origin_mm)
    kept = (points[:, 2] > BELOW_MM) & ((index // step).sum(1) % 2 == 0)
    values = smooth[tuple(index[kept].T)]
    return points[kept], np.minimum(values * (BINS / 256), BINS - 1).astype(np.int64)


def _starts(volume: Volume, tissue: NDArray[np.bool_]) -> list[Array]:
    """Rigid starts: the middle of what is highest on the template's middle, its top on the template's."""
    points = np.argwhere(tissue)[:, ::-1] @ volume.affine[:3, :3].T + volume.affine[:3, 3]
    top = float(np.percentile(points[:, 2], 99.8))
    upper = points[points[:, 2] > top - 130]
    middle = (np.percentile(upper, 2, axis=0) + np.percentile(upper, 98, axis=0)) / 2
    template = head_template()
    head = np.argwhere(template.head)[:, ::-1] * template.spacing_mm + np.array(template.origin_mm)
    head = head[head[:, 2] > head[:, 2].max() - 130]
    target = (head.min(0) + head.max(0)) / 2
    starts = []
    for above in TOPS_MM:
        shift = np.array([middle[0] - target[0], middle[1] - target[1], top + above - head[:, 2].max()])
        starts += [np.concatenate([shift, [pitch * RADIUS_MM, 0, 0], np.zeros(6)]) for pitch in PITCHES]
    return starts


def _matrix(parameters: Array) -> Array:
    """4x4 from template LPS mm to patient LPS mm."""
    shift, turn, scale, shear = parameters[:3], *(parameters[3:] / RADIUS_MM).reshape(3, 3)
    (cx, cy, cz), (sx, sy, sz) = np.cos(turn), np.sin(turn)
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    sheared = np.array([[1, shear[0], shear[1]], [0, 1, shear[2]], [0, 0, 1]]) @ np.diag(np.exp(scale))
    matrix = np.eye(4)
    matrix[:3, :3] = about_z @ about_y @ about_x @ sheared
    matrix[:3, 3] = shift + CENTRE_MM - matrix[:3, :3] @ CENTRE_MM
    return matrix
