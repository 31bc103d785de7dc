"""`reid-chest-1`: who is who, and where it shows, for ID-blocking. A part of the anonymiser; no attacker."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cards import Card
from models.cohorts import Cohort
from models.reid_encoder import ReidEncoder, identity_loss
from models.reid_encoder.parameters import ALGORITHM, named, said
from models.train.augmentations import Strength, standard, vary
from models.train.reid_material import Material
from models.train.reid_plan import HELD_SEED, AdjustablePlan, Line
from models.train.stages import HeldLoss, Loss
from models.train.trained import Options, Tick, Trained, compact, lists_of

NAME = "reid-chest-1"
LICENCE = "As the people it was trained on allow; it holds traces of them"
Figures = dict[str, str | float | int]


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry: the shipped plan; `options.steps` is the number of steps of every stage."""
    return train_reid(NAME, AdjustablePlan().with_steps(options.steps), cohorts, options, tick)


def train_reid(name: str, plan: AdjustablePlan, cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """Raises ValueError for cohorts in which nobody has two scans, or a checkpoint of another plan."""
    line = Line.of(plan, cohorts, options, tick)
    reid = reid_stage(line)
    trained_on, people = lists_of(name, cohorts)
    card = Card(
        name=name,
        role="anonymiser",
        algorithm=ALGORITHM,
        modalities=("CR", "DX"),
        anatomy=("CHEST",),
        dimensions=plan.reid.dimensions,
        parameters=said("reid", plan.reid),
        trained_on=trained_on,
        metrics=figures(reid, line.held),
        intended_use="Says where a picture shows who somebody is, for ID-blocking. Not an attacker: it belongs to the "
        "anonymiser, and a gate judges with others.",
        limits="What it does not see it does not block: another network may know people by other places.",
        licence=LICENCE,
        source=f"trained here: deid-gateway train {name}, at most {plan.reid_steps} steps, seed {options.seed}",
    )
    return Trained(card, compact(named("reid", reid)), people)


def reid_stage(line: Line) -> ReidEncoder:
    """The network, trained on the line's people."""
    line.fresh(1)
    network = ReidEncoder(line.plan.reid).to(line.where)
    people = torch.unique(line.fitted.who)
    plan, held = line.plan, _held(line.held, line.plan.takes)
    loss = _loss(line.fitted, plan.takes)
    line.run("reid", network, plan.reid_steps, people, plan.people, loss, held, plan.reid_rate)
    network.zero_grad()
    return network.requires_grad_(requires_grad=False)


def _loss(material: Material, takes: Strength) -> Loss:
    def loss(network: nn.Module, people: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        rows = material.two_each(people, generator)
        x = vary(standard(material.x[rows].float()), takes, generator)
        where = next(network.parameters()).device
        return identity_loss(network(x.to(where)).identity_bd.float(), material.who[rows].to(where))

    return loss


def _held(material: Material, takes: Strength) -> HeldLoss:
    loss = _loss(material, takes)
    people = torch.unique(material.who)

    def held(network: nn.Module) -> float:
        generator = torch.Generator().manual_seed(HELD_SEED)
        return sum(float(loss(network, people, generator, 0)) for _ in range(3)) / 3

    return held


@torch.no_grad()
def figures(network: ReidEncoder, held: Material) -> Figures:
    """Leave-one-out rank-1 over pictures of people held out who have another one; several mates each."""
    where = next(network.parameters()).device
    rows = torch.split(torch.arange(len(held)), 64)
    z = torch.cat([network.eval()(held.pictures(one, where)).identity_bd.float().cpu() for one in rows])
    found: Figures = {"people held out": len(torch.unique(held.who)), "pictures held out": len(held)}
    return found | rank1(functional.normalize(z, dim=1), held.who)


def rank1(z_nd: Tensor, who: Tensor) -> Figures:
    """Of vectors of length 1: share of pictures whose nearest other one is of the same person."""
    close = z_nd @ z_nd.T
    close.fill_diagonal_(-2.0)
    mated = (who[:, None] == who[None]).sum(1) > 1
    if not bool(mated.any()):
        return {"rank-1, held out": "not measured: nobody held out has two pictures"}
    hit = (who[close.argmax(1)] == who)[mated].float().mean()
    return {"rank-1, held out": round(float(hit), 3), "queries": int(mated.sum())}
