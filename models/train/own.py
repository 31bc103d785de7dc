"""How our own encoders are trained: contrast for the network, whitening for the gradients, on the same people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.audit_encoders.own_network import IdentityNetwork, Prepare, gradients_of, part
from models.cards import Card
from models.cohorts import Cohort
from models.train.augmentations import Strength, vary
from models.train.contrastive import Plan, fit
from models.train.trained import Options, Tick, Trained, compact, lists_of
from models.train.whitening import whitening

SHIFT_PIXELS = 3  # of the takes that are averaged when embedding
TAKES = 6  # of every scan, beside its own: what of its gradients is no identity


@dataclass(frozen=True, slots=True)
class Recipe:
    """One of our encoders. `learned` dimensions come from the network, up to `whitened` from gradients.

    `shrink` is the whitening's λ, `gradients` their share of the embedding. The texts are the card's.
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
    whitened: int = 400
    shrink: float = 0.2
    gradients: float = 0.5


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
            gradients.append(gradients_of(one, SHIFT_PIXELS))
            who.append(f"{cohort.name}/{scan.subject}")
    return Material(torch.stack(planes), np.stack(gradients), tuple(who))


def train_own(recipe: Recipe, cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """Raises ValueError when nobody in the cohorts has two scans, for a checkpoint of another plan, and for a start of
    another kind.
    """
    material = gathered(recipe.prepare, recipe.side, cohorts, tick)
    mean, matrix = whitening(
        material.gradients,
        material.who,
        recipe.whitened,
        recipe.shrink,
        other_takes(material.planes, recipe.strength.gentle(), options.seed, tick),
    )
    steps = recipe.plan.steps if options.steps is None else options.steps
    network: nn.Module = _network(recipe, options, steps)
    if steps:
        plan = replace(recipe.plan, seed=options.seed, steps=steps)
        if options.start is not None:
            plan = replace(plan, rate=plan.rate / 2)  # what is known is not shaken off

        def augment(x: Tensor, generator: torch.Generator) -> Tensor:
            return vary(x, recipe.strength, generator)

        network = fit(network, material.planes, material.numbers, plan, augment, tick, options.checkpoint)
    tensors = {f"network.{name}": one for name, one in network.state_dict().items()}
    tensors |= {"gradients.mean": torch.from_numpy(mean), "gradients.matrix": torch.from_numpy(matrix)}
    trained_on, people = lists_of(recipe.name, cohorts, options.start)
    card = Card(
        name=recipe.name,
        role="attacker",
        algorithm=recipe.algorithm,
        modalities=recipe.modalities,
        anatomy=recipe.anatomy,
        dimensions=recipe.learned + matrix.shape[1],
        parameters={
            "side": recipe.side,
            "width": recipe.width,
            "shift": SHIFT_PIXELS,
            "gradients": recipe.gradients,
        },
        trained_on=trained_on,
        intended_use=recipe.intended_use,
        limits=recipe.limits,
        licence=recipe.licence,
        source=_source(recipe.name, steps, options),
    )
    return Trained(card, compact(tensors), people)


def other_takes(planes_nvchw: Tensor, strength: Strength, seed: int, tick: Tick) -> Iterator[NDArray[np.float32]]:
    """Gradients (N, f) of TAKES other takes of every scan."""
    generator = torch.Generator().manual_seed(seed)
    for take in range(TAKES):
        found = []
        for done, scan in enumerate(planes_nvchw):
            tick(f"take {take + 1} of {TAKES}", done, len(planes_nvchw))
            found.append(gradients_of(vary(scan.float(), strength, generator)))
        yield np.stack(found)


def _network(recipe: Recipe, options: Options, steps: int) -> IdentityNetwork:
    """Fresh, or as `options.start` has it. Raises ValueError for a start that is another network, or none at all."""
    torch.manual_seed(options.seed)  # the network's initial weights are drawn from it
    network = IdentityNetwork(recipe.channels, recipe.width, recipe.learned)
    start = options.start
    if start is None:
        if not steps:
            raise ValueError("without steps there is nothing to learn: name a card to start from")
        return network
    if start.card.algorithm != recipe.algorithm:
        raise ValueError(f"{start.card.name} is of the kind {start.card.algorithm}, and not of {recipe.algorithm}")
    try:
        network.load_state_dict(part(start.tensors, "network"), strict=True)
    except RuntimeError:
        raise ValueError(f"the network of {start.card.name} has another size; train without a start") from None
    return network.eval()


def _source(name: str, steps: int, options: Options) -> str:
    told = f"deid-gateway train {name}, {steps} steps, seed {options.seed}"
    start = options.start
    return f"trained here: {told}" + (f", from {start.card.name} ({start.card.source})" if start is not None else "")
