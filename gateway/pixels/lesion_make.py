"""One study through `models.lesion_anonymiser`: stacks to volumes of the card's axes, and back to stored values.

New anatomy is made once, on the grid of the sequence that covers most; sequences on grids of their own get it carried
there, so that all show the same head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.pixels.keyed_noise import keyed_noise
from gateway.pixels.lesion_masks import Mask
from gateway.pixels.lesion_study import Survey, same_grid
from gateway.pixels.lesion_upright import on_first_grid, read_upright
from gateway.pixels.stage import Instance
from gateway.pixels.stage_card import AtWork
from gateway.volumes import Plane

if TYPE_CHECKING:
    from models.lesion_anonymiser import Domain, LesionParts, Settings


@dataclass(frozen=True, slots=True)
class Made:
    """Of each sequence: `stored` [slice, row, column], 0 where `kept`: there the object's own values stay. `figures`:
    numbers by name.
    """

    stored: dict[str, NDArray[np.int32]]
    kept: dict[str, Mask]
    figures: dict[str, float]


def make(
    group: Sequence[Instance], found: Survey, work: AtWork[LesionParts, Domain], seed: bytes, settings: Settings
) -> Made:
    """Raises Hold: outside_domain, not_anonymised, pixels_unreadable, geometry_unsuitable."""
    from models.lesion_anonymiser import NotAnonymised, OutOfDomain, anonymise, carried, kept_of

    series = read_upright(group, found)
    first = next(iter(series.values()))
    try:
        done = anonymise(on_first_grid(series), work.parts, work.domain, keyed_noise(seed), settings)
        stored, kept = {}, {}
        for name, one in series.items():
            if one is first or same_grid(one.stack, first.stack):
                new, stays = done.volumes[name], done.kept
            else:
                to_first = np.linalg.inv(first.affine) @ one.affine
                made = done.volumes[name]
                new = carried(one.values, one.lesion, one.spacing_mm, made, done, to_first, settings)
                stays = kept_of(one.lesion, one.spacing_mm, settings)
            kept[name] = one.turn.back(stays)
            stored[name] = np.where(kept[name], 0, _stored(one.turn.back(new), group, one.stack.planes))
    except OutOfDomain as error:
        raise Hold("outside_domain", at=", ".join(one.statistic for one in error.outside)) from None
    except NotAnonymised as error:
        raise Hold("not_anonymised", at=str(error)) from None
    return Made(stored, kept, dict(done.figures))


def _stored(values: NDArray[np.float32], group: Sequence[Instance], planes: Sequence[Plane]) -> NDArray[np.int32]:
    """Nearest stored values [slice, row, column], by each plane's own slope, within the object's bits."""
    out = np.zeros(values.shape, np.int32)  # of 16 bits and fewer, signed or not
    limits: dict[int, tuple[int, int]] = {}
    for number, (plane, value) in enumerate(zip(planes, values, strict=True)):
        if plane.instance not in limits:
            limits[plane.instance] = _limits(group[plane.instance])
        low, high = limits[plane.instance]
        out[number] = np.rint((value.astype(np.float64) - plane.intercept) / plane.slope).clip(low, high)
    return out


def _limits(instance: Instance) -> tuple[int, int]:
    """Raises Hold for pixels that are no plain grey integers."""
    with EncodedImage.open(instance.candidate) as image:
        layout = image.layout
        if layout is None or layout.kind == "f" or layout.samples != 1 or layout.bits_allocated > 16:
            raise Hold("outside_domain", at="pixels are not integers of 16 bits and fewer")
        if layout.photometric != "MONOCHROME2":
            raise Hold("outside_domain", at="photometric interpretation")
        return layout.limits
