"""`fundus-resynth-small-1`: the adjustable anonymiser of fundus photographs in colour, as one busy CPU core trains it
within the hour.

The stages of `chest-resynth-small-1` with networks of three channels. Eyes on both sides are needed, or every left eye
is outside of what it learnt: `--cohort synthetic-eyes=660,4,702`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from models.cohorts import Cohort
from models.reid_encoder import SMALL as SMALL_REID
from models.resynthesis import SMALL as SMALL_PICTURE
from models.resynthesis import sides
from models.train import chest_resynth_small
from models.train.augmentations import Strength
from models.train.reid_material import pictures_of
from models.train.resynthesis import Shows, train_resynthesis
from models.train.trained import Options, Tick, Trained

NAME = "fundus-resynth-small-1"
PLAN = replace(
    chest_resynth_small.PLAN,
    reid=replace(SMALL_REID, channels=3, around=11),  # without, it stands still: light and frame fill most
    picture=replace(SMALL_PICTURE, channels=3),
    vae_steps=700,
    joint_steps=900,
    channels=3,
    takes=Strength(
        rotate=4.0, scale=0.03, shift=0.04, warp=0.002, gamma=0.2, contrast=0.1, noise=0.03, blur=0.1, occlude=0.2
    ),
)
# PS3.16 CID 4209, SNOMED CT and the older SRT: retina, eye, fovea centralis, optic nerve head.
REGIONS = "5665001,T-AA610,81745001,T-AA000,67046006,T-AA621,81016008,T-AA630"
EYES = Shows("colour photographs of the fundus", ("OP",), ("EYE",), {"regions": REGIONS})
NAMED = 300  # pictures that sides are learnt from
LIMITS = (
    "Shows that the whole path works, no more: 64 pixels a side, drawn eyes, and a training of minutes. Vessels, spots "
    "and the edge of the disc are blurred or gone; train a card on photographs of the site before anybody analyses "
    "them. Pictures about as high as wide only, and no grey ones (red-free, angiography). "
    "The disc stays on the side that the header states, by mirroring what is made; other places are not the original's."
)


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry; `options.steps` is the number of steps of every stage. Raises ValueError for scans without colour, or
    when no eye is named.
    """
    pictures, right = named_eyes(cohorts)
    made = train_resynthesis(NAME, PLAN.with_steps(options.steps), cohorts, options, tick, EYES)
    return with_sides(made, pictures, right)


def named_eyes(cohorts: Sequence[Cohort]) -> tuple[Tensor, Tensor]:
    """(pictures (n, 3, side, side), whether each is of a right eye (n,)) of some scans whose eye is named (attribute
    eye: R, L, right, left). Raises ValueError when there is none.
    """
    named = [
        (scan, eye) for cohort in cohorts for scan in cohort if (eye := scan.attributes.get("eye", "")[:1].upper())
    ]
    some = [one for one in named if one[1] in (sides.RIGHT, sides.LEFT)]
    if not some:
        raise ValueError("no scan says which eye it shows, and a new picture has to show the same")
    some = some[:: max(1, len(some) // NAMED)]
    pictures = torch.cat([pictures_of(scan, PLAN.picture.side, 3) for scan, _ in some])
    return pictures, torch.tensor([eye == sides.RIGHT for _, eye in some])


def with_sides(made: Trained, pictures: Tensor, right: Tensor) -> Trained:
    """The card with what tells a right eye, and how often it does on these pictures."""
    mean = sides.fitted(pictures, right)
    hit = [(sides.told(mean, one) == sides.RIGHT) == bool(eye) for one, eye in zip(pictures, right, strict=True)]
    metrics = {**made.card.metrics, "side of originals told": round(sum(hit) / len(hit), 3)}
    card = made.card.model_copy(update={"limits": f"{LIMITS} {made.card.limits}", "metrics": metrics})
    return replace(made, card=card, tensors={**made.tensors, sides.NAME: mean})
