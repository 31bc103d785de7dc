"""Small photographs of eyes in colour, and the tiny anonymiser of `adjustable_films` with three channels, as a card."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gateway.learn import write_dicom
from gateway.learn.training import write_trained
from models.cards import CardFolder
from models.cohorts import Cohort, Scan
from models.mdl_decoupling import Decoupler, OwnSemantics
from models.reid_encoder import ReidEncoder
from models.resynthesis import AdjustableParts, Resynthesis
from models.train.fundus_resynth_small import EYES, with_sides
from models.train.reid_material import pictures_of
from models.train.reid_plan import AdjustablePlan
from models.train.resynthesis import train_resynthesis
from models.train.trained import Options, Trained
from tests.adjustable_films import PLAN, SIDE, TINY, TINY_CODEC, TINY_REID

CARD = "tiny-eyes-1"
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
COLOUR: AdjustablePlan = replace(
    PLAN, reid=replace(TINY_REID, channels=3, around=5), picture=replace(TINY, channels=3), channels=3
)


def eye(person: int, visit: int) -> NDArray[np.float32]:
    """(SIDE, SIDE, 3): an orange field on black with a disc of the person's own, on the right of even people's right
    eyes and the left of the others' left ones; a new exposure at each visit.
    """
    own, taken = np.random.default_rng(person), np.random.default_rng(1000 * person + visit)
    y, x = np.mgrid[:SIDE, :SIDE] / (SIDE - 1) - 0.5
    cy, cx = own.uniform(-0.15, 0.15), own.uniform(0.1, 0.2) * (-1) ** person
    disc = np.clip(2 * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / 0.015), 0, 1)[..., None]
    field = np.array([0.65, 0.35, 0.15]) * own.uniform(0.9, 1.1, 3) + disc * np.array([0.25, 0.4, 0.3])
    lit = field * taken.uniform(0.8, 1.0) + 0.02 * taken.random((SIDE, SIDE, 3))
    return np.clip(np.where((np.hypot(x, y) < 0.48)[..., None], lit, 0), 0, 1).astype(np.float32)


def eyes(people: int, visits: int = 2) -> Cohort:
    """Every third person has haemorrhages; right eyes and left ones in turn."""
    scans = [
        Scan(
            f"{person}-{visit}",
            f"E{person:02}",
            str(visit),
            lambda person=person, visit=visit: eye(person, visit) @ LUMA,
            attributes={"finding": "none" if person % 3 else "haemorrhages", "eye": "RL"[person % 2]},
            load_colour=lambda person=person, visit=visit: eye(person, visit),
        )
        for person in range(people)
        for visit in range(visits)
    ]
    return Cohort("tiny-eyes", tuple(scans), synthetic=True)


def parts() -> AdjustableParts:
    """Untrained networks of three channels, seeded."""
    torch.manual_seed(6)
    made = (
        ReidEncoder(COLOUR.reid),
        OwnSemantics(1, 3),
        Decoupler(TINY_CODEC),
        Resynthesis(replace(COLOUR.picture, scaling=0.5)),
    )
    reid, foundation, decoupler, picture = (one.eval().requires_grad_(requires_grad=False) for one in made)
    return AdjustableParts(reid, "own", foundation, decoupler, picture, "flow", 2, 3)


@lru_cache(maxsize=1)
def trained() -> Trained:
    """By the training that users run, once in a process."""
    torch.set_num_threads(1)
    made = train_resynthesis(CARD, COLOUR, [eyes(80)], Options(seed=1), lambda *_: None, EYES)
    return with_sides(made, *some_eyes(20))


def some_eyes(people: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures (n, 3, SIDE, SIDE), and which are of right eyes."""
    pictures = torch.cat([pictures_of(scan, SIDE, 3) for scan in eyes(people, 1)])
    return pictures, torch.tensor([scan.attributes["eye"] == "R" for scan in eyes(people, 1)])


def write_card(folder: Path) -> Path:
    write_trained(trained(), [], CardFolder.flat(folder), lambda *_: None)
    return folder


def write_eye(folder: Path, person: int = 1) -> Path:
    """One photograph, an object of its own study."""
    people = eyes(person + 1, 1)
    write_dicom(people.of([people.subjects[person]]), folder)
    (path,) = folder.rglob("*.dcm")
    return path
