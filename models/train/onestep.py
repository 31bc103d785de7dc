"""`onestep-chest-1`: the same anonymiser with a student of one step, for the latency of a plain network.

The teacher makes pictures of noise by many steps; the student learns to go there at once (Liu et al. 2022 reflow, one
step, with the latent's own error). It is judged anew: a student can remember what its teacher does not.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cohorts import Cohort
from models.resynthesis import AdjustableParts, Conditioned, Resynthesis, sample
from models.resynthesis.deidentify import left_over
from models.train.reid_material import Material
from models.train.reid_plan import AdjustablePlan, Line
from models.train.resynthesis import carded, trained_parts
from models.train.resynthesis_stages import CELLS, masks_at, repeated, similarity_maps
from models.train.stages import HeldLoss, Loss
from models.train.trained import Options, Tick, Trained

NAME = "onestep-chest-1"
TOGETHER = 32


@dataclass(frozen=True, slots=True)
class Pairs:
    """`rows` of the material, masks on the map's grid, the noise, and what the teacher made of it."""

    rows: Tensor
    masks: Tensor
    noise: Tensor
    made: Tensor


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry: the shipped plan; `options.steps` is the number of steps of every stage."""
    return train_onestep(NAME, AdjustablePlan().with_steps(options.steps), cohorts, options, tick)


def train_onestep(name: str, plan: AdjustablePlan, cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """Raises ValueError as `train_resynthesis` does, and for a plan whose network does not estimate the flow."""
    if plan.picture.prediction != "flow":
        raise ValueError("a student of one step is made of a network that estimates the flow")
    line = Line.of(plan, cohorts, options, tick)
    return carded(name, line, student_stage(line, trained_parts(line)), cohorts)


def student_stage(line: Line, teacher: AdjustableParts) -> AdjustableParts:
    """The parts with the student in the place of the teacher's network, sampled in one step."""
    student = copy.deepcopy(teacher.resynthesis)
    plan = line.plan
    fitted = teacher_pairs(line, teacher, line.fitted, plan.pairs, line.seed)
    held = teacher_pairs(line, teacher, line.held, max(1, plan.pairs // 8), line.seed + 1)
    judge: HeldLoss = repeated(_loss(teacher, line.held, held), torch.arange(len(held.rows)))
    loss = _loss(teacher, line.fitted, fitted)
    line.run("student", student, plan.student_steps, torch.arange(len(fitted.rows)), plan.batch, loss, judge)
    return replace(teacher, resynthesis=student.requires_grad_(requires_grad=False), sampler="flow", steps=1)


@torch.no_grad()
def teacher_pairs(line: Line, teacher: AdjustableParts, material: Material, count: int, seed: int) -> Pairs:
    """Of pictures drawn with repetition, at levels of the plan."""
    generator = torch.Generator().manual_seed(seed)
    low, high = line.plan.levels
    config = teacher.resynthesis.config
    rows = torch.randint(len(material), (count,), generator=generator)
    r = low + (high - low) * torch.rand(count, generator=generator)
    cells = torch.randint(len(CELLS), (count,), generator=generator)
    maps = similarity_maps(teacher.reid, material, line.where)
    masks = masks_at(maps[rows.to(maps.device)], r, cells)
    noise = torch.randn((count, config.latent, config.latent_side, config.latent_side), generator=generator)
    made = []
    for at in torch.split(torch.arange(count), TOGETHER):
        conditioned = _conditions(teacher, teacher.resynthesis, material, rows[at], masks[at.to(masks.device)])
        z = sample(
            teacher.resynthesis, noise[at].to(line.where), conditioned, sampler="flow", steps=line.plan.teacher_steps
        )
        made.append(z.float().cpu())
        line.tick("pictures of the teacher", int(at[-1]) + 1, count)
    return Pairs(rows, masks, noise, torch.cat(made))


def _conditions(
    parts: AdjustableParts, network: Resynthesis, material: Material, rows: Tensor, masks: Tensor
) -> Conditioned:
    x = material.pictures(rows, masks.device)
    noid, mask = left_over(x, masks, network.config.side)
    with torch.no_grad():
        semantics = parts.decoupler.semantics(parts.foundation(x))
    return network.conditions(noid, mask, semantics)


def _loss(teacher: AdjustableParts, material: Material, pairs: Pairs) -> Loss:
    def loss(network: nn.Module, at: Tensor, _generator: torch.Generator, _epoch: int) -> Tensor:
        assert isinstance(network, Resynthesis)  # noqa: S101 - the stage trains it
        where = network.scale.device
        conditioned = _conditions(teacher, network, material, pairs.rows[at], pairs.masks[at.to(pairs.masks.device)])
        noise = pairs.noise[at].to(where)
        last = torch.full((len(at),), network.schedule.steps - 1, device=where)
        arrived = noise - network.estimate(noise, last, conditioned)
        return functional.mse_loss(arrived, pairs.made[at].to(where))

    return loss
