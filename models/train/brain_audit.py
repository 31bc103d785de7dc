"""`brain-audit-1`: who is who on T1-like head MRI, by three slices in each plane."""

from __future__ import annotations

from collections.abc import Sequence

from models.audit_encoders.own_brains import CHANNELS, planes
from models.cohorts import Cohort
from models.train.augmentations import Strength
from models.train.contrastive import Plan
from models.train.own import Recipe, train_own
from models.train.trained import Options, Tick, Trained

RECIPE = Recipe(
    name="brain-audit-1",
    algorithm="own_brains",
    prepare=planes,
    channels=CHANNELS,
    side=96,
    modalities=("MR",),
    anatomy=("HEAD", "BRAIN"),
    plan=Plan(steps=250, people=24),
    strength=Strength(rotate=8.0, scale=0.05, shift=0.04, warp=0.005),
    width=16,
    intended_use="Attacker of head MRI: does a released volume still find another visit of the same person?",
    limits=(
        "Trained on synthetic people only, so real anatomy is new to it. Slices are cut at fixed places, without "
        "registration. It gives evidence of linkage; that it finds nothing is no proof of anonymity."
    ),
    licence="Apache-2.0 for the weights. Trained on synthetic people made from the ICBM152 2009 template (nilearn)",
)


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    return train_own(RECIPE, cohorts, options, tick)
