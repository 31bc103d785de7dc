"""The network of a card with what it needs to judge its own masks, made from the card's parameters and tensors.

Tensors: `unet.*`, and `domain.histograms` of `models.lesion_anonymiser.domain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from models.cards import Card, CardError
from models.lesion_segmenter.network import LesionUNet, SegmenterConfig

ALGORITHM = "lesion_segmentation"
Value = str | int | float | bool | tuple[float, ...]
NETWORK = "unet."


@dataclass(frozen=True, slots=True)
class SegmenterParts:
    """`network` in evaluation mode; `sequences` in the order of its channels; `voxel_mm` (z, y, x) of the card's grid.

    `marks_at`: probability from which a voxel is lesion. `least_certainty`: what `certainty_of` must be at least, and
    `smallest_ml`: the volume below which a mask is none of a lesion as the card knows them; both from people held out.
    """

    network: LesionUNet
    sequences: tuple[str, ...]
    voxel_mm: tuple[float, float, float]
    marks_at: float
    least_certainty: float
    smallest_ml: float

    def tensors(self) -> dict[str, Tensor]:
        """By the names that a card's weights have."""
        return {f"{NETWORK}{name}": one.detach().cpu() for name, one in self.network.unet.state_dict().items()}

    def parameters(self) -> dict[str, Value]:
        """What a card says, so that `parts_of` makes the same."""
        return {
            "sequences": ",".join(self.sequences),
            "voxel_mm": self.voxel_mm,
            "side": self.network.config.side,
            "widths": tuple(float(one) for one in self.network.config.widths),
            "marks_at": self.marks_at,
            "least_certainty": self.least_certainty,
            "smallest_ml": self.smallest_ml,
        }


def parts_of(card: Card, tensors: Mapping[str, Tensor]) -> SegmenterParts:
    """Raises CardError for another algorithm, parameters that are missing, or tensors that are not the card's."""
    if card.algorithm != ALGORITHM:
        raise CardError(f"{card.name} is of {card.algorithm}, not {ALGORITHM}")
    p = card.parameters
    try:
        sequences = tuple(str(p["sequences"]).split(","))
        network = LesionUNet(SegmenterConfig(len(sequences), int(_number(p["side"])), _numbers(p["widths"])))
        z, y, x = _numbers(p["voxel_mm"])
        at, least, smallest = (_number(p[name]) for name in ("marks_at", "least_certainty", "smallest_ml"))
    except (KeyError, ValueError, TypeError) as error:
        raise CardError(f"{card.name}: parameters of its network are missing or wrong ({error})") from None
    if not 0 < at < 1 or not 0 < least < 1 or smallest < 0:
        raise CardError(f"{card.name}: marks_at and least_certainty lie between 0 and 1, smallest_ml is not negative")
    own = {name.removeprefix(NETWORK): one.float() for name, one in tensors.items() if name.startswith(NETWORK)}
    try:
        network.unet.load_state_dict(own, strict=True)
    except RuntimeError:
        raise CardError(f"{card.name}: the tensors {NETWORK}* are not those of its parameters") from None
    network.eval().requires_grad_(requires_grad=False)
    return SegmenterParts(network, sequences, (z, y, x), at, least, smallest)


def _number(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number is something else")
    return float(value)


def _numbers(value: Value) -> tuple[float, ...]:
    if not isinstance(value, tuple):
        raise TypeError("a list of numbers is something else")
    return value
