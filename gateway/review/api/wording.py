"""From the desk's nouns to what the API answers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from gateway.review.api import answers
from gateway.review.desk import Case, Entry
from gateway.review.records import Event, Figure, LeakScore, PolicyVersion, ReleaseDetail, ReleaseFacts, ReleaseView


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def held_study(entry: Entry) -> answers.HeldStudy:
    since = moment(entry.since)
    return answers.HeldStudy(
        entry.key, entry.reason, entry.says, since, entry.policy, entry.stage, entry.signed, entry.needed
    )


def study(case: Case, *, looks: bool) -> answers.Study:
    entry = case.entry
    return answers.Study(
        key=entry.key,
        state=case.state,
        round=case.round,
        reason=entry.reason,
        says=entry.says,
        hint=case.hint,
        at=case.at,
        since=moment(entry.since),
        policy=entry.policy,
        policy_digest=case.policy_digest,
        held_in=entry.stage,
        level=case.level,
        destination=case.destination,
        closed=case.closed,
        no_approval=case.no_release,
        no_redaction=case.no_redaction,
        agreed=entry.signed,
        needed=entry.needed,
        waits_for=case.waits_for,
        objects=list(case.things) if looks and not case.closed else [],
        policies=[answers.Choice(name, digest) for name, digest in case.policies],
    )


def findings(case: Case) -> answers.Findings:
    return answers.Findings([answers.GateVerdict(*verdict) for verdict in case.verdicts], list(case.pointers))


def ledger_lines(events: Iterable[Event]) -> list[answers.LedgerLine]:
    return [
        answers.LedgerLine(one.line, moment(one.time), one.what, one.actor or "gateway", one.said, one.facts, one.key)
        for one in events
    ]


def outcome(said: str) -> answers.Outcome:
    done = said.startswith("done")
    waits = said == "" or said.startswith("agreed;")
    return answers.Outcome("done" if done else "waiting" if waits else "not done", said)


def score(figure: Figure) -> answers.Score:
    share = figure.of_limit
    return answers.Score(
        **_of(LeakScore, figure),
        of_limit=share if share is not None and math.isfinite(share) else None,
        verdict=figure.verdict,
    )


def release(view: ReleaseView) -> answers.Release:
    return answers.Release(
        **_of(ReleaseFacts, view),
        opened=moment(view.opened),
        closed=moment(view.closed) if view.closed else None,
        scores=list(map(score, view.figures)),
    )


def with_content(detail: ReleaseDetail) -> answers.ReleaseWithContent:
    return answers.ReleaseWithContent(
        release=release(detail.view),
        looks=detail.looks,
        stages=[answers.Count(*one) for one in detail.stages],
        levels=[answers.Count(*one) for one in detail.levels],
        residuals=[answers.Count(*one) for one in detail.residuals],
        not_assessed=[answers.Unjudged(*one) for one in detail.unjudged],
    )


def version(one: PolicyVersion) -> answers.Version:
    return answers.Version(one.name, one.digest, moment(one.since), one.in_force)


def _of(kind: type[LeakScore | ReleaseFacts], found: LeakScore | ReleaseFacts) -> dict[str, Any]:
    """What both have of one kind, under the same names."""
    return {one.name: getattr(found, one.name) for one in fields(kind)}
