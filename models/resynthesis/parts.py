"""The whole adjustable anonymiser: its networks of a card, made from its parameters and filled from its tensors.

Tensors: `reid.*`, `foundation.*` (our own; a published one is the user's file), `decoupler.*`, `resynthesis.*`, and
`codebook.*` where the lowest levels tell one of few prototypes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from models.cards import Card, CardError
from models.mdl_decoupling import Codebook, Decoupler, Foundation
from models.mdl_decoupling.parameters import codec_of
from models.reid_encoder import SMALL as SMALL_REID
from models.reid_encoder import ReidEncoder
from models.reid_encoder.parameters import Value, configured, filled, named, said
from models.resynthesis import sides
from models.resynthesis.configuration import SMALL
from models.resynthesis.networks import Resynthesis

ALGORITHM = "adjustable_resynthesis"


@dataclass(frozen=True, slots=True)
class AdjustableParts:
    """Networks in evaluation mode. `sampler` and `steps` are what the card was judged with. `channels` of the pictures
    that it makes: 1 (grey) or 3 (red, green, blue). `sides`, where an organ is paired: `sides.fitted`.
    `codebook`: None where semantics are whole at every level.
    """

    reid: ReidEncoder
    foundation_name: str
    foundation: Foundation
    decoupler: Decoupler
    resynthesis: Resynthesis
    sampler: str
    steps: int
    channels: int = 1
    sides: Tensor | None = None
    codebook: Codebook | None = None

    @property
    def device(self) -> torch.device:
        return self.resynthesis.scale.device

    def tensors(self) -> dict[str, Tensor]:
        """By the names that a card's weights have."""
        made = named("reid", self.reid) | named("decoupler", self.decoupler) | named("resynthesis", self.resynthesis)
        made |= {} if self.sides is None else {sides.NAME: self.sides.cpu()}
        made |= {} if self.codebook is None else named("codebook", self.codebook)
        return made | (named("foundation", self.foundation) if self.foundation_name == "own" else {})

    def parameters(self) -> dict[str, Value]:
        """What a card says, so that `parts_of` makes the same networks."""
        return {
            **said("reid", self.reid.config),
            "foundation": self.foundation_name,
            **said("codec", self.decoupler.config),
            **said("picture", self.resynthesis.config),
            "sampler": self.sampler,
            "steps": self.steps,
            "channels": self.channels,
        }


def parts_of(
    card: Card,
    tensors: Mapping[str, Tensor],
    published: Mapping[str, Tensor] | None = None,
    device: torch.device | str = "cpu",
) -> AdjustableParts:
    """`published`: tensors of the foundation, where it is not our own. Raises CardError for what does not fit."""
    if card.algorithm != ALGORITHM:
        raise CardError(f"{card.name} is of {card.algorithm}, not {ALGORITHM}")
    reid = filled(ReidEncoder(configured("reid", SMALL_REID, card)), "reid", tensors, card)
    foundation, decoupler = codec_of(card, tensors, published)
    config = configured("picture", SMALL, card)
    if config.semantic != decoupler.config.features:
        raise CardError(
            f"{card.name}: re-synthesis takes {config.semantic} channels of semantics, the codec gives others"
        )
    resynthesis = filled(Resynthesis(config), "resynthesis", tensors, card)
    sampler, steps = card.parameters.get("sampler"), card.parameters.get("steps")
    if not isinstance(sampler, str) or not isinstance(steps, int) or steps < 1:
        raise CardError(f"{card.name}: parameters.sampler and parameters.steps say how it is sampled")
    channels = card.parameters.get("channels", 1)  # cards made before colour do not say it
    if channels not in (1, 3) or (channels == 3 and {config.channels, reid.config.channels} != {3}):
        raise CardError(f"{card.name}: parameters.channels is 1, or 3 with networks of 3 channels")
    try:
        codebook = Codebook.of(tensors)
    except ValueError as error:
        raise CardError(f"{card.name}: {error}") from None
    if codebook is not None and codebook.maps.shape[1] != config.semantic:
        raise CardError(f"{card.name}: its code book is of other semantics than its codec's")
    for one in (reid, foundation, decoupler, resynthesis, *([] if codebook is None else [codebook])):
        one.to(device)
    right = tensors.get(sides.NAME)
    return AdjustableParts(
        reid,
        str(card.parameters["foundation"]),
        foundation,
        decoupler,
        resynthesis,
        sampler,
        steps,
        int(str(channels)),
        None if right is None else right.float().to(device),
        codebook,
    )
