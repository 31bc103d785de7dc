"""How hard synthetic people are to link: one number, from 0 (people differ, visits do not) to 1 (the reverse).

The table that turns the number into strengths is `brains_difficulty.yaml`, frozen before any anonymiser was trained;
beside each row it holds what attackers without training found there (written by `bench/cohorts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

FROZEN = Path(__file__).parent / "brains_difficulty.yaml"


@dataclass(frozen=True, slots=True)
class Strengths:
    """Factors of 1: how far people differ in shape, and how far visits, scanners and noise disturb that."""

    person: float
    visit: float
    scanner: float
    noise: float


@lru_cache(maxsize=1)
def frozen() -> dict[str, Any]:
    """The committed calibration: `levels`, `strengths`, `measured`, `reference`."""
    with open(FROZEN, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    if not isinstance(document, dict):
        raise TypeError(f"{FROZEN.name} is no mapping: restore the committed file")
    return document


def difficulty_of(level: str | float) -> float:
    """0 to 1, of a name (easy, medium, hard) or a number. Raises ValueError."""
    levels = frozen()["levels"]
    if isinstance(level, str):
        if level not in levels:
            raise ValueError(f"the difficulty is one of {', '.join(levels)}, or a number from 0 to 1")
        return float(levels[level])
    if not 0 <= level <= 1:
        raise ValueError("the difficulty is a number from 0 to 1")
    return float(level)


def strengths(level: str | float) -> Strengths:
    """Linear between the rows of the frozen table. Raises ValueError."""
    rows = frozen()["strengths"]
    at = [row["difficulty"] for row in rows]
    where = difficulty_of(level)
    names = ("person", "visit", "scanner", "noise")
    return Strengths(*(float(np.interp(where, at, [row[name] for row in rows])) for name in names))
