"""The networks of a card, made from its parameters and filled from its tensors; and the card's parameters of them.

Tensors: `vae.*`, `unet.*`, and `student.*` where there is a distilled network of few steps; `domain.histograms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from models.cards import Card, CardError
from models.lesion_diffusion import LatentUNet, Schedule, UNetConfig
from models.lesion_vae import LesionVae, VaeConfig

ALGORITHM = "lesion_diffusion"
Values = Mapping[str, str | int | float | bool | tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class LesionParts:
    """Networks in evaluation mode, on one device. `student` estimates the straight flow and is sampled by `flow`.

    `sequences` in the order of the VAE's channels; `kinds` of lesions in the order of the U-Net's classes;
    `voxel_mm` (z, y, x) of the card's grid. `sampler` and `steps` are what the card was judged with.
    """

    vae: LesionVae
    unet: LatentUNet
    student: LatentUNet | None
    sequences: tuple[str, ...]
    kinds: tuple[str, ...]
    voxel_mm: tuple[float, float, float]
    sampler: str
    steps: int

    @property
    def device(self) -> torch.device:
        return self.vae.latent_mean.device

    def network(self, sampler: str) -> tuple[LatentUNet, Schedule]:
        """The network that a sampler needs. Raises ValueError when the card has none."""
        wanted = self.student if sampler == "flow" and self.unet.config.prediction != "flow" else self.unet
        if wanted is None:
            raise ValueError("the card has no network for the sampler flow: it was trained without a student")
        return wanted, Schedule(wanted.config.prediction)

    def class_of(self, kind: str | None) -> int:
        """The number of a class; None is "not told". Raises ValueError for a class that the card does not know."""
        if kind is None:
            return self.unet.config.classes
        if kind not in self.kinds:
            raise ValueError(f"the card knows lesions of {', '.join(self.kinds)}, not {kind}")
        return self.kinds.index(kind)

    def tensors(self) -> dict[str, Tensor]:
        """By the names that a card's weights have."""
        named: list[tuple[str, nn.Module | None]] = [("vae", self.vae), ("unet", self.unet), ("student", self.student)]
        return {
            f"{name}.{key}": one.detach().cpu()
            for name, part in named
            if part is not None
            for key, one in part.state_dict().items()
        }

    def parameters(self) -> dict[str, str | int | float | bool | tuple[float, ...]]:
        """What a card says, so that `parts_of` makes the same networks."""
        v, u = self.vae.config, self.unet.config
        return {
            "sequences": ",".join(self.sequences),
            "kinds": ",".join(self.kinds),
            "voxel_mm": self.voxel_mm,
            "sampler": self.sampler,
            "steps": self.steps,
            "side": v.side,
            "vae_widths": v.widths,
            "latent": v.latent,
            "vae_norm": v.norm,
            "vae_activation": v.activation,
            "vae_heads": v.heads,
            "vae_blocks": v.blocks,
            "vae_patch": v.patch,
            "unet_widths": u.widths,
            "embedded": u.embedded,
            "unet_heads": u.heads,
            "unet_norm": u.norm,
            "unet_activation": u.activation,
            "prediction": u.prediction,
            "neighbour": u.neighbour,
        }


def parts_of(card: Card, tensors: Mapping[str, Tensor], device: torch.device | str = "cpu") -> LesionParts:
    """Raises CardError for another algorithm, parameters that are missing, or tensors that are not the card's."""
    if card.algorithm != ALGORITHM:
        raise CardError(f"{card.name} is of {card.algorithm}, not {ALGORITHM}")
    p = card.parameters
    try:
        sequences, kinds = (tuple(str(p[name]).split(",")) for name in ("sequences", "kinds"))
        vae_config = VaeConfig(
            sequences=len(sequences),
            side=_whole(p, "side"),
            widths=tuple(int(one) for one in _numbers(p, "vae_widths")),
            latent=_whole(p, "latent"),
            norm=_one_of(p, "vae_norm", ("batch", "group")),
            activation=_one_of(p, "vae_activation", ("leaky_relu", "silu")),
            heads=_whole(p, "vae_heads"),
            blocks=_whole(p, "vae_blocks"),
            patch=_whole(p, "vae_patch") if "vae_patch" in p else 1,  # cards written before it had a name
        )
        unet_config = UNetConfig(
            latent=vae_config.latent,
            widths=_four(p, "unet_widths"),
            classes=len(kinds),
            embedded=_whole(p, "embedded"),
            heads=_whole(p, "unet_heads"),
            norm=_one_of(p, "unet_norm", ("batch", "group")),
            activation=_one_of(p, "unet_activation", ("leaky_relu", "silu")),
            prediction=_one_of(p, "prediction", ("epsilon", "v_prediction", "flow")),
            neighbour=bool(p["neighbour"]),
        )
        z, y, x = (float(one) for one in _numbers(p, "voxel_mm"))
        sampler, steps = str(p["sampler"]), _whole(p, "steps")
        vae, unet = LesionVae(vae_config), LatentUNet(unet_config)
    except (KeyError, ValueError, TypeError) as error:
        raise CardError(f"{card.name}: parameters of its networks are missing or wrong ({error})") from None
    student = LatentUNet(replace(unet_config, prediction="flow")) if _has(tensors, "student") else None
    named: list[tuple[str, nn.Module | None]] = [("vae", vae), ("unet", unet), ("student", student)]
    for name, part in named:
        if part is not None:
            _fill(part, name, tensors, card)
            part.to(device).eval().requires_grad_(requires_grad=False)
    return LesionParts(vae, unet, student, sequences, kinds, (z, y, x), sampler, steps)


def _fill(part: nn.Module, name: str, tensors: Mapping[str, Tensor], card: Card) -> None:
    mine = {key.removeprefix(f"{name}."): one.float() for key, one in tensors.items() if key.startswith(f"{name}.")}
    try:
        part.load_state_dict(mine, strict=True)
    except RuntimeError:
        raise CardError(f"{card.name}: the tensors {name}.* are not those of its parameters") from None


def _has(tensors: Mapping[str, Tensor], name: str) -> bool:
    return any(key.startswith(f"{name}.") for key in tensors)


def _whole(p: Values, name: str) -> int:
    value = p[name]
    if not isinstance(value, int):
        raise ValueError(f"{name} is a whole number")
    return value


def _numbers(p: Values, name: str) -> Sequence[float]:
    value = p[name]
    if not isinstance(value, tuple):
        raise ValueError(f"{name} is a list of numbers")
    return value


def _four(p: Values, name: str) -> tuple[int, int, int, int]:
    a, b, c, d = (int(one) for one in _numbers(p, name))
    return a, b, c, d


def _one_of(p: Values, name: str, known: tuple[str, ...]) -> Any:
    if p[name] not in known:
        raise ValueError(f"{name} is one of {', '.join(known)}")
    return p[name]
