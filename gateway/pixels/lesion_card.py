"""The cards of `lesion_preserving`: what they have to be, and what their networks are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gateway.pixels.stage_card import Folders, Kind, card_faults
from models.cards import Card, find_card

if TYPE_CHECKING:
    from torch import Tensor

    from models.lesion_anonymiser import Domain, LesionParts
    from models.lesion_segmenter import SegmenterParts


def _opens(card: Card, tensors: Mapping[str, Tensor]) -> tuple[LesionParts, Domain]:
    from models.lesion_anonymiser import domain_of, parts_of

    return parts_of(card, tensors), domain_of(card, tensors)


def _opens_masks(card: Card, tensors: Mapping[str, Tensor]) -> tuple[SegmenterParts, Domain]:
    from models.lesion_anonymiser import domain_of
    from models.lesion_segmenter import parts_of

    return parts_of(card, tensors), domain_of(card, tensors)


KIND = Kind("lesion_diffusion", "lesion anonymiser", _opens)
MASK_KIND = Kind("lesion_segmentation", "lesion segmenter", _opens_masks, role="segmenter")


def mask_faults(mask: str, card: str, folders: Folders) -> Iterator[tuple[str, str]]:
    """Why the card `mask` cannot mark lesions for the anonymiser `card`, which loads, with hints."""
    faults = list(card_faults(mask, folders, MASK_KIND))
    yield from faults
    if not faults:
        needed, made = (str(find_card(name, folders)[0].parameters["sequences"]).split(",") for name in (mask, card))
        if more := [name for name in needed if name not in made]:
            yield (
                f"the card {mask} looks at {', '.join(more)}, which the card {card} does not make",
                "name a card of the same sequences: every study would be held",
            )
