"""`fundus-audit-1`: who is who on eye photographs. Identity is the tree of vessels about the disc."""

from __future__ import annotations

from collections.abc import Sequence

from models.audit_encoders.own_eyes import CHANNELS, eye
from models.cohorts import Cohort
from models.train.augmentations import Strength
from models.train.contrastive import Plan
from models.train.own import Recipe, train_own
from models.train.trained import Options, Tick, Trained

RECIPE = Recipe(
    name="fundus-audit-1",
    algorithm="own_eyes",
    prepare=eye,
    channels=CHANNELS,
    side=96,
    modalities=("OP",),
    anatomy=("EYE",),
    plan=Plan(steps=250, people=32),
    strength=Strength(rotate=20.0, shift=0.15),
    width=24,
    intended_use="Attacker of eye photographs: does a released picture still find other pictures of the same eye?",
    limits=(
        "Trained on drawn eyes and on a few real ones, whose pictures look like one sitting: years between pictures, "
        "disease that comes and goes, and other cameras were not measured. One eye of each person; left and right were "
        "never matched. It gives evidence of linkage; that it finds nothing is no proof of anonymity. Before a policy "
        "names it for same_scan it must be calibrated (`models calibrate`): 200 people whom it was not trained on."
    ),
    licence=(
        "Apache-2.0 for the weights. Trained on RIDB (CC BY 4.0; Mendeley Data tjw3zwntv6), in grey and shrunk, and on "
        "synthetic eyes"
    ),
)


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    return train_own(RECIPE, cohorts, options, tick)
