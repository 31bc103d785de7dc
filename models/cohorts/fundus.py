"""Synthetic fundus photographs: people whose vessel tree, disc and fovea stay theirs from picture to picture.

A person is one eye: a draw of `TRAITS` and a vessel tree; a session is a pose, a focus, a flash, a camera. Pictures
load as grey, 0 to 1 (ITU-R 601, as every colour picture of a cohort); `colour` gives the same in colour. Drawn, not
photographed: no figure about these people is a figure about patients.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from models.cohorts.cohort import Cohort, Pixels, Scan
from models.cohorts.drawing import Canvas, seen
from models.cohorts.fundus_camera import CENTRE, LUMA, photographed, pose_of
from models.cohorts.fundus_retina import Retina, retina
from models.cohorts.traits import Spread, Trait, Visit, age_band, visits

KIND = 2  # seeds eyes apart from other cohorts
SPREAD = Spread(identity=(1.2, 0.13), session=(0.16, 1.0))
FINDINGS = ("microaneurysms", "haemorrhages", "exudates", "glaucoma")
VIEWS = ("macula", "macula", "macula", "macula", "disc")  # what the picture is centred on
EYES = ("R", "L", "RL")
SMALLEST_PIXELS, LARGEST_PIXELS = 64, 512

# In units of half the picture's width (45 degrees of field: 1 unit is about 6.5 mm of retina) unless said. Frozen with
# the calibration (fundus_difficulty.yaml). The sexes differ a little in disc, fovea and arcades, where networks look to
# tell them apart (Poplin et al. 2018); no eye shows it to a person.
TRAITS = {
    "disc_x": Trait(0.60, 0.035, 0.0),  # from the fovea, towards the nose
    "disc_y": Trait(-0.06, 0.035, 0.0),
    "disc_radius": Trait(0.132, 0.011, 0.001, sex=0.004),
    "disc_oval": Trait(1.10, 0.07, 0.005),
    "disc_tilt": Trait(0.0, 0.35, 0.02),  # radians
    "disc_pallor": Trait(0.0, 0.12, 0.03),
    "cup_ratio": Trait(0.40, 0.09, 0.005, sex=0.01),  # of the diameters
    "cup_offset": Trait(0.12, 0.08, 0.01),  # of the disc's radius, towards the fovea
    "crescent": Trait(0.0, 0.5, 0.03),
    "arcade_width": Trait(0.72, 0.07, 0.005, sex=0.015),
    "arcade_height": Trait(0.58, 0.06, 0.005),
    "arcade_top": Trait(0.0, 0.07, 0.003),
    "arcade_bottom": Trait(0.0, 0.07, 0.003),
    "calibre": Trait(1.0, 0.10, 0.02),
    "pigment": Trait(0.0, 0.20, 0.03, sex=-0.03),  # darkness of the fundus
    "redness": Trait(0.0, 0.08, 0.04),
    "tessellation": Trait(0.4, 0.35, 0.03),
    "macula": Trait(0.22, 0.05, 0.02, sex=0.015),  # darkening
    "macula_width": Trait(0.21, 0.03, 0.005),
    "turn": Trait(0.0, 0.0, 0.06),  # of the eye, radians
    "shift_x": Trait(0.0, 0.0, 0.055),
    "shift_y": Trait(0.0, 0.0, 0.055),
    "zoom": Trait(1.0, 0.0, 0.03),
    "bend": Trait(0.004, 0.0, 0.003),
    "flash": Trait(0.0, 0.0, 0.14),  # natural logarithm of a factor
    "light_x": Trait(0.0, 0.0, 0.22),
    "light_y": Trait(0.0, 0.0, 0.22),
    "vignette": Trait(0.30, 0.0, 0.10),
    "haze": Trait(0.03, 0.01, 0.03),  # of the media
    "blur": Trait(0.0, 0.0, 0.45),  # natural logarithm of a factor
    "noise": Trait(0.0, 0.0, 0.35),  # natural logarithm of a factor
    "tint_red": Trait(0.0, 0.0, 0.05),
    "tint_blue": Trait(0.0, 0.0, 0.08),
}


def synthetic_fundus(
    people: int,
    sessions: int,
    seed: int,
    *,
    difficulty: float = 0.5,
    size: int = 64,
    sites: int = 3,
    finding_share: float = 0.5,
    sex_strength: float = 1.0,
    eyes: str = "R",
) -> Cohort:
    """`people` eyes of as many persons with `sessions` pictures of `size` x `size` pixels each, at `sites` cameras.

    `difficulty` 0 (easy to link) to 1 (hard); the calibration is in fundus_difficulty.yaml. `sex_strength` 0 leaves no
    difference between the sexes. `eyes`: all right ("R"), all left ("L"), or two of each in turn ("RL"), which alone
    tells half of the people apart. Attributes: sex, age_band, finding ("none" or one of FINDINGS), view (macula or
    disc), eye (R or L), site. Masks: disc, cup, vessels, and spots by the name of the finding; "glaucoma" is a cup of
    at least 0.65 of the disc. Pictures are drawn when loaded, always the same. Raises ValueError for a size outside 64
    to 512, other eyes, or numbers that make no cohort.
    """
    if eyes not in EYES:
        raise ValueError("eyes are R, L or RL")
    if not SMALLEST_PIXELS <= size <= LARGEST_PIXELS:
        raise ValueError(f"a synthetic fundus picture has {SMALLEST_PIXELS} to {LARGEST_PIXELS} pixels a side")
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
        _scan(f"fundus-{p:05d}", k, visit, size, eyes[p // 2 % len(eyes)])  # sexes alternate, so eyes change by twos
        for p, person in enumerate(persons)
        for k, visit in enumerate(person)
    ]
    return Cohort(f"synthetic-fundus-{seed}", tuple(scans), synthetic=True)


def _scan(subject: str, session: int, visit: Visit, size: int, eye: str) -> Scan:
    site = f"site-{visit.site}"
    spots = [visit.finding] if visit.finding and visit.finding != "glaucoma" else []
    return Scan(
        name=f"{subject}-{session}",
        subject=subject,
        session=f"{session}",
        load=partial(_grey, visit, size, eye),
        day=visit.day,
        site=site,
        attributes={
            "sex": visit.sex,
            "age_band": age_band(visit.age_years),
            "finding": visit.finding or "none",
            "view": visit.view,
            "eye": eye,
            "site": site,
        },
        masks={name: partial(_mask, visit, size, eye, name) for name in ("disc", "cup", "vessels", *spots)},
        load_colour=partial(_colour, visit, size, eye),
    )


def colour(scan: Scan) -> Pixels:
    """(rows, columns, 3), red, green, blue, 0 to 1, of a scan of `synthetic_fundus`. Raises TypeError for another."""
    if not (isinstance(scan.load, partial) and scan.load.func is _grey):
        raise TypeError("only a synthetic fundus picture can be given in colour")
    return _colour(*scan.load.args)


def _drawn(visit: Visit, size: int, eye: str) -> tuple[Canvas, Retina, tuple[Pixels, Pixels]]:
    canvas = Canvas.of(size, CENTRE)
    drawn = retina(visit, canvas)
    return canvas, drawn, pose_of(visit, eye).maps(canvas, size)


def _colour(visit: Visit, size: int, eye: str) -> Pixels:
    canvas, drawn, maps = _drawn(visit, size, eye)
    flat = np.stack([seen(channel, canvas, maps) for channel in drawn.colour], -1)
    return photographed(visit, flat, size, mirrored=eye == "L")


def _grey(visit: Visit, size: int, eye: str) -> Pixels:
    return np.asarray(_colour(visit, size, eye) @ LUMA, np.float32)


def _mask(visit: Visit, size: int, eye: str, name: str) -> NDArray[np.bool_]:
    canvas, drawn, maps = _drawn(visit, size, eye)
    shown = seen(drawn.masks[name], canvas, maps) > np.float32(0.5)
    return np.ascontiguousarray(shown[:, ::-1]) if eye == "L" else shown
