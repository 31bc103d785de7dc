"""The closed loop of `app.levels`, for a study that `scrub` makes and judges in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.app.account import Steps
from gateway.app.batch.records import DESTINATION, Records
from gateway.app.batch.studies import Batch
from gateway.app.candidates import Making, kept
from gateway.database import Database, JobRow
from gateway.errors import Hold
from gateway.gate import Judgement, Pair


@dataclass(frozen=True, slots=True)
class Attempt:
    """One study made at a level and judged. `pairs` are those that no stage dropped."""

    level: int
    steps: Steps
    pairs: Sequence[Pair]
    judgement: Judgement

    def failure(self, levels: int) -> Hold:
        """Why it is held, when it has no clearance; `levels` are those of the policy."""
        if levels and self.judgement.stronger_may_help:
            return Hold("no_level_passed", at=f"{self.level + 1} of {levels} levels tried; {self.judgement.at}")
        return Hold(self.judgement.reason, at=self.judgement.at)


def first_passing(
    records: Records,
    database: Database,
    making: Making,
    batch: Batch,
    project: str,
    pairs: Sequence[Pair],
    judge: Callable[[Sequence[Pair], int], Judgement],
) -> Attempt:
    """The first level that passes, or the last that may be tried; each one before it is in the ledger. `judge` takes
    pairs and the number of the look. Raises Hold: what a stage raises, and "another_level_sent".
    """
    policy = records.policy
    row = JobRow(batch.key, batch.study, 1, "", project, policy.name, policy.digest, DESTINATION)
    standing = database.standing_level(row) if policy.escalate is not None else None
    level, last = (standing[0], standing[0]) if standing is not None else (0, policy.attempts - 1)
    while True:
        steps = replace(making, level=level).candidates(pairs)
        left = kept(pairs, steps)
        judgement = judge(left, level + 1)
        if judgement.clearance is not None or not judgement.stronger_may_help or level == last:
            break
        records.escalated(batch, level, judgement)
        level += 1
    passes = judgement.clearance is not None and policy.escalate is not None
    if passes and not database.claim_level(replace(row, level=level)):
        raise Hold("another_level_sent")
    return Attempt(level, steps, left, judgement)
