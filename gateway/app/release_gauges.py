"""Leak scores on /metrics: estimate, upper bound and limit by policy, release number, check, card and attack."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from gateway.app.parts import Parts
from gateway.database import ReleaseRow

LAST = 10  # releases of a policy whose scores are told: the number of labels stays bounded
KINDS = ("estimate", "upper", "limit")


def refresh(parts: Parts) -> None:
    """Set the gauges of releases. Raises what the database raises."""
    rows = parts.database.releases_in()
    metrics = parts.metrics
    metrics.releases.clear()
    for (policy, state), count in Counter((row.policy, row.state) for row in rows).items():
        metrics.releases.labels(policy, state).set(count)
    metrics.release_score.clear()
    judged: dict[str, list[ReleaseRow]] = defaultdict(list)
    for row in rows:
        if row.scores:
            judged[row.policy].append(row)
    for policy, of_policy in judged.items():
        for row in of_policy[-LAST:]:
            for figure in worst(row.figures):
                labels = (policy, str(row.number), figure["check"], figure["card"], figure["attack"], figure["scope"])
                for kind in KINDS:
                    if figure[kind] is not None:
                        metrics.release_score.labels(*labels, kind).set(figure[kind])


def worst(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One figure for each check, card, attack and scope: of a card's distances the one that says most."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for figure in figures:
        key = (figure["check"], figure["card"], figure["attack"], figure["scope"])
        if key not in found or _reach(figure) > _reach(found[key]):
            found[key] = figure
    return list(found.values())


def _reach(figure: dict[str, Any]) -> float:
    return float("-inf") if figure["note"] or figure["upper"] is None else float(figure["upper"])
