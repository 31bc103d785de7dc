"""`lesion-brain-small-1`: the lesion anonymiser at 3 mm, as a CPU core with AMX trains it in seventy minutes.

The same networks and stages as `lesion-brain-1`, fewer pixels and steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from models.cohorts import Cohort
from models.lesion_vae import SMALL
from models.train.lesion import LesionPlan, train_lesion
from models.train.trained import Options, Tick, Trained

NAME = "lesion-brain-small-1"
PLAN = LesionPlan(
    vae=SMALL,
    voxel_mm=(3.0, 3.0, 3.0),
    vae_steps=4000,
    diffusion_steps=9000,
    student_steps=3000,
    rate=1e-3,
    bfloat16=True,
)
LIMITS = (
    "Pixels of 3 mm, drawn people, and a training of an hour: what it makes is the anatomy of drawings. Train a card "
    "on patients before anybody analyses its pictures."
)


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry; `options.steps` is the number of steps of every stage."""
    plan = PLAN
    if options.steps is not None:
        steps = options.steps
        plan = replace(plan, vae_steps=steps, diffusion_steps=steps, student_steps=steps)
    made = train_lesion(NAME, plan, cohorts, options, tick)
    return replace(made, card=made.card.model_copy(update={"limits": f"{LIMITS} {made.card.limits}"}))
