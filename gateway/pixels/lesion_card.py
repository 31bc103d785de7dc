"""The card of `lesion_preserving`: what it has to be, and what its networks are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.pixels.stage_card import Kind
from models.cards import Card

if TYPE_CHECKING:
    from torch import Tensor

    from models.lesion_anonymiser import Domain, LesionParts


def _opens(card: Card, tensors: Mapping[str, Tensor]) -> tuple[LesionParts, Domain]:
    from models.lesion_anonymiser import domain_of, parts_of

    return parts_of(card, tensors), domain_of(card, tensors)


KIND = Kind("lesion_diffusion", "lesion anonymiser", _opens)
