"""The closed loop of a release: which of its studies are made at a stronger level before it is judged again.

All that were made at the weakest level that the release has. Not those whose originals were found, one by one: which
study is found is half chance, so that making just these anew draws better luck and not less leak
(`bench.closed_loop`). A release is judged at most as often as a study may be made, and alpha is spent on each look:
what does not pass by then is blocked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.app.levels import may_escalate
from gateway.app.parts import Parts
from gateway.database import MemberRow, ReleaseRow
from gateway.gate import ReleaseJudgement
from gateway.policy import Policy


def to_escalate(levels: Mapping[str, int], policy: Policy, looks: int) -> tuple[str, ...]:
    """Names of the studies at the weakest level; () when the release was looked at often enough.

    `levels` has the level of each study that may go on to the next one, `looks` says how often the release was judged,
    this time included.
    """
    if looks >= policy.looks or not levels:
        return ()
    weakest = min(levels.values())
    return tuple(sorted(name for name, level in levels.items() if level == weakest))


def chosen(
    parts: Parts, release: ReleaseRow, audited: Sequence[MemberRow], judgement: ReleaseJudgement, policy: Policy
) -> tuple[str, ...]:
    """Job keys of a release that does not pass: what is tried again. () when it is to be blocked."""
    if judgement.passes or not judgement.stronger_may_help:
        return ()
    jobs = filter(None, (parts.database.job(row.job_key) for row in audited))
    levels = {job.job_key: job.level for job in jobs if may_escalate(parts, job, policy)}
    return to_escalate(levels, policy, release.looks + 1)
