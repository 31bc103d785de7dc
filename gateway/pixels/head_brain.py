"""Where this person's brain lies, as far as the volume itself says: it grows out of the template's brain.

The inner part of the template's brain, laid over the volume by its alignment, says how bright brain is here, place by
place (coils are not even). What is as bright and hangs together with it, through nothing narrower than twice
`OPEN_MM`, near where brains lie at all, is brain: cortical bone and air are dark in every MR contrast and in PET, and
out of the range of brain in CT. Orbits and marrow may be taken for brain as well: that costs facial skin, never brain.
Dark lesions at the surface are closed over up to `CLOSE_MM`. An estimate that misses much of the template's brain is
none.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.head_template import head_template
from gateway.volumes import Volume

CORE_MM = 6.0  # inside the template's brain
BRAIN_HU = (-15.0, 110.0)  # ventricles to fresh blood; bone is above, fat below
LEAST_BRIGHT = 0.6  # of brain around there: grey and white matter differ by less in T1, T2, FLAIR and FDG
CORE_BRIGHT = (0.4, 2.0)  # of the core's median: ventricles and vessels say little about brain
EVEN_MM = 20.0  # how far brightness is taken to be the same; standard deviation
OPEN_MM, CLOSE_MM = 6.0, 8.0
REGAINED = 4  # voxels of 2 mm: gyri that opening cut off
LEAST_FOUND = 0.85  # of the template's brain, where imaged: heads were measured to give 0.93 and more
REACH_MM, REACH_BEFORE_MM = 13.0, 26.0  # of the template's brain

Bools = NDArray[np.bool_]


def own_brain(volume: Volume, to_template: NDArray[np.float64], *, hounsfield: bool) -> Bools | None:
    """[z, y, x] on the template's grid, at least the template's own brain; None where the volume does not tell.

    `volume` as its head was aligned in (PET `lifted`), `to_template` (4, 4) from patient to template LPS mm.
    """
    from scipy import ndimage

    template, box = head_template(), _box()
    mm, brain = template.spacing_mm, template.brain[box]
    values, imaged = _resampled(volume, to_template)
    core = _core()[box] & imaged
    if core.sum() < 0.25 * _core().sum():
        return None
    likely = (_zone()[box] & imaged & _as_bright(values, core, hounsfield=hounsfield)) | core
    inner = ndimage.distance_transform_edt(likely, sampling=mm) > OPEN_MM
    opened = ndimage.distance_transform_edt(~inner, sampling=mm) <= OPEN_MM
    labels, _ = ndimage.label(opened | core)
    found = labels == np.argmax(np.bincount(labels[core]))
    found |= likely & ndimage.binary_dilation(found, iterations=REGAINED)
    if (found & brain & imaged).sum() < LEAST_FOUND * (brain & imaged).sum():
        return None
    wide = ndimage.distance_transform_edt(~(found | brain), sampling=mm) <= CLOSE_MM
    closed = ndimage.distance_transform_edt(wide, sampling=mm) > CLOSE_MM
    own = np.zeros(template.brain.shape, bool)
    own[box] = closed | found | brain
    return own


def _as_bright(values: NDArray[np.float32], core: Bools, *, hounsfield: bool) -> Bools:
    from scipy import ndimage

    if hounsfield:
        return np.asarray((values > BRAIN_HU[0]) & (values < BRAIN_HU[1]), bool)
    middle = float(np.median(values[core]))
    telling = core & (values > CORE_BRIGHT[0] * middle) & (values < CORE_BRIGHT[1] * middle)
    sigma = EVEN_MM / head_template().spacing_mm
    weight = ndimage.gaussian_filter(telling.astype(np.float32), sigma)
    there = ndimage.gaussian_filter(np.where(telling, values, 0), sigma)
    around = np.where(weight > 1e-4, there / np.maximum(weight, 1e-4), middle)
    return np.asarray(values > LEAST_BRIGHT * around, bool)


def _resampled(volume: Volume, to_template: NDArray[np.float64]) -> tuple[NDArray[np.float32], Bools]:
    """(values, imaged) in `_box` of the template's grid, linear."""
    from scipy import ndimage

    template, box = head_template(), _box()
    shift = np.eye(4)
    shift[:3, 3] = [one.start for one in reversed(box)]
    matrix = np.linalg.inv(volume.affine) @ np.linalg.inv(to_template) @ template.affine @ shift
    shape = tuple(one.stop - one.start for one in box)
    order = matrix[:3, :3][::-1, ::-1], matrix[:3, 3][::-1]
    values, imaged = (
        ndimage.affine_transform(
            one, *order, output_shape=shape, order=1, mode="constant", cval=outside, prefilter=False
        )
        for one, outside in ((volume.values, float(volume.values.min())), (np.ones_like(volume.values), 0.0))
    )
    return values, imaged > 0.99


@cache
def _core() -> Bools:
    from scipy import ndimage

    template = head_template()
    return np.asarray(ndimage.distance_transform_edt(template.brain, sampling=template.spacing_mm) > CORE_MM, bool)


@cache
def _zone() -> Bools:
    return around_brain(head_template().brain, REACH_MM, REACH_BEFORE_MM)


@cache
def _box() -> tuple[slice, slice, slice]:
    """The zone and what closing needs around it."""
    from scipy import ndimage

    (found,) = ndimage.find_objects(_zone().astype(np.uint8))
    pad = round(CLOSE_MM / head_template().spacing_mm) + 1
    z, y, x = (
        slice(max(0, one.start - pad), min(count, one.stop + pad))
        for one, count in zip(found, _zone().shape, strict=True)
    )
    return z, y, x


def around_brain(brain: Bools, mm: float, before_mm: float) -> Bools:
    """Within `mm` of a brain on the template's grid, and within half an ellipsoid of `before_mm` straight before it."""
    from scipy import ndimage

    spacing = head_template().spacing_mm
    around = ndimage.distance_transform_edt(~brain, sampling=spacing) <= mm
    flat = (spacing, spacing * mm / before_mm, spacing)  # z, y, x
    distance, nearest = ndimage.distance_transform_edt(~brain, sampling=flat, return_indices=True)
    before = nearest[1] >= np.arange(brain.shape[1])[None, :, None]  # y grows to the back
    return np.asarray(around | ((distance <= mm) & before), bool)
