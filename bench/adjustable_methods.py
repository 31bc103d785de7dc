"""Every method of bench.adjustable at every level of its knob, and the networks that they need.

On drawn people ours is a card; on real films it is trained here. What it is compared with learns on the same people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

import torch
from torch import Tensor, nn

from bench.adjustable_baselines import BLURS, NOISES, RATIOS, Mae, blurred, filled, noised, trained_mae
from bench.adjustable_films import Setting
from bench.adjustable_generated import generator_of, resynthesised
from bench.adjustable_rivals import (
    SPREADS,
    TIMES,
    WEIGHTS,
    Adversarial,
    adversarial,
    feature_noised,
    image_to_image,
    trained_adversarial,
)
from gateway.learn.opened import anonymiser_of
from models.cards import SHIPPED
from models.id_blocking import LEVELS as PAPER_LEVELS
from models.id_blocking import Blocking
from models.reid_encoder import ReidEncoder, identity_map
from models.resynthesis import AdjustableParts
from models.resynthesis.deidentify import left_over
from models.train.decoupling import codec_stage, semantics_stage
from models.train.reid import reid_stage
from models.train.reid_material import Material
from models.train.reid_plan import AdjustablePlan, Line
from models.train.trained import Options, Tick

LEVELS = (*PAPER_LEVELS, 0.1)
FEW = (0.08, 0.04, 0.03, 0.02, 0.01)  # levels at which ours says one of few
HELD_EVERY = 7  # of the people that a network learns on, to stop it early
Release = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Method:
    """Films (n, 1, side, side), 0 to 1 -> released films. `of` says what made them: another card is another point."""

    name: str
    level: float
    release: Release
    of: str


@dataclass(frozen=True, slots=True)
class Networks:
    """`ours` is None where it was not trained; `of` it: the card's digest, or the steps of every stage."""

    reid: ReidEncoder
    ours: AdjustableParts | None
    of: str
    mae: Mae
    adversaries: dict[str, Adversarial]
    steps: int

    def numbers(self) -> dict[str, int]:
        """Of every method's networks."""
        own = [self.ours.foundation, self.ours.decoupler, self.ours.resynthesis] if self.ours is not None else []
        every: dict[str, list[nn.Module]] = {"ours": [self.reid, *own], "MAE": [self.mae]}
        every |= {name: [one.body] for name, one in self.adversaries.items()}
        return {name: sum(p.numel() for one in some for p in one.parameters()) for name, some in every.items()}


def plan_of(steps: int) -> AdjustablePlan:
    plain = AdjustablePlan().with_steps(steps)
    return replace(plain, people=12, batch=24, evaluate_every=max(steps // 4, 1), sampled=2, density=(0.0, 1.0))


def networks_of(
    setting: Setting, card: str, steps: int, keep: Path, tick: Tick, *, generate: bool, names: Sequence[str] = ()
) -> Networks:
    """Trained, or read from `keep`; adversaries only where `names` of methods are none, or have them."""
    fitted, held = parted(setting.known.material)
    people = min(12, len(fitted.mated()))
    mae = trained_mae(fitted, held, steps, 24, keep / "mae.checkpoint", tick)
    rivals = {
        name: trained_adversarial(fitted, steps, people, keep, tick, findings=useful)
        for name, useful in (("ID-Adv", False), ("Privacy-Net", True))
        if not names or name in names
    }
    if setting.cohort is None:
        one = anonymiser_of(card, [SHIPPED])
        digest = one.card.weights.sha256[:12] if one.card.weights is not None else ""
        return Networks(one.parts.reid, one.parts, f"{card} {digest}", mae, rivals, steps)
    line = Line.of(plan_of(steps), [setting.cohort], Options(checkpoint=keep / "bench.checkpoint"), tick)
    reid, ours = reid_stage(line), None
    if generate:
        foundation = semantics_stage(line)
        ours = generator_of(line, reid, foundation, codec_stage(line, foundation))
    return Networks(reid, ours, f"{steps} steps", mae, rivals, steps)


def parted(material: Material) -> tuple[Material, Material]:
    """(fitted, held out), without common people."""
    out = material.who % HELD_EVERY == 0
    fitted, held = (
        replace(material, x=material.x[rows], who=material.who[rows], findings=material.findings[rows])
        for rows in (~out, out)
    )
    return fitted, held


@torch.no_grad()
def left(reid: ReidEncoder, x: Tensor, r: float) -> tuple[Tensor, Tensor]:
    """(X_noID, mask)."""
    pieces = [left_over(one, Blocking(r).mask(identity_map(reid, one)), x.shape[-1]) for one in torch.split(x, 64)]
    return torch.cat([noid for noid, _ in pieces]), torch.cat([mask for _, mask in pieces])


def methods(one: Networks) -> Iterator[Method]:
    """Every method's levels, the most private first, so that a run that was cut short has all methods."""
    trained, plain, parts = f"{one.steps} steps", "", one.ours
    yield Method("original", 0.0, lambda x: x, plain)

    def swept(name: str, knobs: Sequence[float], release: Callable[[Tensor, float], Tensor], of: str) -> list[Method]:
        """Of knobs from the weakest."""
        return [Method(name, knob, partial(_at, release, knob), of) for knob in knobs[::-1]]

    rows = []
    if parts is not None:
        for name, semantics in (("", "ours"), (", no semantics", "no semantics"), (", no decoupling", "no decoupling")):
            levels = LEVELS if semantics == "no semantics" else (*LEVELS, *FEW)
            made = partial(resynthesised, parts, semantics=semantics)
            rows.append(swept(f"ours{name}", levels, made, one.of))
        rows.append(swept("Feat-Noise", SPREADS, partial(feature_noised, parts), one.of))
        rows.append(swept("image to image", TIMES, partial(image_to_image, parts), one.of))
    rows += [
        swept("ID-blocking alone", LEVELS, lambda x, r: left(one.reid, x, r)[0], one.of),
        swept("Pixel-Blur", BLURS, blurred, plain),
        swept("MAE", RATIOS, partial(filled, one.mae), trained),
        swept("pixel noise", NOISES, partial(noised, seed=3), plain),
    ]
    for name, network in one.adversaries.items():
        rows.append(swept(name, WEIGHTS, partial(adversarial, network), trained))
    rows.append(swept("mask alone", LEVELS, lambda x, r: left(one.reid, x, r)[1].float(), one.of))
    for strongest in zip_longest(*rows):
        yield from (method for method in strongest if method is not None)


def _at(release: Callable[[Tensor, float], Tensor], knob: float, x: Tensor) -> Tensor:
    return release(x, knob)
