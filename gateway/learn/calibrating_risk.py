"""`calibrate`: which level of an adjustable anonymiser gives which risk, written into its card.

At each level a fresh attacker is trained on what the anonymiser makes of auxiliary people; other people, whom nobody
was trained on, are then looked for among their originals. A policy that names a target risk takes its levels from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from gateway.errors import UsageError
from gateway.learn.attacked import Attack, Attacked, falling
from gateway.learn.calibrating import must_be_free, write_card
from gateway.learn.opened import Anonymiser, anonymiser_of, attacker_of
from gateway.learn.readable import Reader
from gateway.learn.released import Released, parted, released
from models.cards import Calibration, Card, CardFolder, DomainLimits, Risk, people_hash, weights_of
from models.cohorts import Cohort
from models.train.trained import Options, Start, Tick

LEVELS = (0.95, 0.7, 0.4, 0.2, 0.1, 0.04, 0.02)
CONFIDENCE, GALLERY, VALID_DAYS = 0.95, 50, 365
ATTACKERS = {"CR": "chest-audit-1", "DX": "chest-audit-1", "OP": "fundus-audit-1", "MR": "brain-audit-1"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a calibration is to tell, and how much is spent on it: `attacker` is the card that attackers start from, ""
    the one that ships for the modality; `steps` of each one's training, None its own plan.
    """

    levels: tuple[float, ...] = LEVELS
    confidence: float = CONFIDENCE
    gallery: int = GALLERY
    attacker: str = ""
    steps: int | None = None
    valid_days: int = VALID_DAYS
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Risked:
    """The card that was written and its file. `left_out`: people whom anonymiser or attacker know, `outside`: pictures
    that are not of the card's domain, which a gateway would hold.
    """

    card: Card
    path: Path
    left_out: int
    outside: int


def calibrate_risk(
    name: str,
    cohorts: Sequence[Cohort],
    folders: Sequence[CardFolder],
    target: CardFolder,
    tick: Tick,
    *,
    today: date,
    wanted: Wanted = Wanted(),
    new_name: str = "",
) -> Risked:
    """Writes `new_name` (else `name`) into `target`: the card with its calibration, its weights, its lists of people.

    Raises UsageError for cards that cannot be used or know the same people, for too few people, and for attackers that
    do not find people in their untouched originals: their figures would say nothing.
    """
    _must_be_sound(wanted)
    one = anonymiser_of(name, folders)
    start = attacker_of(wanted.attacker or ATTACKERS.get(one.card.modalities[0], ""), folders)
    if both := one.people & start.hashes:
        raise UsageError(
            f"{name} and the attacker {start.card.name} were trained on {len(both)} of the same people; take another "
            "attacker: what judges shares nothing with what is judged"
        )
    must_be_free(one.card, new_name or name, target)
    auxiliary, judged, left_out = parted(cohorts, one.people | start.hashes)
    untouched, outside = [], 0
    for side in (auxiliary, judged):
        kept = released(one.parts, one.domain, side, None, wanted.seed, tick)
        untouched.append(kept)
        outside += kept.outside
    _must_suffice(untouched, wanted, left_out, outside)
    attack = Attack.of(
        start,
        untouched[0].cohort,
        untouched[1].cohort,
        gallery=wanted.gallery,
        confidence=wanted.confidence,
        options=Options(steps=wanted.steps, seed=wanted.seed),
        tick=tick,
    )
    found, read = _attacked(one, attack, wanted, tick)
    calibration = _calibration(found, cohorts, untouched, start, wanted, today)
    made = _card(one.card, new_name or name, calibration, found, read, today + timedelta(days=wanted.valid_days))
    weights = weights_of(one.card, one.folder)
    files: dict[Path, bytes] = {}
    if weights is not None and made.weights is not None:
        files[target.weights / made.weights.file] = weights.read_bytes()
    for part in one.card.trained_on:
        files[target.people / part.people_file] = (one.folder.people / part.people_file).read_bytes()
    return Risked(made, write_card(made, files, target), left_out, outside)


def _must_be_sound(wanted: Wanted) -> None:
    levels = wanted.levels
    if not levels or not all(0 < one < 1 for one in levels) or list(levels) != sorted(set(levels), reverse=True):
        raise UsageError("levels lie between 0 and 1, the weakest (the largest) first")
    if not 0.5 < wanted.confidence < 1 or wanted.gallery < 2 or wanted.valid_days < 1:
        raise UsageError("the confidence lies between 0.5 and 1, a gallery has 2 people and more, a card lasts a day")


