"""Who is trained on and who is judged in bench.adjustable, as films with findings, outlines and reports.

`nih-chestxray14`: real films; learnt on the people of chest-audit-1's list, judged on the others; no outlines and no
reports. `synthetic-chest`: drawn people; ours is the card, what it is compared with learns on the card's own people;
attackers have people of their own, others are judged. `synthetic-chest, unseen scanners`: the same, judged and attacked
on films of three scanners that the card has no film of.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.adjustable_reports import slots_of
from bench.encoders import split
from models.cohorts import READERS, Cohort, Scan, synthetic_chest
from models.train.reid_material import Material, gathered, known_findings
from models.train.trained import Tick

A_PERSON = 4  # auxiliary films of one person at most
CARD_PEOPLE = (660, 4, 701)  # people, visits, seed: everybody on the list of chest-resynth-small-1 is among these
LEARNT, ATTACKERS, JUDGED = (300, 2), (100, 2), (200, 2)  # people, visits
OUTLINED = ("consolidation", "effusion", "nodule")
SEEDS = {"synthetic-chest": (812, 813), "synthetic-chest, unseen scanners": (814, 815)}
SCANNERS = 3  # of the card's films; the next three are unseen
REAL = "nih-chestxray14"


@dataclass(frozen=True, slots=True)
class Films:
    """`outlines` (n, 1, side, side), `slots` of each film's report; both are empty where a cohort does not say."""

    material: Material
    outlines: Tensor
    slots: tuple[tuple[str, ...], ...]

    @property
    def x(self) -> Tensor:
        """(n, 1, side, side), 0 to 1."""
        return self.material.x.float()


@dataclass(frozen=True, slots=True)
class Setting:
    """`known`: what methods and readers learn on. `auxiliary`: the attackers' own. `judged`: in no training.

    `cohort`: that of `known`, where ours is trained on it as well, and is no card.
    """

    name: str
    known: Films
    auxiliary: Films
    judged: Films
    cohort: Cohort | None = None

    def people(self) -> dict[str, int]:
        return {
            "learnt on": len(self.known.material.people),
            "films learnt on": len(self.known.material),
            "auxiliary films of the attackers": len(self.auxiliary.material),
            "judged": len(self.judged.material.people),
            "judged films": len(self.judged.material),
        }


def outline_of(scan: Scan, side: int) -> NDArray[np.bool_]:
    """(side, side): the finding's mask, empty where there is none to outline."""
    own = [scan.masks[name]() for name in OUTLINED if name in scan.masks]
    return own[0] if own else np.zeros((side, side), bool)


def few_each(material: Material, most: int) -> Material:
    """The first films of everybody."""
    seen: dict[int, int] = {}
    rows = []
    for row, person in enumerate(material.who.tolist()):
        seen[person] = seen.get(person, 0) + 1
        if seen[person] <= most:
            rows.append(row)
    at = torch.tensor(rows)
    return replace(material, x=material.x[at], who=material.who[at], findings=material.findings[at])


def real(data: Path, side: int, tick: Tick) -> Setting:
    ours, others = split("chest-audit-1", READERS["nih64"](data / "cxr"))
    names = known_findings([ours])
    known, judged = (_untold(gathered([one], names, side, tick)) for one in (ours, others))
    return Setting(REAL, known, _untold(few_each(known.material, A_PERSON)), judged, ours)


def _untold(material: Material) -> Films:
    return Films(material, torch.zeros(0), ())


def drawn(name: str, card: str, side: int, keep: Path, tick: Tick) -> Setting:
    """Of SEEDS. Drawn once, then read from `keep`."""
    learnt, _ = split(card, synthetic_chest(*CARD_PEOPLE, size=side))
    learnt = first_visits(learnt.of(learnt.subjects[: LEARNT[0]]), LEARNT[1])
    names = known_findings([learnt])
    attackers, judged = SEEDS[name]
    parts = [(learnt, f"learnt-{card}")]
    for seed, (people, visits) in ((attackers, ATTACKERS), (judged, JUDGED)):
        if "unseen" in name:  # half of six scanners are: enough visits for two on unseen ones
            cohort = first_visits(unseen(synthetic_chest(2 * people, 4, seed, size=side, sites=2 * SCANNERS)), visits)
            cohort = cohort.of(cohort.subjects[:people])
        else:
            cohort = synthetic_chest(people, visits, seed, size=side, sites=SCANNERS)
        parts.append((cohort, f"{seed}"))
    return Setting(name, *(_drawn(cohort, names, side, keep / f"films-{file}.pt", tick) for cohort, file in parts))


def first_visits(cohort: Cohort, visits: int) -> Cohort:
    """Of everybody who has as many."""
    of: dict[str, list[int]] = {}
    for row, scan in enumerate(cohort.scans):
        of.setdefault(scan.subject, []).append(row)
    rows = [row for own in of.values() if len(own) >= visits for row in own[:visits]]
    return replace(cohort, scans=tuple(cohort.scans[row] for row in rows))


def unseen(cohort: Cohort) -> Cohort:
    """Films of scanners that the card has no film of."""
    return replace(cohort, scans=tuple(one for one in cohort.scans if int(one.site.rpartition("-")[2]) >= SCANNERS))


def _drawn(cohort: Cohort, names: Sequence[str], side: int, path: Path, tick: Tick) -> Films:
    if path.is_file():
        x, who, findings, kept_names, people, outlines, slots = torch.load(path, weights_only=True)
        if kept_names == tuple(names) and len(x) == len(cohort):
            return Films(Material(x, who, findings, kept_names, people), outlines, slots)
    material = gathered([cohort], names, side, tick)
    outlines = [outline_of(scan, side) for scan in cohort]
    slots = tuple(slots_of(scan, outline) for scan, outline in zip(cohort, outlines, strict=True))
    made = Films(material, torch.from_numpy(np.stack(outlines))[:, None], slots)
    one = (material.x, material.who, material.findings, material.names, material.people, made.outlines, slots)
    fresh = path.with_suffix(".part")
    torch.save(one, fresh)
    os.replace(fresh, path)
    return made
