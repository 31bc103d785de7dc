"""The lesion of a study in which nobody drew one, marked by the card that the policy names for it.

What the card is not certain of holds: a missed lesion would be replaced by healthy tissue, which is false data. An
empty mask is no evidence that there is no lesion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gateway.errors import Hold
from gateway.pixels.lesion_study import Survey, on_grids
from gateway.pixels.lesion_upright import on_first_grid, read_upright
from gateway.pixels.stage import Instance
from gateway.pixels.stage_card import AtWork

if TYPE_CHECKING:
    from models.lesion_anonymiser import Domain
    from models.lesion_segmenter import SegmenterParts


@dataclass(frozen=True, slots=True)
class Marked:
    """`survey` with the lesion on every grid, and how certain the card is of it, 0 to 1."""

    survey: Survey
    certainty: float
    volume_ml: float


def marked(group: Sequence[Instance], found: Survey, work: AtWork[SegmenterParts, Domain]) -> Marked:
    """Raises Hold: lesion_mask_empty, lesion_mask_uncertain, outside_domain, pixels_unreadable, geometry_unsuitable."""
    from models.lesion_anonymiser import NotAnonymised, OutOfDomain
    from models.lesion_segmenter import NothingFound, Uncertain, segment

    name = work.card.name
    series = read_upright(group, found)
    first = next(iter(series.values()))
    try:
        made = segment(on_first_grid(series), work.parts, work.domain)
    except NothingFound:
        raise Hold("lesion_mask_empty", at=f"card {name}: it found nothing") from None
    except Uncertain as error:
        raise Hold("lesion_mask_uncertain", at=f"card {name}: {error}") from None
    except OutOfDomain as error:
        raise Hold("outside_domain", at=f"card {name}: {', '.join(one.statistic for one in error.outside)}") from None
    except NotAnonymised as error:
        raise Hold("outside_domain", at=f"card {name}: {error}") from None
    lesions = on_grids(first.turn.back(made.mask), first.stack, found.sequences)
    return Marked(replace(found, lesions=lesions), made.certainty, made.volume_ml)