def _must_suffice(untouched: Sequence[Released], wanted: Wanted, left_out: int, outside: int) -> None:
    auxiliary, judged = (len(one.cohort.subjects) for one in untouched)
    if judged < wanted.gallery or auxiliary < wanted.gallery:
        raise UsageError(
            f"{auxiliary} people for the attackers and {judged} to judge, who came twice and whom nobody was trained "
            f"on ({left_out} are known, {outside} pictures are outside the card's domain); both need {wanted.gallery}"
        )


def _attacked(
    one: Anonymiser, attack: Attack, wanted: Wanted, tick: Tick
) -> tuple[dict[float, Attacked], dict[float, float]]:
    """What attackers find at each level, and how well findings are read (level 1: of originals; empty: none known)."""
    hashes = frozenset(people_hash(attack.auxiliary.name, subject) for subject in attack.judged.subjects)
    reader = Reader.of(attack.auxiliary)
    read = {} if reader is None else {1.0: reader.auroc(attack.judged)}
    found: dict[float, Attacked] = {}
    for level in wanted.levels:
        sides = [
            released(one.parts, one.domain, side, level, wanted.seed, tick).cohort
            for side in (attack.auxiliary, attack.judged)
        ]
        found[level] = attack.at(f"calibration-r{level:g}", sides[0], sides[1], hashes, tick)
        if found[level].originals <= 2 / wanted.gallery:
            raise UsageError(
                f"the attacker finds {found[level].originals:.0%} of people in untouched originals, next to chance: "
                "what it does not find in released pictures says nothing; take another --attacker, or more people"
            )
        if reader is not None:
            read[level] = reader.auroc(sides[1])
    return found, read


def _calibration(
    found: dict[float, Attacked],
    cohorts: Sequence[Cohort],
    untouched: Sequence[Released],
    start: Start,
    wanted: Wanted,
    today: date,
) -> Calibration:
    from models.resynthesis.domain import ONE_SIDED

    digest = hashlib.sha256("".join(cohort.people_digest() for cohort in cohorts).encode()).hexdigest()
    uppers = falling([found[level].upper for level in wanted.levels])
    rank1 = falling([found[level].rank1 for level in wanted.levels])
    domain = DomainLimits.fitted(untouched[1].statistics, ONE_SIDED)
    return Calibration(
        cohort=", ".join(cohort.name for cohort in cohorts),
        cohort_sha256=digest,
        synthetic=all(cohort.synthetic for cohort in cohorts),
        people=len(untouched[1].cohort.subjects),
        auxiliary=len(untouched[0].cohort.subjects),
        attacker=start.card.name,
        gallery=wanted.gallery,
        confidence=wanted.confidence,
        on=today,
        untouched=round(min(one.originals for one in found.values()), 4),
        levels=tuple(
            Risk(level=level, rank1=round(at, 4), upper=min(float(np.ceil(upper * 1e4) / 1e4), 1.0))
            for level, at, upper in zip(wanted.levels, rank1, uppers, strict=True)
        ),
        domain=domain.limits,
    )


def _card(
    card: Card,
    name: str,
    calibration: Calibration,
    found: dict[float, Attacked],
    read: dict[float, float],
    valid_until: date,
) -> Card:
    metrics: dict[str, str | float | int] = {
        key: value for key, value in card.metrics.items() if not key.startswith("calibration")
    }
    metrics["calibration: rank-1 in untouched originals"] = round(calibration.untouched, 3)
    for level, one in found.items():
        for (attacker, attack), (rank1, upper) in one.figures.items():
            metrics[f"calibration, r {level:g}: {attacker} attacker, {attack}"] = f"{rank1:.3f}, at most {upper:.3f}"
    for level, auroc in read.items():
        where = "untouched originals" if level == 1 else f"r {level:g}"
        said = round(auroc, 3) if auroc == auroc else "not measured: too few with and without findings"
        metrics[f"calibration: AUROC of findings by a model of originals, {where}"] = said
    changes: dict[str, Any] = {
        "name": name,
        "calibration": calibration,
        "metrics": metrics,
        "valid_until": valid_until,
    }
    try:
        return Card.model_validate({**card.model_dump(), **changes})
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise UsageError(f"the card cannot be written: {faults}") from None
