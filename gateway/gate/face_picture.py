"""Faces in flat pictures: renderings of a head's surface and photographs, by the shading of an average face.

A weak detector, and stated as such: it finds faces seen from in front, lit from about where the camera is, of about a
seventh of the picture's width or more. Renderings of real heads' surfaces score 0.55 to 0.82 (median 0.7), the same
without their face, from behind and from the side 0.4 to 0.63, radiographs of the chest up to 0.59. It is evidence for
pictures of other things; what is a photograph by its modality is not judged by it but held.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gateway.gate.face_detector import EDGE, FILE
from gateway.gate.face_surface import GRID_MM

WIDTH = 32  # pixels of the model: a face that wide is looked for in a pyramid
SCALES = 1.15  # from one step of the pyramid to the next
LONGEST = 266  # pixels of the picture's long side at its finest step
SMOOTH, AROUND = 1.2, 6.0  # pixels, standard deviations
LEAST_CONTRAST = 0.01
LEAST_ENERGY = 0.3
SEEN = 0.62
LIGHTS = ((0.0, 0.0, 1.0), (0.0, 0.5, 0.87), (0.5, 0.0, 0.87), (-0.5, 0.0, 0.87))  # camera, above, either side

Map = NDArray[np.float32]
Slopes = tuple[Map, Map]


def face_score(grey: NDArray[np.generic]) -> float:
    """The best correlation with an average face, in 0..1; `SEEN` and more is a face. `grey` (rows, columns)."""
    from scipy import ndimage, signal

    image = np.nan_to_num(grey.astype(np.float32))
    low, high = np.percentile(image, (0.5, 99.5))
    if high <= low:
        return 0.0
    image = np.clip((image - low) / (high - low), 0, 1)
    zoom, best = min(1.0, LONGEST / max(image.shape)), 0.0
    rows, columns = _models()[0][0].shape
    while min(image.shape[0] * zoom / rows, image.shape[1] * zoom / columns) >= 1:
        small = ndimage.zoom(ndimage.gaussian_filter(image, max(0.0, 0.4 / zoom - 0.4)), zoom, order=1)
        if small.shape[0] >= rows and small.shape[1] >= columns:
            field = _slopes(small)
            own = signal.fftconvolve(field[0] ** 2 + field[1] ** 2, np.ones((rows, columns)), "valid")
            best = max(best, *(float(_correlation(field, own, model).max()) for model in _models()))
        zoom /= SCALES
    return best


def _slopes(image: Map) -> Slopes:
    """How brightness changes downwards and across, against how much it changes around there."""
    from scipy import ndimage

    down, across = np.gradient(ndimage.gaussian_filter(image, SMOOTH))
    contrast = np.sqrt(ndimage.gaussian_filter(down**2 + across**2, AROUND)) + LEAST_CONTRAST
    return (down / contrast).astype(np.float32), (across / contrast).astype(np.float32)


def _correlation(field: Slopes, own: Map, model: Slopes) -> Map:
    from scipy import signal

    energy = float(sum((one**2).sum() for one in model))
    both = sum(signal.fftconvolve(image, one[::-1, ::-1], "valid") for image, one in zip(field, model, strict=True))
    return np.asarray(both / np.sqrt(np.maximum(own, LEAST_ENERGY * energy) * energy), np.float32)


@cache
def _models() -> tuple[Slopes, ...]:
    """The average face under each light; first row on top."""
    from scipy import ndimage

    with np.load(FILE, allow_pickle=False) as stored:
        depth = stored["depth_mm"][::-1, EDGE + 2 : -EDGE - 2]
    down, across = np.gradient(ndimage.gaussian_filter(depth, 1.0), GRID_MM)
    length = np.sqrt(1 + down**2 + across**2)
    shaded = (np.clip((x * across + y * down + z) / length, 0, 1).astype(np.float32) for x, y, z in LIGHTS)
    return tuple(_slopes(ndimage.zoom(one, WIDTH / depth.shape[1], order=1)) for one in shaded)
