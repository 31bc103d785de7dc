"""Between which limits studies lie that a card was trained or calibrated on: statistics by name, as a card has them.

Limits are a stated quantile of the studies that were measured, widened by SLACK: those are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.cards.card import Card, CardError

SLACK = 0.25
QUANTILE = 0.99
PREFIX = "domain "
Parameters = dict[str, str | int | float | bool | tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Outside:
    """A statistic that is beyond its limits."""

    statistic: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DomainLimits:
    """`limits` (low, high) by statistic, of `studies` measured ones at this `quantile`."""

    limits: Mapping[str, tuple[float, float]]
    quantile: float
    studies: int

    @classmethod
    def fitted(
        cls, measured: Sequence[Mapping[str, float]], one_sided: tuple[str, ...], quantile: float = QUANTILE
    ) -> DomainLimits:
        """Of statistics that begin with a name in `one_sided` only too much is wrong. Raises ValueError for none."""
        if not measured or not 0.5 < quantile <= 1:
            raise ValueError("a domain needs studies, and a quantile above a half")
        limits = {}
        for name in measured[0]:
            values = np.array([one[name] for one in measured])
            if name.startswith(one_sided):
                limits[name] = (0.0, float(np.quantile(values, quantile)) * (1 + SLACK))
            else:
                low, high = np.quantile(values, [(1 - quantile) / 2, (1 + quantile) / 2])
                limits[name] = (float(low) / (1 + SLACK), float(high) * (1 + SLACK))
        return cls(limits, quantile, len(measured))

    @classmethod
    def of(cls, card: Card) -> DomainLimits:
        """Raises CardError for a card without a domain: it would take anything."""
        limits = {
            name.removeprefix(PREFIX): (value[0], value[1])
            for name, value in card.parameters.items()
            if name.startswith(PREFIX) and isinstance(value, tuple) and len(value) == 2
        }
        quantile, studies = card.parameters.get("domain_quantile"), card.parameters.get("domain_studies")
        if not limits or quantile is None or studies is None:
            raise CardError(f"{card.name} does not say what it was trained on (domain): train it again")
        return cls(limits, float(quantile), int(studies))  # type: ignore[arg-type]

    def outside(self, measured: Mapping[str, float]) -> tuple[Outside, ...]:
        """Every statistic beyond its limits. One that cannot be a number is out."""
        return tuple(
            Outside(name, value, *self.limits[name])
            for name, value in measured.items()
            if name in self.limits and not self.limits[name][0] <= value <= self.limits[name][1]
        )

    def nearness(self, measured: Mapping[str, float]) -> float:
        """How far the worst statistic has gone: 0 in the middle of its limits, 1 at one of them, more beyond."""
        gone = [0.0]
        for name, (low, high) in self.limits.items():
            if name in measured:
                middle = (high + low) / 2 if low else 0.0  # of a limit on one side 0 is the best
                gone.append(abs(measured[name] - middle) / max(high - middle, 1e-12))
        return max(gone)

    def parameters(self) -> Parameters:
        """For a card."""
        said: Parameters = {"domain_quantile": self.quantile, "domain_studies": self.studies}
        return said | {PREFIX + name: pair for name, pair in self.limits.items()}
