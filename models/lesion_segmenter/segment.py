"""A study without a mask in, its lesion out; or the reason why nobody may rely on what was found.

1. head, scales, the card's grid, as the anonymiser has them, but without knowing the lesion
2. is it the card's kind of study (`models.lesion_anonymiser.domain`)?
3. probabilities of four takes: as it is, mirrored, a little darker, a little brighter
4. the mask on the study's own grid; is it there, large enough, certain enough?
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.lesion_anonymiser.domain import Domain, statistics
from models.lesion_anonymiser.generation import batches
from models.lesion_anonymiser.preparation import Prepared, prepared
from models.lesion_anonymiser.study import Floats, LesionStudy, Mask, NotAnonymised
from models.lesion_segmenter.certainty import certainty_of
from models.lesion_segmenter.network import with_neighbours
from models.lesion_segmenter.parts import SegmenterParts

TAKES = ((False, 1.0), (True, 1.0), (False, 0.9), (True, 1.1))  # mirrored left to right, brightness
AT_ONCE = 64  # slices


class NothingFound(NotAnonymised):
    """No voxel is marked. That is no evidence that there is no lesion."""


class Uncertain(NotAnonymised):
    """A mask was found, and it is not one to rely on."""


@dataclass(frozen=True, slots=True)
class Segmented:
    """`mask` (z, y, x) on the study's grid; `certainty` 0 to 1; `volume_ml` of the mask."""

    mask: Mask
    certainty: float
    volume_ml: float


def segment(study: LesionStudy, parts: SegmenterParts, domain: Domain | None) -> Segmented:
    """Whatever lesion `study` holds is not looked at. `domain` None takes any study: for training and benches.

    Raises NotAnonymised: OutOfDomain, NothingFound, Uncertain among them.
    """
    found = looked_at(study, parts, domain)
    judge(found, parts)
    return found


def judge(found: Segmented, parts: SegmenterParts) -> None:
    """Raises NothingFound or Uncertain for a mask that nobody may rely on."""
    if not found.mask.any():
        raise NothingFound("no lesion was found, and nothing says that there is none")
    if found.volume_ml < parts.smallest_ml:
        raise Uncertain(f"what was found is smaller than {parts.smallest_ml:.2g} ml")
    if found.certainty < parts.least_certainty:
        raise Uncertain(f"certainty {found.certainty:.2f}, at least {parts.least_certainty:.2f} is needed")


def looked_at(study: LesionStudy, parts: SegmenterParts, domain: Domain | None) -> Segmented:
    """The same, before it is judged. Raises NotAnonymised: a sequence is missing, there is no head, OutOfDomain."""
    absent = [name for name in parts.sequences if name not in study.volumes]
    if absent:
        raise NotAnonymised(f"the study has no {', '.join(absent)}, which the card needs")
    prep = unmarked(study, parts)
    if domain is not None:
        domain.must_hold(statistics(prep, parts.sequences, domain.histograms))
    takes = probabilities(parts, prep.slices(parts.sequences))
    there = prep.grid.to_study(takes.mean(0))
    mask: Mask = (there >= parts.marks_at) & prep.head
    volume_ml = float(mask.sum()) * float(np.prod(study.spacing_mm)) / 1000
    return Segmented(mask, certainty_of(takes, parts.marks_at), volume_ml)


def unmarked(study: LesionStudy, parts: SegmenterParts) -> Prepared:
    """The study on the card's grid as if nobody had marked anything in it. Raises NotAnonymised."""
    volumes = {name: study.volumes[name] for name in parts.sequences}
    blank = replace(study, volumes=volumes, lesion=np.zeros(study.shape, np.bool_))
    return prepared(blank, parts.network.config.side, parts.voxel_mm)


@torch.no_grad()
def probabilities(parts: SegmenterParts, slices: Tensor) -> Floats:
    """(takes, slices, side, side) of slices (n, sequences, side, side)."""
    made: list[NDArray[np.float32]] = []
    for mirrored, brightness in TAKES:
        x = (slices * brightness).clamp(0, 1)
        x = with_neighbours(x.flip(3) if mirrored else x)
        given = torch.cat([parts.network(some).sigmoid()[:, 0] for some in batches(x, AT_ONCE)])
        made.append((given.flip(2) if mirrored else given).numpy())
    return np.stack(made)
