"""Leak scores on /metrics: estimate, upper bound and limit by policy, release number, check, card, attack and view."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from prometheus_client import Gauge

from gateway.app.parts import Parts
from gateway.app.release.dossier import Content, by_level, content_of
from gateway.database import ReleaseRow
from gateway.database.releases import BLOCKED
from gateway.errors import Hold
from gateway.gate import WHOLE
from gateway.policy import Policy

LAST = 10  # releases of a policy whose scores are told: the number of labels stays bounded
KINDS = ("estimate", "upper", "limit")
_known: dict[tuple[str, int, float], Content] = {}  # by home, serial and change: members are many, and read once


def refresh(parts: Parts) -> None:
    """Set the gauges of releases. Raises what the database raises."""
    rows = parts.database.releases_in()
    forget(parts)
    metrics = parts.metrics
    for (policy, state), count in Counter((row.policy, row.state) for row in rows).items():
        metrics.releases.labels(policy, state).set(count)
    told: dict[str, list[ReleaseRow]] = defaultdict(list)
    for row in rows:
        told[row.policy].append(row)
        if row.state == BLOCKED:
            metrics.release_blocked.labels(row.policy).set(row.updated_at)
    kept = {_key(parts, row) for of_policy in told.values() for row in of_policy[-LAST:]}
    for gone in _known.keys() - kept:
        del _known[gone]
    for of_policy in told.values():
        for row in of_policy[-LAST:]:
            _tell(parts, row)


def forget(parts: Parts) -> None:
    """Leave out what is not known."""
    metrics = parts.metrics
    of_checks = (*metrics.release_linkability, *metrics.release_rank1, *metrics.release_accuracy)
    of_content = (
        metrics.release_people,
        metrics.release_looks,
        metrics.release_residuals,
        metrics.release_stages,
        metrics.release_levels,
    )
    for gauge in (metrics.releases, metrics.release_score, metrics.release_blocked, metrics.release_group):
        gauge.clear()
    for gauge in (*of_checks, *of_content):
        gauge.clear()


def _tell(parts: Parts, row: ReleaseRow) -> None:
    metrics, names = parts.metrics, (row.policy, str(row.number))
    for figure in worst(row.figures):
        labels = (*names, figure["check"], figure["card"], figure["attack"], figure["view"], figure["scope"])
        for kind in KINDS:
            if figure[kind] is not None:
                metrics.release_score.labels(*labels, kind).set(figure[kind])
    for (check, card, view), figure in worst_by_card(row.figures).items():
        match check if view == WHOLE else "":  # what a release risks is said of whole images only
            case "linkability":
                _set(metrics.release_linkability, (*names, card), figure)
            case "rank1":
                _set(metrics.release_rank1, (*names, card), figure)
            case "attribute_inference":
                _set(metrics.release_accuracy, (*names, card, attribute_of(parts, row)), figure)
            case "record_isolation":
                metrics.release_group.labels(*names).set(figure["estimate"])
    if row.looks:
        metrics.release_looks.labels(*names).set(row.looks)
    _tell_content(parts, row, names)


def _tell_content(parts: Parts, row: ReleaseRow, names: tuple[str, str]) -> None:
    metrics, content = parts.metrics, _content(parts, row)
    metrics.release_people.labels(*names).set(content.people)
    for check, count in content.findings.items():
        metrics.release_residuals.labels(*names, check).set(count)
    for stage, count in content.of_stage().items():
        metrics.release_stages.labels(*names, stage).set(count)
    for level, count in by_level(_policy(parts, row), content).items():
        metrics.release_levels.labels(*names, level).set(count)


def _content(parts: Parts, row: ReleaseRow) -> Content:
    """An open release changes without its row: its members are counted anew."""
    if not row.closed_at:
        return Content(len({member.person for member in parts.database.members(row.serial)}))
    key = _key(parts, row)
    if key not in _known:
        _known[key] = content_of(parts.database, row)
    return _known[key]


def _key(parts: Parts, row: ReleaseRow) -> tuple[str, int, float]:
    return str(parts.home.root), row.serial, row.updated_at


def _set(gauges: tuple[Gauge, Gauge], labels: tuple[str, ...], figure: Mapping[str, Any]) -> None:
    for gauge, kind in zip(gauges, KINDS[:2], strict=True):
        if figure[kind] is not None:
            gauge.labels(*labels).set(figure[kind])


def attribute_of(parts: Parts, row: ReleaseRow) -> str:
    """Which attribute the policy's check infers; "" where this build cannot read the policy any more."""
    policy = _policy(parts, row)
    check = policy.gate.release.get("attribute_inference") if policy is not None else None
    return str(getattr(check, "attribute", ""))


def _policy(parts: Parts, row: ReleaseRow) -> Policy | None:
    """None where this build cannot read it any more."""
    try:
        return parts.policies.of(row.policy_digest)
    except Hold:
        return None


def worst(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One figure for each check, card, attack, view and scope: of a card's distances the one that says most."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for figure in figures:
        key = (figure["check"], figure["card"], figure["attack"], figure["view"], figure["scope"])
        if key not in found or _reach(figure) > _reach(found[key]):
            found[key] = figure
    return list(found.values())


def worst_by_card(figures: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The figure that decides for each check, card and view: over its attacks and scopes. No evidence is no figure."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for figure in figures:
        key = (figure["check"], figure["card"], figure["view"])
        if _reach(figure) > (_reach(found[key]) if key in found else float("-inf")):
            found[key] = figure
    return found


def _reach(figure: dict[str, Any]) -> float:
    """How bad a figure is: a group is worse the smaller it is."""
    if figure["note"] or figure["upper"] is None:
        return float("-inf")
    return -float(figure["upper"]) if figure["check"] == "record_isolation" else float(figure["upper"])
