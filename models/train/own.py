"""How our own encoders are trained: contrast for the network, whitening for the gradients, on the same people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.audit_encoders.own_network import IdentityNetwork, Prepare, gradients_of
from models.cards import Card
from models.cohorts import Cohort
from models.train.augmentations import Strength, vary
from models.train.contrastive import Plan, fit
from models.train.trained import Options, Tick, Trained, compact, lists_of
from models.train.whitening import whitening

SHIFT_PIXELS = 3  # of the takes that are averaged when embedding


@dataclass(frozen=True, slots=True)
class Recipe:
    """One of our encoders. `learned` dimensions come from the network, up to `whitened` from gradients.

    `shrink` is the whitening's λ. The texts are the card's.
    """

    name: str
    algorithm: str
    prepare: Prepare
    channels: int
    side: int
    modalities: tuple[str, ...]
    anatomy: tuple[str, ...]
    plan: Plan
    strength: Strength
    intended_use: str
    limits: str
    licence: str
    width: int = 32
    learned: int = 128
    whitened: int = 200
    shrink: float = 0.3


@dataclass(frozen=True, slots=True)
class Material:
    """Prepared scans of many people: planes (N, V, C, side, side), gradients (N, f), and whose each is."""

    planes: Tensor
    gradients: NDArray[np.float32]
    who: tuple[str, ...]

    @property
    def numbers(self) -> Tensor:
        """(N,): people as numbers from 0."""
        return torch.from_numpy(np.unique(np.asarray(self.who, str), return_inverse=True)[1].astype(np.int64))


def gathered(prepare: Prepare, side: int, cohorts: Sequence[Cohort], tick: Tick) -> Material:
    """Every scan of every cohort, loaded and prepared once."""
    planes: list[Tensor] = []
    gradients: list[NDArray[np.float32]] = []
    who: list[str] = []
    total = sum(len(cohort) for cohort in cohorts)
    for cohort in cohorts:
        for scan in cohort:
            tick("scans prepared", len(who), total)
            one = prepare(scan.load(), scan.spacing_mm, side)
            planes.append(one.half())  # standardised: three digits are enough, and augmentation adds noise
            gradients.append(gradients_of(one))
            who.append(f"{cohort.name}/{scan.subject}")
    return Material(torch.stack(planes), np.stack(gradients), tuple(who))


def train_own(recipe: Recipe, cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """Raises ValueError when nobody in the cohorts has two scans, or a checkpoint is of another plan."""
    material = gathered(recipe.prepare, recipe.side, cohorts, tick)
    mean, matrix = whitening(material.gradients, material.who, recipe.whitened, recipe.shrink)
    plan = replace(recipe.plan, seed=options.seed, steps=options.steps or recipe.plan.steps)
    torch.manual_seed(plan.seed)  # the network's initial weights are drawn from it
    network = IdentityNetwork(recipe.channels, recipe.width, recipe.learned)

    def augment(x: Tensor, generator: torch.Generator) -> Tensor:
        return vary(x, recipe.strength, generator)

    averaged = fit(network, material.planes, material.numbers, plan, augment, tick, options.checkpoint)
    tensors = {f"network.{name}": one for name, one in averaged.state_dict().items()}
    tensors |= {"gradients.mean": torch.from_numpy(mean), "gradients.matrix": torch.from_numpy(matrix)}
    trained_on, people = lists_of(recipe.name, cohorts)
    card = Card(
        name=recipe.name,
        role="attacker",
        algorithm=recipe.algorithm,
        modalities=recipe.modalities,
        anatomy=recipe.anatomy,
        dimensions=recipe.learned + matrix.shape[1],
        parameters={"side": recipe.side, "width": recipe.width, "shift": SHIFT_PIXELS},
        trained_on=trained_on,
        intended_use=recipe.intended_use,
        limits=recipe.limits,
        licence=recipe.licence,
        source=f"trained here: deid-gateway train {recipe.name}, {plan.steps} steps, seed {plan.seed}",
    )
    return Trained(card, compact(tensors), people)
