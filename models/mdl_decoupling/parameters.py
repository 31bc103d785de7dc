"""The codec and its foundation on a card, and back."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from models.cards import Card, CardError
from models.mdl_decoupling.configuration import SMALL
from models.mdl_decoupling.foundation import FOUNDATIONS, Foundation, foundation_of
from models.mdl_decoupling.network import Decoupler
from models.reid_encoder.parameters import configured, filled

ALGORITHM = "mdl_decoupling"


def codec_of(
    card: Card, tensors: Mapping[str, Tensor], published: Mapping[str, Tensor] | None = None
) -> tuple[Foundation, Decoupler]:
    """Of the tensors `foundation.*` and `decoupler.*`; a published foundation's are the user's, given by themselves.

    Raises CardError for what is missing or of another network.
    """
    name = str(card.parameters.get("foundation", ""))
    if name not in FOUNDATIONS:
        raise CardError(f"{card.name}: parameters.foundation is one of {', '.join(FOUNDATIONS)}")
    prefix = "foundation."
    own = {key.removeprefix(prefix): one for key, one in tensors.items() if key.startswith(prefix)}
    if name != "own" and published is None:
        raise CardError(f"{card.name} needs the weights of {name}: bring them with deid-gateway models import")
    try:
        foundation = foundation_of(name, own if name == "own" or published is None else published)
    except ValueError as error:
        raise CardError(f"{card.name}: {error}") from None
    config = configured("codec", SMALL, card)
    if config.features != foundation.features:
        raise CardError(f"{card.name}: its codec takes {config.features} channels, {name} has {foundation.features}")
    return foundation, filled(Decoupler(config), "decoupler", tensors, card)
