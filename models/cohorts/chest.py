"""Synthetic chest films: people whose ribs, heart, clavicles and vessels stay theirs from film to film.

Frontal films, grey, 0 (black, air) to 1 (white). A person is a draw of `TRAITS`, a rib cage and two vessel trees; a
session is a pose, a breath, an exposure, a scanner, lines and tubes. The anatomy is drawn, not projected from a volume:
it serves to train and to audit where no patient data may be used, and it teaches no radiology. No figure about these
people is a figure about patients.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from models.cohorts.chest_anatomy import Anatomy, anatomy
from models.cohorts.chest_film import exposed, pose_of
from models.cohorts.cohort import Cohort, Pixels, Scan
from models.cohorts.drawing import Canvas, seen
from models.cohorts.traits import Spread, Trait, Visit, age_band, visits

KIND = 1  # seeds chest films apart from other cohorts
SPREAD = Spread(identity=(1.5, 0.28), session=(0.12, 0.95))
FINDINGS = ("consolidation", "effusion", "nodule", "cardiomegaly")
VIEWS = ("PA", "PA", "AP")  # two of three films are taken standing
SMALLEST_PIXELS, LARGEST_PIXELS = 64, 512

# In units of half the picture's width unless said. Means are those of an adult's PA film; spreads were chosen by eye
# and frozen with the calibration (chest_difficulty.yaml).
TRAITS = {
    "width": Trait(1.0, 0.055, 0.012, sex=0.02),  # of the rib cage, factor
    "length": Trait(1.0, 0.05, 0.03, sex=0.015),  # of the lungs, factor
    "apex": Trait(0.0, 0.025, 0.012),
    "dome_right": Trait(0.30, 0.05, 0.055),
    "dome_left": Trait(0.36, 0.05, 0.055),
    "rib_spacing": Trait(0.150, 0.0075, 0.0015),
    "rib_first": Trait(-0.83, 0.025, 0.008),
    "rib_drop": Trait(0.36, 0.05, 0.01),
    "rib_drop_growth": Trait(0.035, 0.008, 0.001),
    "rib_width": Trait(0.052, 0.005, 0.0, sex=0.003),
    "rib_roundness": Trait(1.0, 0.12, 0.01),
    "rib_density": Trait(1.0, 0.14, 0.04, sex=0.05),
    "clavicle_tilt": Trait(0.17, 0.05, 0.035),
    "clavicle_bend": Trait(0.05, 0.022, 0.006),
    "clavicle_level": Trait(-0.60, 0.03, 0.025),
    "heart_width": Trait(0.36, 0.035, 0.012, sex=0.008),
    "heart_height": Trait(0.255, 0.025, 0.012),
    "heart_tilt": Trait(0.60, 0.16, 0.04),  # radians
    "heart_offset": Trait(0.13, 0.03, 0.012),
    "atrium": Trait(0.20, 0.025, 0.008),
    "knob": Trait(0.085, 0.014, 0.003),
    "knob_level": Trait(-0.33, 0.03, 0.012),
    "pedicle": Trait(0.125, 0.018, 0.008),
    "spine_bend": Trait(0.0, 0.03, 0.006),
    "vertebra": Trait(0.128, 0.007, 0.001),
    "hilum_level": Trait(-0.02, 0.035, 0.012),
    "vessel_spread": Trait(1.0, 0.10, 0.02),
    "fat": Trait(0.0, 0.12, 0.03),  # soft tissue over the lungs, attenuation
    "breast": Trait(0.10, 0.035, 0.012, sex=-0.09),  # attenuation
    "breast_level": Trait(0.27, 0.05, 0.03),
    "breast_out": Trait(0.44, 0.04, 0.02),
    "scapula": Trait(0.78, 0.04, 0.05),
    "bubble": Trait(0.12, 0.03, 0.05),
    "turn": Trait(0.0, 0.0, 0.035),  # of the picture, radians
    "yaw": Trait(0.0, 0.0, 0.35),  # of the person about the long axis; 1 moves the front by 0.1
    "shift_x": Trait(0.0, 0.0, 0.045),
    "shift_y": Trait(0.0, 0.0, 0.045),
    "zoom": Trait(1.08, 0.0, 0.045),
    "bend": Trait(0.008, 0.0, 0.003),
    "level": Trait(0.0, 0.0, 0.10),
    "window": Trait(0.0, 0.0, 0.16),  # natural logarithm of a factor
    "noise": Trait(0.0, 0.0, 0.35),  # natural logarithm of a factor
    "blur": Trait(0.0, 0.0, 0.35),  # natural logarithm of a factor
    "collimation": Trait(0.0, 0.0, 0.05),
}


def synthetic_chest(
    people: int,
    sessions: int,
    seed: int,
    *,
    difficulty: float = 0.5,
    size: int = 64,
    sites: int = 3,
    finding_share: float = 0.5,
    sex_strength: float = 1.0,
) -> Cohort:
    """`people` persons with `sessions` films of `size` x `size` pixels each, 0 to 1, at `sites` scanners.

    `difficulty` 0 (easy to link) to 1 (hard); the calibration is in chest_difficulty.yaml. `sex_strength` 0 leaves no
    difference between the sexes. Attributes: sex, age_band, finding ("none" or one of FINDINGS), view, site. Masks:
    lungs, heart, and the finding by its name. Films are drawn when loaded, always the same. Raises ValueError for a
    size outside 64 to 512 or numbers that make no cohort.
    """
    if not SMALLEST_PIXELS <= size <= LARGEST_PIXELS:
        raise ValueError(f"a synthetic film has {SMALLEST_PIXELS} to {LARGEST_PIXELS} pixels a side")
    persons = visits(
        TRAITS,
        SPREAD,
        kind=KIND,
        people=people,
        sessions=sessions,
        seed=seed,
        difficulty=difficulty,
        findings=FINDINGS,
        finding_share=finding_share,
        views=VIEWS,
        sites=sites,
        sex_strength=sex_strength,
    )
    scans = [
        _scan(f"chest-{p:05d}", k, visit, size) for p, person in enumerate(persons) for k, visit in enumerate(person)
    ]
    return Cohort(f"synthetic-chest-{seed}", tuple(scans), synthetic=True)


def _scan(subject: str, session: int, visit: Visit, size: int) -> Scan:
    site = f"site-{visit.site}"
    names = ["lungs", "heart", *([visit.finding] if visit.finding else [])]
    return Scan(
        name=f"{subject}-{session}",
        subject=subject,
        session=f"{session}",
        load=partial(_film, visit, size),
        day=visit.day,
        site=site,
        attributes={
            "sex": visit.sex,
            "age_band": age_band(visit.age_years),
            "finding": visit.finding or "none",
            "view": visit.view,
            "site": site,
        },
        masks={name: partial(_mask, visit, size, name) for name in names},
    )


def _drawn(visit: Visit, size: int) -> tuple[Canvas, Anatomy]:
    canvas = Canvas.of(size)
    return canvas, anatomy(visit, canvas)


def _film(visit: Visit, size: int) -> Pixels:
    canvas, drawn = _drawn(visit, size)
    maps = pose_of(visit).maps(canvas, size)
    return exposed(visit, seen(drawn.attenuation, canvas, maps), size)


def _mask(visit: Visit, size: int, name: str) -> NDArray[np.bool_]:
    canvas, drawn = _drawn(visit, size)
    return seen(drawn.masks[name], canvas, pose_of(visit).maps(canvas, size)) > np.float32(0.5)
