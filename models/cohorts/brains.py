"""Synthetic brains with controlled identity: people, their visits, scanners, lesions, as a `Cohort` of lazy scans.

People differ by a smooth diffeomorphism of the ICBM152 template, ventricles, cortex and folding, head size, sex-linked
shape and lesions; visits by pose, contrast, shading, noise, slice thickness and ageing; scanners by a signature. The
head is a plain shell of skull and scalp that follows the person: it has an outline and no face. torch is
imported when a cohort is made, and no voxel made before a scan is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.cohorts.cohort import AGE_BAND_YEARS, Cohort, Pixels, Scan
from models.cohorts.difficulty import strengths

if TYPE_CHECKING:
    from models.cohorts.brains_render import Setting

DIAGNOSES = {"healthy": 0.4, "HGG": 0.2, "LGG": 0.2, "MS": 0.2}  # shares
Spacing = float | tuple[float, float, float]


def synthetic_brains(
    people: int,
    sessions: int = 2,
    seed: int = 0,
    difficulty: str | float = "medium",
    *,
    sequences: Sequence[str] = ("T1",),
    spacing_mm: Spacing = 2.0,
    sites: int = 3,
    moves: float = 0.3,
    sex_effect: float = 1.0,
    diagnoses: Mapping[str, float] | None = None,
    head: bool = True,
    first: int = 0,
) -> Cohort:
    """`people` x `sessions` x `sequences` scans; person `first + k` of a seed is the same in every cohort of it.

    Brains have the size of the template: MNI space is about a quarter larger than life.
    `difficulty`: easy, medium, hard or 0 to 1 (`difficulty.strengths`). `sequences`: T1, T1c, T2, FLAIR. `spacing_mm`:
    one number or (z, y, x); an image covers 180 x 228 x 192 mm. `moves`: share of visits at another than the home site.
    `sex_effect`: 0 makes men and women alike, 1 is about as in adults (12 % in volume). `diagnoses`: shares of healthy,
    HGG, LGG, MS. `head=False` leaves the brain alone, outside it exactly 0.

    Attributes: sex, age (whole years at the visit), age_band, diagnosis (healthy, glioma, MS), grade (HGG, LGG),
    sequence, manufacturer. Masks: brain, head, lesion (with oedema), core (of a glioma). Raises ValueError.
    """
    setting = brain_setting(
        seed,
        difficulty,
        spacing_mm=spacing_mm,
        sites=sites,
        moves=moves,
        sex_effect=sex_effect,
        diagnoses=diagnoses,
        head=head,
    )
    from models.cohorts.brains_visit import SEQUENCES

    unknown = [one for one in sequences if one not in SEQUENCES]
    if people < 1 or sessions < 1 or first < 0 or not sequences or unknown:
        raise ValueError(f"at least one person, one session, and sequences out of {', '.join(SEQUENCES)}")
    scans = [
        scan
        for person in range(first, first + people)
        for visit in range(sessions)
        for scan in _visit(setting, person, visit, sequences)
    ]
    return Cohort(f"synthetic-brains-{seed}", tuple(scans), synthetic=True)


def brain_setting(
    seed: int = 0,
    difficulty: str | float = "medium",
    *,
    spacing_mm: Spacing = 2.0,
    sites: int = 3,
    moves: float = 0.3,
    sex_effect: float = 1.0,
    diagnoses: Mapping[str, float] | None = None,
    head: bool = True,
) -> Setting:
    """What the scans of `synthetic_brains` share; with it `brains_render.images` makes batches. Raises ValueError."""
    from models.cohorts.brains_person import DIAGNOSES as KNOWN
    from models.cohorts.brains_render import Setting

    spacing = (spacing_mm,) * 3 if isinstance(spacing_mm, int | float) else tuple(spacing_mm)
    if len(spacing) != 3 or not all(0.5 <= one <= 12 for one in spacing):
        raise ValueError("the spacing is from 0.5 to 12 mm, one number or three (z, y, x)")
    shares = dict(DIAGNOSES if diagnoses is None else diagnoses)
    if set(shares) - set(KNOWN) or sum(shares.values()) <= 0 or min(shares.values()) < 0:
        raise ValueError(f"diagnoses are shares of {', '.join(KNOWN)}")
    if seed < 0 or sites < 1 or not 0 <= moves <= 1 or sex_effect < 0:
        raise ValueError("seed and sex_effect are not negative, sites at least 1, moves from 0 to 1")
    z, y, x = (float(one) for one in spacing)
    return Setting(
        seed=seed,
        strengths=strengths(difficulty),
        spacing_mm=(z, y, x),
        sites=sites,
        moves=moves,
        sex_effect=sex_effect,
        shares=tuple(float(shares.get(name, 0.0)) for name in KNOWN),
        head=head,
    )


@dataclass(frozen=True, slots=True)
class _Order:
    """One image to be made when it is asked for. Small, so that it can go to another process."""

    setting: Setting
    person: int
    visit: int
    sequence: str

    def load(self) -> Pixels:
        from models.cohorts.brains_render import images

        return np.asarray(images(self.setting, [(self.person, self.visit)], self.sequence)[0].numpy(), np.float32)

    def mask(self, name: str) -> NDArray[np.bool_]:
        from models.cohorts.brains_render import masks

        return np.asarray(masks(self.setting, [(self.person, self.visit)], name)[0].numpy(), np.bool_)


def _visit(setting: Setting, number: int, visit: int, sequences: Sequence[str]) -> list[Scan]:
    person, seen = setting.person(number), setting.visit(number, visit)
    scanner = setting.scanner(seen.site)
    age = int(person.age_years + seen.day / 365.25)
    low = age // AGE_BAND_YEARS * AGE_BAND_YEARS
    glioma = person.diagnosis in ("HGG", "LGG")
    known = {
        "sex": person.sex,
        "age": str(age),
        "age_band": f"{low}-{low + AGE_BAND_YEARS - 1}",
        "diagnosis": "glioma" if glioma else person.diagnosis,
        **({"grade": person.diagnosis} if glioma else {}),
        "manufacturer": scanner.manufacturer,
    }
    names = ("brain", "head", "lesion", *(("core",) if glioma else ()))
    made = []
    for sequence in sequences:
        order = _Order(setting, number, visit, sequence)
        made.append(
            Scan(
                name=f"P{number:05d}-V{visit}-{sequence}",
                subject=f"P{number:05d}",
                session=f"V{visit}",
                load=order.load,
                day=seen.day,
                site=scanner.name,
                spacing_mm=setting.spacing_mm,
                attributes={**known, "sequence": sequence},
                masks={name: partial(order.mask, name) for name in names},
            )
        )
    return made
