"""Do the bounds of D_sys cover the truth? People of three kinds who leak a known amount, again and again (synthetic).

    other visit          scans of a person share a direction; mates are another session's
    same scan            what leaves keeps some of the original's direction, of everybody alike
    same scan, of a few  some people leave unchanged, all others as noise: what an average hides

Truth is read off 600,000 independent pairs. `upper` bounds what the estimator reads; `excess` is what limits are
compared with; `difference`, upper less the reading of shuffled labels, is what they must not be compared with: it reads
a real leak low. Beside each the exact binomial chance of seeing so few covered if the bound held in 95 %.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.stats import binom

from gateway.evidence import People, ScoredPairs, d_sys, linkability, score_pairs, score_same_scan
from gateway.evidence.pairs import Floats

NOMINAL = 0.95
DIMENSIONS, PAIRS = 24, 600_000
REPLICATES, PERMUTATIONS = 200, 60
BOUNDS = ("upper", "excess", "difference")
Released = Callable[[int, int, float, np.random.Generator], tuple[Floats, Floats]]


def visits(people: int, scans: int, strength: float, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """(scans, scans): there is nothing but the scans themselves."""
    own = np.repeat(generator.normal(size=(people, DIMENSIONS)), scans, axis=0)
    x = strength * own + generator.normal(size=own.shape)
    return x, x


def alike(people: int, scans: int, strength: float, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """(released, originals)."""
    originals, noise = generator.normal(size=(2, people * scans, DIMENSIONS))
    return strength * originals + np.sqrt(1 - strength**2) * noise, originals


def of_a_few(people: int, scans: int, strength: float, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """(released, originals); `strength` is the share of people who leave unchanged."""
    originals, noise = generator.normal(size=(2, people * scans, DIMENSIONS))
    unchanged = np.repeat(generator.random(people) < strength, scans)
    return np.where(unchanged[:, None], originals + 0.1 * noise, noise), originals


@dataclass(frozen=True, slots=True)
class Setting:
    """`strength` as `KINDS[kind]` takes it."""

    kind: str
    people: int
    scans: int
    strength: float


KINDS: dict[str, Released] = {"other visit": visits, "same scan": alike, "same scan, of a few": of_a_few}
SETTINGS = (
    *(Setting("same scan", n, 1, leak) for leak in (0.1, 0.2, 0.35) for n in (15, 30, 60, 120)),
    *(Setting("same scan, of a few", n, 1, share) for share in (0.1, 0.3) for n in (15, 30, 60, 120)),
    *(
        Setting("other visit", *one)
        for one in ((30, 2, 0.5), (30, 5, 0.35), (60, 3, 0.5), (69, 10, 0.35), (150, 2, 0.7), (150, 4, 0.35))
    ),
)


def truth(setting: Setting) -> float:
    """D_sys of endless people, from pairs that are independent of each other."""
    scans = 2 if setting.kind == "other visit" else 1
    made, kept = KINDS[setting.kind](PAIRS, scans, setting.strength, np.random.default_rng(99))
    left, right = (made[::2], kept[1::2]) if scans == 2 else (made, kept)
    return d_sys(_cosines(left, right), _cosines(left, np.roll(right, 1, axis=0)))


def _cosines(a: Floats, b: Floats) -> Floats:
    return np.asarray((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))


def pairs_of(setting: Setting, seed: int) -> ScoredPairs:
    people = People.of(np.repeat(np.arange(setting.people), setting.scans).tolist())
    generator = np.random.default_rng([setting.people, setting.scans, seed])
    made, kept = KINDS[setting.kind](setting.people, setting.scans, setting.strength, generator)
    if setting.kind == "other visit":
        return score_pairs(made, people, "cosine")
    return score_same_scan(made, kept, people, "cosine")


def coverage(repeats: int, found: dict[str, Any], done: Callable[[], None], console: Console) -> None:
    """Fills `found`, setting by setting; `done` is called after each. Settings that are there are not done again."""
    rows = found.setdefault("settings", [])
    for setting in SETTINGS:
        if not any(_same(row, setting) and row["repeats"] == repeats for row in rows):
            rows[:] = [*(row for row in rows if not _same(row, setting)), _covered(setting, repeats, console)]
            done()
    found |= {"synthetic": True, "nominal": NOMINAL}
    found |= {name: pick(rows) for name, pick in SUMMARY.items()}


def _same(row: dict[str, Any], setting: Setting) -> bool:
    return all(row[name] == getattr(setting, name) for name in Setting.__slots__)


def _covered(setting: Setting, repeats: int, console: Console) -> dict[str, Any]:
    known = truth(setting)
    row: dict[str, Any] = {name: getattr(setting, name) for name in Setting.__slots__}
    what = f"{setting.kind}, {setting.people} people, {setting.scans} scans, D {known:.2f}"
    bounds: dict[str, list[float]] = {name: [] for name in BOUNDS}
    above, readings, nulls = [], [], []
    for seed in track(range(repeats), what, console=console):
        one = linkability(
            pairs_of(setting, seed), np.random.default_rng(seed), replicates=REPLICATES, permutations=PERMUTATIONS
        )
        for name, value in zip(BOUNDS, (one.upper, one.excess_upper, one.upper - one.null_mean), strict=True):
            bounds[name].append(value)
        above.append(one.upper - one.value)
        readings.append(one.value)
        nulls.append(one.null_mean)
    row |= {"truth": known, "repeats": repeats, "bound_above_estimate": statistics.median(above)}
    row |= {"reads": statistics.mean(readings), "shuffled": statistics.mean(nulls)}
    for name, values in bounds.items():
        covered = sum(value >= known for value in values)
        row[name] = {
            "coverage": covered / repeats,
            "p": float(binom.cdf(covered, repeats, NOMINAL)),
            "mean": statistics.mean(values),
        }
    return row


def _of_both(rows: list[dict[str, Any]], what: str) -> Iterator[float]:
    """Of the two bounds that are used."""
    return (row[name][what] for row in rows for name in BOUNDS[:2])


SUMMARY: dict[str, Callable[[list[dict[str, Any]]], float]] = {
    "coverage_min": lambda rows: min(_of_both(rows, "coverage")),
    "coverage_p": lambda rows: min(_of_both(rows, "p")),
    "excess_coverage_min": lambda rows: min(row["excess"]["coverage"] for row in rows),
    "difference_coverage_min": lambda rows: min(row["difference"]["coverage"] for row in rows),
}
