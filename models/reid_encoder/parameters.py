"""Configurations and tensors on a card, and back: what `card.parameters` says makes the same network again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from torch import Tensor, nn

from models.cards import Card, CardError
from models.reid_encoder.configuration import SMALL
from models.reid_encoder.network import ReidEncoder

ALGORITHM = "reid_vit"
Value = str | int | float | bool | tuple[float, ...]
Config = TypeVar("Config")
Net = TypeVar("Net", bound=nn.Module)


def said(prefix: str, config: Any) -> dict[str, Value]:
    """The fields of a configuration by `prefix_field`; truth values in a list as 0 and 1."""
    made: dict[str, Value] = {}
    for one in fields(config):
        value = getattr(config, one.name)
        made[f"{prefix}_{one.name}"] = tuple(int(x) for x in value) if isinstance(value, tuple) else value
    return made


def configured(prefix: str, like: Config, card: Card) -> Config:
    """The configuration that the card says, in the kinds of `like`; what cards made before a field cannot say has its
    default. Raises CardError for one missing or wrong.
    """
    kind: Any = type(like)
    given: dict[str, Any] = {}
    for one in fields(kind):
        name, pattern = f"{prefix}_{one.name}", getattr(like, one.name)
        if name not in card.parameters:
            if one.default is not MISSING:
                continue
            raise CardError(f"{card.name}: parameters.{name} is missing")
        value = card.parameters[name]
        wanted = float if isinstance(pattern, float) else type(pattern)
        if not isinstance(value, wanted) and not (wanted is float and isinstance(value, int)):
            raise CardError(f"{card.name}: parameters.{name} is of the wrong kind")
        if isinstance(pattern, tuple) and isinstance(value, tuple):
            each = type(pattern[0])
            given[one.name] = tuple(each(int(x)) for x in value)
        else:
            given[one.name] = value
    try:
        made: Config = kind(**given)
    except ValueError as error:
        raise CardError(f"{card.name}: parameters of {prefix} do not fit each other ({error})") from None
    return made


def filled(network: Net, name: str, tensors: Mapping[str, Tensor], card: Card) -> Net:
    """The network with the tensors `name.*`, frozen, in float32. Raises CardError unless they are exactly its own."""
    mine = {key.removeprefix(f"{name}."): one for key, one in tensors.items() if key.startswith(f"{name}.")}
    try:
        network.load_state_dict({key: one.float() for key, one in mine.items()}, strict=True)
    except RuntimeError:
        raise CardError(f"{card.name}: the tensors {name}.* are not those of its parameters") from None
    return network.eval().requires_grad_(requires_grad=False)


def named(name: str, network: nn.Module) -> dict[str, Tensor]:
    """State by the names that a card's weights have."""
    return {f"{name}.{key}": one.detach().cpu() for key, one in network.state_dict().items()}


def reid_of(card: Card, tensors: Mapping[str, Tensor]) -> ReidEncoder:
    """The network of a card of `reid_vit`. Raises CardError."""
    if card.algorithm != ALGORITHM:
        raise CardError(f"{card.name} is of {card.algorithm}, not {ALGORITHM}")
    return filled(ReidEncoder(configured("reid", SMALL, card)), "reid", tensors, card)
