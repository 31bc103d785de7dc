"""What an encoder finds about people it was not trained on: the figures of its card and of `bench/encoders.py`.

Protocol: leave-one-out rank-1 over scans whose person has another session here, same-session mates excluded; D_sys of
all pairs with the 99th-percentile bound by a bootstrap over people; recorded sex by a random forest, folds without
common people. The threat is `other_visit` (DESIGN.md section 5), original against original.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.evidence import People, infer_within, leave_one_out, linkability, score_pairs, separation
from models.cohorts import Cohort

Tick = Callable[[str, int, int], None]
Embed = Callable[[NDArray[np.float32], tuple[float, ...] | None], NDArray[np.float32]]
PROTOCOL = (
    "people not trained on, originals against originals of other sessions; rank1: leave-one-out, share of queries, "
    "several mates each; rank1_people: the same as the mean over people, upper bound one-sided 95 % Clopper-Pearson; "
    "D_sys at prior ratio 1, upper bound the 99th percentile of a bootstrap over people; sex: recorded sex, balanced "
    "accuracy over people, random forest, 5 folds without common people, one-sided 95 % bounds"
)


@dataclass(frozen=True, slots=True)
class Figures:
    """One encoder, one metric, one cohort. `rank1` counts queries; `rank1_people` people, by the share of each one's
    queries, and only that has a bound. Sex is None where it is not recorded of everybody, or of too few."""

    metric: str
    people: int
    people_with_mates: int
    scans: int
    queries: int
    rank1: float
    rank1_people: float
    rank1_people_upper: float
    chance: float
    d_sys: float
    d_sys_upper: float
    d_sys_null: float
    auc: float
    sex: float | None
    sex_lower: float | None
    sex_upper: float | None


def embedded(embed: Embed, cohort: Cohort, tick: Tick) -> NDArray[np.float32]:
    """(scans, dimensions)."""
    rows = []
    for done, scan in enumerate(cohort):
        tick("scans embedded", done, len(cohort))
        rows.append(embed(scan.load(), scan.spacing_mm))
    return np.stack(rows)


def people_of(cohort: Cohort) -> People:
    return People.of([scan.subject for scan in cohort], [scan.session for scan in cohort])


def figures(
    embeddings: NDArray[np.float32],
    cohort: Cohort,
    metric: str = "cosine",
    *,
    seed: int = 0,
    replicates: int = 400,
) -> Figures:
    """Raises ValueError when fewer than two people have scans of two sessions."""
    people = people_of(cohort)
    pairs = score_pairs(embeddings, people, metric)
    linked = linkability(pairs, np.random.default_rng(seed), replicates=replicates, permutations=199)
    found = leave_one_out(embeddings, people, metric)
    sex = _sex(embeddings, people, [scan.attributes.get("sex", "") for scan in cohort], seed)
    return Figures(
        metric=metric,
        people=people.count,
        people_with_mates=found.people,
        scans=len(cohort),
        queries=found.queries,
        rank1=found.rank1,
        rank1_people=float(np.nanmean(found.by_subject)),
        rank1_people_upper=found.upper,
        chance=found.chance,
        d_sys=linked.value,
        d_sys_upper=linked.upper,
        d_sys_null=linked.null_mean,
        auc=separation(pairs.mated, pairs.non_mated)[0],
        sex=sex[0],
        sex_lower=sex[1],
        sex_upper=sex[2],
    )


def _sex(
    embeddings: NDArray[np.float32], people: People, sex: Sequence[str], seed: int
) -> tuple[float | None, float | None, float | None]:
    if not all(sex):
        return None, None, None
    try:
        found = infer_within(embeddings, people.subject, sex, seed, replicates=400, permutations=1)
    except ValueError:  # one sex, or too few people of one: nothing to infer
        return None, None, None
    return found.balanced_accuracy, found.lower, found.upper


def card_metrics(cohort: str, found: Figures) -> dict[str, str | float | int]:
    """Entries of a card's `metrics`, rounded to three digits."""
    whole = ("people", "people_with_mates", "scans", "queries")
    out: dict[str, str | float | int] = {f"{cohort}: {name}": getattr(found, name) for name in whole}
    for name in (
        "rank1",
        "rank1_people",
        "rank1_people_upper",
        "d_sys",
        "d_sys_upper",
        "auc",
        "sex",
        "sex_lower",
        "sex_upper",
    ):
        value: Any = getattr(found, name)
        if value is not None:
            out[f"{cohort}: {name}"] = round(float(value), 3)
    return out
