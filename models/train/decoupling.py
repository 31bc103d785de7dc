"""`decoupling-chest-1`: features of a frozen network as a code, of which the identity's part can be dropped.

Stages: the re-identification network (`reid`), our own semantic network, taught findings and then frozen, the codec.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cards import Card
from models.cohorts import Cohort
from models.mdl_decoupling import (
    Decoupler,
    Foundation,
    OwnSemantics,
    decoupling_losses,
    degenerate,
    measured_shares,
    temperature_at,
)
from models.mdl_decoupling.parameters import ALGORITHM
from models.reid_encoder.parameters import named, said
from models.train.augmentations import Strength, standard, vary
from models.train.reid import LICENCE, Figures, rank1
from models.train.reid_material import Material
from models.train.reid_plan import HELD_SEED, AdjustablePlan, Line, some
from models.train.stages import HeldLoss, Loss
from models.train.trained import Options, Tick, Trained, compact, lists_of

NAME = "decoupling-chest-1"
STRENGTH = Strength(
    rotate=6.0, scale=0.08, shift=0.05, warp=0.008, gamma=0.3, contrast=0.2, noise=0.1, blur=0.3, occlude=0.2
)
PICTURE_SHARE = 0.2  # of the loss: features of a foundation model hold more than findings
TOGETHER = 64
KEPT_BYTES = 2 * 2**30  # of features that are made once
AtRows = Callable[[Tensor], Tensor]


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry: the shipped plan; `options.steps` is the number of steps of every stage."""
    return train_decoupling(NAME, AdjustablePlan().with_steps(options.steps), cohorts, options, tick)


def train_decoupling(
    name: str, plan: AdjustablePlan, cohorts: Sequence[Cohort], options: Options, tick: Tick
) -> Trained:
    """Raises ValueError for cohorts that cannot be trained on, or when the partition comes out a trivial one."""
    line = Line.of(plan, cohorts, options, tick)
    foundation = semantics_stage(line)
    decoupler = codec_stage(line, foundation)
    found = judged_partition(line, foundation, decoupler)
    trained_on, people = lists_of(name, cohorts)
    card = Card(
        name=name,
        role="anonymiser",
        algorithm=ALGORITHM,
        modalities=("CR", "DX"),
        anatomy=("CHEST",),
        dimensions=plan.codec.codes,
        parameters={"foundation": "own", **said("codec", plan.codec)},
        trained_on=trained_on,
        metrics=found,
        intended_use="Features of chest films without the codes that name the person, for re-synthesis.",
        limits="A partition that was learnt is no proof: what is left is to be attacked by a network trained for it.",
        licence=LICENCE,
        source=f"trained here: deid-gateway train {name}, at most {plan.semantics_steps} + {plan.codec_steps} steps, "
        f"seed {options.seed}",
    )
    return Trained(card, compact(named("foundation", foundation) | named("decoupler", decoupler)), people)


def semantics_stage(line: Line) -> Foundation:
    """Our own foundation: findings where they are told, and a coarse picture; frozen afterwards."""
    line.fresh(2)
    network = OwnSemantics(len(line.fitted.names), line.plan.channels).to(line.where)
    rows = torch.arange(len(line.fitted))
    held = _repeated(_semantics_loss(line.held), some(torch.arange(len(line.held)), 256))
    plan = line.plan
    line.run("semantics", network, plan.semantics_steps, rows, plan.batch, _semantics_loss(line.fitted), held)
    network.zero_grad()
    return network.requires_grad_(requires_grad=False)


