"""One picture through `models.resynthesis`: stored values in, a new picture at a level, stored values out.

Every picture goes by itself: what is made of it depends on nothing else of the study, so a late instance changes
nothing that was made before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.pixels.keyed_noise import keyed_noise
from gateway.pixels.resynthesize_card import calibrated
from gateway.pixels.resynthesize_markers import drawn, marks_of
from gateway.pixels.resynthesize_planes import layout_written, planes_of, stored_of
from gateway.pixels.stage import Instance
from gateway.pixels.stage_card import AtWork

if TYPE_CHECKING:
    from models.resynthesis import AdjustableParts
    from models.resynthesis.domain import PictureDomain

NEAR = 0.8  # of the way to a limit: many such pictures are drift


@dataclass(frozen=True, slots=True)
class Made:
    """`stored` (frames, rows, columns[, 3]) as they are written, of the object's kind; `near`: frames that lie near a
    limit of the domain.
    """

    stored: NDArray[np.generic]
    near: int


@dataclass(frozen=True, slots=True)
class Manner:
    """How pictures are made: at which `level`, by the noise of which `seed`. `promised`: a target was asked for, so the
    calibrated domain counts as well. `redraw`: side and projection are drawn.
    """

    level: float
    seed: bytes
    promised: bool
    redraw: bool


def make(instance: Instance, header: Dataset, work: AtWork[AdjustableParts, PictureDomain], manner: Manner) -> Made:
    """Every frame of one picture. Raises Hold: outside_domain, pixels_unreadable."""
    uid, frames, near = str(header.get("SOPInstanceUID", "")), [], 0
    marks = marks_of(header) if manner.redraw else ()
    side = str(header.get("ImageLaterality") or header.get("Laterality") or "").upper()
    with EncodedImage.open(instance.candidate) as image:
        layout = image.layout
        if layout is None:
            raise Hold("pixels_unreadable", at=f"{instance.name}: Rows without pixel data")
        written = layout_written(image, layout)
        for frame, values in enumerate(_frames(image, header)):
            made, nearness = _anew(planes_of(values, layout), work, manner, f"{uid}/{frame}", marks, side)
            near += nearness > NEAR
            frames.append(stored_of(made, written))
    return Made(np.stack(frames), near)


def _frames(image: EncodedImage, header: Dataset) -> Iterator[NDArray[np.float64]]:
    """Stored values; padding of grey (PS3.3 C.7.5.1.1.2) counts as what is darkest or brightest beside it."""
    padding = header.get("PixelPaddingValue")
    for frame in range(image.frames):
        values = np.asarray(image.stored(frame), np.float64)
        if isinstance(padding, int) and values.ndim == 2:
            first, last = sorted((padding, int(header.get("PixelPaddingRangeLimit", padding))))
            inside = (values < first) | (values > last)
            if inside.any():
                beside = values[inside]
                values = np.where(inside, values, beside.min() if last < np.median(beside) else beside.max())
        yield values


def _anew(
    values: NDArray[np.float64],
    work: AtWork[AdjustableParts, PictureDomain],
    manner: Manner,
    place: str,
    marks: tuple[tuple[str, bool], ...],
    side: str,
) -> tuple[NDArray[np.float64], float]:
    """(new values, how near the old ones came to a limit of the domain). Raises Hold("outside_domain")."""
    import torch

    from models.resynthesis.anew import looked_at, made_anew, noise_shape, values_of

    looked = looked_at(work.parts, work.domain, torch.from_numpy(np.ascontiguousarray(values)))
    outside = work.domain.limits.outside(looked.statistics)
    promised = calibrated(work) if manner.promised else None
    if promised is not None:
        outside += promised.outside(looked.statistics)
    if outside:
        raise Hold("outside_domain", at=", ".join(dict.fromkeys(one.statistic for one in outside)))
    noise = keyed_noise(manner.seed)(noise_shape(work.parts), f"resynthesize/{manner.level:.6f}/{place}")
    picture = drawn(made_anew(work.parts, looked, manner.level, noise, side).numpy(), marks)
    new = values_of(torch.from_numpy(picture), looked.ends, work.domain.shown)
    return np.asarray(new.numpy()), work.domain.limits.nearness(looked.statistics)
