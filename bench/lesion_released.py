"""What the anonymiser makes of people: the last visit of each, kept on disk so that a run can go on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from models.cohorts import Cohort
from models.lesion_anonymiser import Domain, LesionParts, LesionStudy, NotAnonymised, Settings, anonymise, seeded_noise
from models.train.lesion_material import Visit, visits_of


@dataclass(frozen=True, slots=True)
class Released:
    """One person: the first visit's volumes and lesion (the gallery), the last visit's study, and what left of it.

    With one visit both are that one, and nobody may be searched for.
    """

    subject: str
    earlier: LesionStudy
    study: LesionStudy
    brain: NDArray[np.bool_]
    volumes: dict[str, NDArray[np.float32]]
    lesion: NDArray[np.bool_]
    head: NDArray[np.bool_]
    figures: dict[str, float]


def release_all(
    parts: LesionParts, domain: Domain, cohort: Cohort, settings: Settings, folder: Path, console: Console
) -> list[Released]:
    """Everybody whom the card takes; refusals are printed by reason. Raises nothing for them.

    `folder` holds what one card makes of one kind of cohort, however many people were asked for.
    """
    visits: dict[str, list[Visit]] = {}
    for visit in visits_of([cohort]):
        visits.setdefault(visit.subject, []).append(visit)
    folder.mkdir(parents=True, exist_ok=True)
    out, refused = [], {}
    for subject, seen in track(visits.items(), "releasing", console=console):
        first, last = seen[0], seen[-1]
        study = last.study(parts.sequences)
        path = folder / f"{cohort.name}-{subject}-{settings.mode}-{'x'.join(map(str, study.shape))}.npz"
        if not path.is_file():
            try:
                made = anonymise(study, parts, domain, seeded_noise(f"bench {cohort.name} {subject}"), settings)
            except NotAnonymised as error:
                refused[subject] = str(error)
                continue
            named = {f"volume {name}": one for name, one in made.volumes.items()}
            figures = json.dumps(dict(made.figures))
            part = path.with_suffix(".part.npz")
            np.savez(part, lesion=made.lesion, head=made.head, figures=figures, **named)
            part.rename(path)
        with np.load(path) as kept:
            volumes = {name: kept[f"volume {name}"] for name in parts.sequences}
            lesion, head, figures = kept["lesion"], kept["head"], json.loads(str(kept["figures"]))
        brain = last.scans[parts.sequences[0]].masks["brain"]()
        earlier = study if first is last else first.study(parts.sequences)
        out.append(Released(subject, earlier, study, brain, volumes, lesion, head, figures))
    for subject, reason in refused.items():
        console.print(f"{subject} refused: {reason}")
    return out