def _semantics_loss(material: Material) -> Loss:
    def loss(network: nn.Module, rows: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        assert isinstance(network, OwnSemantics)  # noqa: S101 - the stage trains it
        where = next(network.parameters()).device
        x = vary(standard(material.x[rows].float()), STRENGTH, generator).to(where)
        logits, picture = network.said(network(x))
        total = PICTURE_SHARE * functional.mse_loss(picture, functional.adaptive_avg_pool2d(x, picture.shape[-1]))
        told = material.findings[rows].to(where)
        known = ~told.isnan()
        if bool(known.any()):
            total = total + functional.binary_cross_entropy_with_logits(logits[known], told[known])
        return total

    return loss


def codec_stage(line: Line, foundation: Foundation) -> Decoupler:
    """Codec, code lengths and mask, before they are trained jointly with re-synthesis."""
    line.fresh(3)
    network = Decoupler(line.plan.codec).to(line.where)
    network.measure(features_of(foundation, line.fitted, line.where))
    features, features_held = (at_rows(foundation, one, line.where) for one in (line.fitted, line.held))
    plan = line.plan
    people = line.fitted.mated()
    epochs = plan.codec_steps * plan.people // max(len(people), 1)
    loss = codec_loss(line.fitted, foundation, features, epochs, plan)
    settled = replace(plan, confuse=0.0)  # an opponent that reads better is no reason to stop: its term is left out
    held = _repeated(codec_loss(line.held, foundation, features_held, 0, settled), line.held.mated())
    line.run("codec", network, plan.codec_steps, people, plan.people, loss, held)
    return network


def codec_loss(material: Material, foundation: Foundation, features: AtRows, epochs: int, plan: AdjustablePlan) -> Loss:
    """L_code-all + L_code-id on two pictures of everybody; τ falls over `epochs` (0: it is cold)."""

    def loss(network: nn.Module, people: Tensor, generator: torch.Generator, epoch: int) -> Tensor:
        assert isinstance(network, Decoupler)  # noqa: S101 - the stage trains it
        where = next(network.parameters()).device
        rows = material.two_each(people, generator)
        temperature = temperature_at(min(epoch / epochs, 1.0) if epochs else 1.0)
        who = material.who[rows].to(where)
        terms, _ = decoupling_losses(
            network,
            features(rows),
            who,
            temperature,
            generator,
            confuse=plan.confuse,
            price=plan.price,
            useful=plan.useful,
            reads=foundation.findings_of,
        )
        return terms["code-all"] + terms["code-id"]

    return loss


def judged_partition(line: Line, foundation: Foundation, decoupler: Decoupler) -> Figures:
    """Figures of people held out. Raises ValueError when the mask takes next to nothing, or next to everything."""
    features = features_of(foundation, line.held, line.where)
    shares = measured_shares(decoupler, features)
    fault = degenerate(shares, line.plan.density)
    if fault:
        raise ValueError(fault)
    found: Figures = {
        "bits per place": round(shares.bits_per_place, 3),
        "share of bits that is identity": round(shares.identity, 3),
        "share of codes that the mask takes": round(shares.density, 3),
        "distortion of standardised features": round(shares.distortion, 3),
    }
    with torch.no_grad():
        coded = decoupler.code(features)
    for name, one in {"features": features, "Q": coded.q, "Q_id": coded.q_id, "Q_sem": coded.q_sem}.items():
        z = functional.normalize(functional.adaptive_avg_pool2d(one.float().cpu(), 4).flatten(1), dim=1)
        found |= {f"{name}: {key}, untrained cosine": value for key, value in rank1(z, line.held.who).items()}
    return found


def at_rows(foundation: Foundation, material: Material, where: torch.device) -> AtRows:
    """Rows -> features. The network is frozen and pictures are not varied: made once, where they are small enough."""
    one = foundation(material.pictures(torch.tensor([0]), where))
    if len(material) * one.numel() * 2 > KEPT_BYTES:
        return lambda rows: foundation(material.pictures(rows, where))
    kept = features_of(foundation, material, where).half().cpu()
    return lambda rows: kept[rows].to(where).float()


@torch.no_grad()
def features_of(foundation: Foundation, material: Material, where: torch.device) -> Tensor:
    """(n, features, h, w)."""
    rows = torch.split(torch.arange(len(material)), TOGETHER)
    return torch.cat([foundation(material.pictures(one, where)).float() for one in rows])


def _repeated(loss: Loss, rows: Tensor) -> HeldLoss:
    """The loss with the same draws each time."""

    def held(network: nn.Module) -> float:
        generator = torch.Generator().manual_seed(HELD_SEED)
        return float(loss(network, rows, generator, 0))

    return held
