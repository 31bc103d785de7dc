"""A published network at work: prepared pixels in, one vector a scan out. Its tensors can be listed unmade."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from models.audit_encoders.baselines import Pixels, Spacing
from models.cards import Card, CardError

Net = TypeVar("Net", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class NetworkEncoder:
    """`prepare`: pixels and spacing -> (n, channels, ...), the scan's slices or the scan itself, n = 1.

    `features`: that -> (n, d). The mean over n is the scan's embedding, not scaled to length 1.
    """

    network: nn.Module
    prepare: Callable[[Pixels, Spacing], Tensor]
    features: Callable[[Tensor], Tensor]

    def __call__(self, pixels: Pixels, spacing_mm: Spacing = None, /) -> Pixels:
        with torch.inference_mode():
            found = self.features(self.prepare(pixels, spacing_mm)).mean(0)
        return np.asarray(found.numpy(), np.float32)


def shapes(network: Callable[[Card], nn.Module], card: Card) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor, on torch's meta device: nothing is allocated."""
    with torch.device("meta"):
        return {name: tuple(one.shape) for name, one in network(card).state_dict().items()}


def loaded(network: Callable[[Card], Net], card: Card, tensors: Mapping[str, Any]) -> Net:
    """The network with these weights, frozen. Raises CardError unless they are exactly its own.

    It is made without numbers and takes the given ones, so that no tensor can have kept its initial value.
    """
    with torch.device("meta"):
        made = network(card)
    try:
        made.load_state_dict(dict(tensors), strict=True, assign=True)
    except RuntimeError:
        raise CardError(
            f"the weights of {card.name} are not those of its network ({card.algorithm}); import its file again"
        ) from None
    if any(one.is_meta for one in (*made.parameters(), *made.buffers())):
        raise CardError(f"the weights of {card.name} are not whole; import its file again")
    return made.eval().requires_grad_(requires_grad=False)


def choice(card: Card, name: str, among: Sequence[str], default: str) -> str:
    """A parameter of the card that is one of a few words. Raises CardError for another."""
    value = card.parameters.get(name, default)
    if value not in among:
        raise CardError(f"{card.name}: parameters.{name} is one of {', '.join(among)}")
    return str(value)


def number(card: Card, name: str, default: int) -> int:
    """A parameter of the card that is a whole number above 0. Raises CardError for another."""
    value = card.parameters.get(name, default)
    if type(value) is not int or value < 1:
        raise CardError(f"{card.name}: parameters.{name} is a whole number above 0")
    return value
