"""What differs between synthetic people, and between sessions of one of them: a table of traits with two spreads.

Trait = mean + identity gain · spread between people · z(person) + session gain · spread between sessions · z(session),
z standard normal. `gains` turns one difficulty, 0 to 1, into both gains, so linkage falls smoothly while every draw
stays the same: a cohort of one seed differs between difficulties in scale only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.cohorts.cohort import AGE_BAND_YEARS

Floats = NDArray[np.float64]
YOUNGEST_YEARS, OLDEST_YEARS = 20, 90
MEAN_GAP_DAYS = 200.0


@dataclass(frozen=True, slots=True)
class Trait:
    """`people` and `sessions` are standard deviations; `sex` is added for men and subtracted for women."""

    mean: float
    people: float = 0.0
    sessions: float = 0.0
    sex: float = 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Gains at difficulty 0 and 1; between them they are interpolated geometrically."""

    identity: tuple[float, float]
    session: tuple[float, float]

    def gains(self, difficulty: float) -> tuple[float, float]:
        """(identity, session). Raises ValueError outside 0 to 1."""
        if not 0 <= difficulty <= 1:
            raise ValueError("the difficulty of a cohort lies between 0 (easy to link) and 1 (hard)")
        return (_between(*self.identity, difficulty), _between(*self.session, difficulty))


@dataclass(frozen=True, slots=True)
class Visit:
    """One scan of one person, as numbers: all that a picture is made of.

    `person_key` and `session_key` seed what is not in the table (trees, textures, noise).
    """

    traits: Mapping[str, float]
    identity: float
    session: float
    person_key: tuple[int, ...]
    session_key: tuple[int, ...]
    sex: str
    age_years: float
    finding: str
    severity: float
    view: str
    site: int
    day: float

    def person(self, part: int) -> np.random.Generator:
        """The person's own draws for one part of the anatomy, the same in every session."""
        return np.random.default_rng([*self.person_key, part])

    def moment(self, part: int) -> np.random.Generator:
        """The session's own draws."""
        return np.random.default_rng([*self.session_key, part])


def visits(
    table: Mapping[str, Trait],
    spread: Spread,
    *,
    kind: int,
    people: int,
    sessions: int,
    seed: int,
    difficulty: float,
    findings: Sequence[str],
    finding_share: float,
    views: Sequence[str],
    sites: int,
    sex_strength: float,
) -> list[list[Visit]]:
    """For each person the visits in order of time. Person p of a seed is the same whatever the number of people.

    Half of the people are men. A person keeps the finding, in changing severity; the scanner is drawn for each session.
    Raises ValueError for numbers that make no cohort.
    """
    if people < 1 or sessions < 1 or sites < 1:
        raise ValueError("a cohort needs at least one person, one session and one site")
    if not 0 <= finding_share <= 1:
        raise ValueError("the share of people with a finding lies between 0 and 1")
    gains = spread.gains(difficulty)
    return [
        _visits_of(table, gains, (seed, kind, p), sessions, findings, finding_share, views, sites, sex_strength)
        for p in range(people)
    ]


def _visits_of(
    table: Mapping[str, Trait],
    gains: tuple[float, float],
    key: tuple[int, int, int],
    sessions: int,
    findings: Sequence[str],
    finding_share: float,
    views: Sequence[str],
    sites: int,
    sex_strength: float,
) -> list[Visit]:
    identity, session = gains
    generator = np.random.default_rng([*key, 0])
    sex = "FM"[key[2] % 2]
    age = float(generator.uniform(YOUNGEST_YEARS, OLDEST_YEARS))
    finding = str(generator.choice(list(findings))) if generator.random() < finding_share else ""
    own = generator.normal(size=len(table))
    sign = sex_strength if sex == "M" else -sex_strength
    out, day = [], 0.0
    for k in range(sessions):
        moment = np.random.default_rng([*key, 1, k])
        now = moment.normal(size=len(table))
        traits = {
            name: float(t.mean + sign * t.sex + identity * t.people * a + session * t.sessions * b)
            for (name, t), a, b in zip(table.items(), own, now, strict=True)
        }
        out.append(
            Visit(
                traits=traits,
                identity=identity,
                session=session,
                person_key=(*key, 2),
                session_key=(*key, 3, k),
                sex=sex,
                age_years=age + day / 365.25,
                finding=finding,
                severity=float(moment.uniform(0.5, 1.0)),
                view=str(moment.choice(list(views))),
                site=int(moment.integers(sites)),
                day=day,
            )
        )
        day += float(np.ceil(moment.exponential(MEAN_GAP_DAYS)))
    return out


def age_band(age_years: float) -> str:
    """Twenty years wide: "40-59"."""
    low = int(age_years) // AGE_BAND_YEARS * AGE_BAND_YEARS
    return f"{low}-{low + AGE_BAND_YEARS - 1}"


def _between(a: float, b: float, share: float) -> float:
    return float(a ** (1 - share) * b**share)
