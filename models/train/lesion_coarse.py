"""`lesion-brain-coarse-1`: the lesion anonymiser at 3.6 mm, as two busy CPU cores train it within the hour.

The same networks and stages as `lesion-brain-1`, fewer pixels and steps: it shows that the whole path works, and its
card says how far its pictures are from real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from models.cohorts import Cohort
from models.lesion_vae import SMALL
from models.train.lesion import LesionPlan, train_lesion
from models.train.trained import Options, Tick, Trained

NAME = "lesion-brain-coarse-1"
PLAN = LesionPlan(
    vae=replace(SMALL, side=64, widths=(8, 16, 32, 48)),
    voxel_mm=(4.0, 3.6, 3.6),
    vae_steps=300,
    diffusion_steps=600,
    student_steps=150,
    pairs=256,
    batch=8,
    rate=2e-3,
    evaluate_every=150,
)
LIMITS = (
    "Shows that the whole path works, no more: pixels of 3.6 mm in slices of 4 mm, and a training of minutes. "
    "What it makes is a grey cloud in the shape of a head, no anatomy: train a card before anybody analyses its "
    "pictures."
)


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry; `options.steps` is the number of steps of every stage."""
    plan = PLAN
    if options.steps is not None:
        steps = options.steps
        plan = replace(plan, vae_steps=steps, diffusion_steps=steps, student_steps=steps)
    made = train_lesion(NAME, plan, cohorts, options, tick)
    return replace(made, card=made.card.model_copy(update={"limits": f"{LIMITS} {made.card.limits}"}))
