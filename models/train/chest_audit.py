"""`chest-audit-1`: who is who on chest films. Small films do: identity is where bones, heart and vessels lie."""

from __future__ import annotations

from collections.abc import Sequence

from models.audit_encoders.own_films import CHANNELS, film
from models.cohorts import Cohort
from models.train.augmentations import Strength
from models.train.contrastive import Plan
from models.train.own import Recipe, train_own
from models.train.trained import Options, Tick, Trained

RECIPE = Recipe(
    name="chest-audit-1",
    algorithm="own_films",
    prepare=film,
    channels=CHANNELS,
    side=64,
    modalities=("CR", "DX"),
    anatomy=("CHEST",),
    plan=Plan(steps=1000),
    strength=Strength(),
    gradients=0.67,  # chosen on synthetic films (bench.encoders has other people)
    intended_use="Attacker of frontal chest films: does a released film still find other films of the same person?",
    limits=(
        "Trained on few people, on films shrunk to 64 pixels: a lower bound of what an attacker with more films and "
        "finer pixels finds. Films of one hospital stay resemble each other by more than anatomy (devices, disease, "
        "positioning). Lateral films were not seen. It gives evidence of linkage; that it finds nothing is no proof "
        "of anonymity. Before a policy "
        "names it for same_scan it must be calibrated (`models calibrate`): 200 people whom it was not trained on."
    ),
    licence=(
        "Apache-2.0 for the weights. Trained on ChestX-ray14 (NIH Clinical Center; open, attribution: Wang et al., "
        "CVPR 2017) and on the Hannover COVID-19 image repository (CC BY 3.0, doi 10.6084/m9.figshare.12275009), both "
        "as shrunken 8-bit copies"
    ),
)


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    return train_own(RECIPE, cohorts, options, tick)
