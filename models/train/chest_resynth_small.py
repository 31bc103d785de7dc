"""`chest-resynth-small-1`: the adjustable anonymiser of chest films as one busy CPU core trains it within the hour.

The same networks and stages as `resynthesis-chest-1`, fewer steps: it shows that the whole path works, and its card
says what it reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from models.cohorts import Cohort
from models.train.augmentations import Strength
from models.train.reid_plan import AdjustablePlan
from models.train.resynthesis import train_resynthesis
from models.train.trained import Options, Tick, Trained

NAME = "chest-resynth-small-1"
PLAN = AdjustablePlan(
    reid_steps=1200,
    semantics_steps=800,
    codec_steps=400,
    vae_steps=1000,
    joint_steps=1200,
    people=12,
    batch=24,
    rate=1.5e-3,
    reid_rate=3e-4,
    takes=Strength(rotate=4.0, scale=0.05, shift=0.03, warp=0.005, gamma=0.3, contrast=0.2, noise=0.08, blur=0.2),
)
LIMITS = (
    "Shows that the whole path works, no more: 64 pixels a side, drawn people, and a training of minutes. Its pictures "
    "are blurred; train a card on films of the site before anybody analyses them."
)


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry; `options.steps` is the number of steps of every stage."""
    made = train_resynthesis(NAME, PLAN.with_steps(options.steps), cohorts, options, tick)
    return replace(made, card=made.card.model_copy(update={"limits": f"{LIMITS} {made.card.limits}"}))
