"""The second act of `demo`: a release that is blocked, and one that is cleared.

Films of people who do not exist are sent once and routed twice: to a policy that cleans headers and leaves the pixels
as they are, and to one that makes every film anew with the card that ships. Each collects a release; what was learned
to tell people apart judges both, by the same limits. These are loose, because sixty people show no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gateway.database.releases import BLOCKED, SENT
from gateway.errors import EnvironmentFault
from gateway.learn.writing import write_dicom
from gateway.study import State

if TYPE_CHECKING:
    from gateway.app.serve import Gateway
    from gateway.database import ReleaseRow

PEOPLE, SIDE, SEED = 60, 64, 20261132  # nobody of them is outside the card's domain, and nobody is on its list
AE_TITLE = "FILMS"  # by which the route knows them
CARD, LEVELS = "chest-resynth-small-1", (0.1, 0.04)
ATTACKERS = ("chest-audit-1", "gradients")
MAX_EXCESS_UPPER, MAX_RANK1_UPPER, GALLERY = 0.5, 0.3, 50
UNTOUCHED, ANEW = "films-as-they-are", "films-made-anew"
LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class DemoScore:
    """The worst figure of a check: over attackers and attacks, the one nearest to its limit or furthest beyond."""

    check: str
    attacker: str
    attack: str
    estimate: float
    upper: float
    limit: float


@dataclass(frozen=True, slots=True)
class DemoRelease:
    """One release as it ended; `done` says what the policy does with pixels."""

    name: str
    done: str
    state: str
    reason: str
    people: int
    scores: tuple[DemoScore, ...]


def add_film_policies(folder: Path, destination: str) -> None:
    """Both policies, and a route to them in front of the others."""
    for name in (UNTOUCHED, ANEW):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(film_policy(name), sort_keys=False), "utf-8")
    path = folder / "routes.yaml"
    routes = yaml.safe_load(path.read_text("utf-8"))
    targets = [{"project": name, "policy": name, "destination": destination} for name in (UNTOUCHED, ANEW)]
    routes["routes"].insert(0, {"name": "films", "when": {"calling_ae": AE_TITLE}, "targets": targets})
    path.write_text(yaml.safe_dump(routes, sort_keys=False), "utf-8")


def film_policy(name: str) -> dict[str, Any]:
    """Of UNTOUCHED or ANEW, as its YAML file says it."""
    return {
        "name": name,
        "extends": ["ps3.15-basic@2026d"],
        "header": {"patient_id": {"pseudonym": "keyed", "prefix": "FILM-"}},
        "pixels": [{"resynthesize": {"card": CARD, "levels": list(LEVELS)}}] if name == ANEW else [],
        "gate": {
            "study": {"residual_identifiers": {"max": 0}},
            "release": {
                "linkability": {"cards": list(ATTACKERS), "max_excess_upper": MAX_EXCESS_UPPER},
                "rank1": {"max_upper": MAX_RANK1_UPPER, "gallery": GALLERY},
            },
            "not_assessed": [
                {
                    "aspects": ["burned_in_text", "recognizable_features"],
                    "modality": ["CR"],
                    "reason": "drawn films have no text, and a chest has no face",
                    "approver": "the demo",
                }
            ],
        },
        "release": {"min_subjects": PEOPLE, "close": "full", "on_fail": "hold"},
    }


def film_studies(folder: Path) -> list[list[Path]]:
    """Draw the films and write them as DICOM; one study a person."""
    from models.cohorts import synthetic_chest

    write_dicom(synthetic_chest(PEOPLE, 1, SEED, size=SIDE), folder, modality="CR", masks=())
    return [[path] for path in sorted(folder.rglob("*.dcm"))]


def releases_of(gateway: Gateway, tick: Callable[[str], None] = lambda _said: None) -> tuple[DemoRelease, ...]:
    """Wait until both releases have ended. Raises EnvironmentFault when they do not in time."""
    began = time.monotonic()
    database = gateway.parts.database
    while True:
        rows = {row.policy: row for row in database.releases_in() if row.policy in (UNTOUCHED, ANEW)}
        ready = len(database.jobs_in(State.AWAITING_RELEASE))
        tick(f"{ready} of {2 * PEOPLE} drawn films wait for their releases, which are judged when all are there")
        if len(rows) == 2 and all(row.state in (SENT, BLOCKED) for row in rows.values()):
            return tuple(_ended(gateway, rows[name]) for name in (UNTOUCHED, ANEW))
        if time.monotonic() - began > LIMIT_S:
            raise EnvironmentFault(f"the releases of the demo did not end within {LIMIT_S:.0f} s; see its gateway.log")
        time.sleep(0.25)


def _ended(gateway: Gateway, row: ReleaseRow) -> DemoRelease:
    done = "made anew" if row.policy == ANEW else "left as they are"
    people = {member.person for member in gateway.parts.database.members(row.serial)}
    return DemoRelease(row.name, done, row.state, row.reason, len(people), tuple(worst(row.figures)))


def worst(figures: Sequence[dict[str, Any]]) -> list[DemoScore]:
    """One a check."""
    found: dict[str, DemoScore] = {}
    for one in figures:
        if one["note"] or one["upper"] is None:
            continue
        score = DemoScore(one["check"], one["card"], one["attack"], one["estimate"], one["upper"], one["limit"])
        if score.check not in found or score.upper > found[score.check].upper:
            found[score.check] = score
    return list(found.values())
