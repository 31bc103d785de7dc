"""What a ledger line tells of a job: codes, counts and digests, never a value."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from gateway.database import JobRow
from gateway.study import NotAssessed, Receipt, Step, Verdict

Steps = dict[str, tuple[Step, ...]]  # of each instance, by its name in the job, in the order they were done


def is_dropped(steps: Sequence[Step]) -> bool:
    """True when a stage left the instance out."""
    return any(step.dropped for step in steps)


def total(steps: Steps) -> dict[str, dict[str, int]]:
    """Counts of all instances, by stage and version, and which instances a stage left out: what the ledger tells."""
    sums: dict[str, Counter[str]] = {}
    for step in (step for of_instance in steps.values() for step in of_instance):
        sums.setdefault(f"{step.stage}@{step.version}", Counter())["instances"] += 1
        sums[f"{step.stage}@{step.version}"].update(step.counts)
    told = {stage: dict(counts) for stage, counts in sorted(sums.items())}
    out = {name: 1 for name, of_instance in steps.items() if is_dropped(of_instance)}
    return {**told, "dropped": out} if out else told


def dropped_names(job: JobRow) -> frozenset[str]:
    """Names of the instances that the job's scrub left out."""
    return frozenset(json.loads(job.steps or "{}").get("dropped", {}))


def told(verdicts: Sequence[Verdict], not_assessed: Sequence[NotAssessed]) -> dict[str, object]:
    """Verdicts and what was not judged, as codes and counts."""
    return {
        "verdicts": [
            {
                "check": v.check,
                "outcome": str(v.outcome),
                "reason": v.reason,
                "findings": len(v.findings),
                "assessed": dict(v.assessed),
                **({"scores": dict(v.scores)} if v.scores else {}),
            }
            for v in verdicts
        ],
        "not_assessed": [asdict(entry) for entry in not_assessed],
    }


def stored(job: JobRow) -> dict[str, object]:
    """Steps and verdicts that lie in the job's row."""
    verdicts = json.loads(job.verdicts or "[]")
    return {
        "steps": json.loads(job.steps or "{}"),
        "verdicts": [{**verdict, "findings": len(verdict["findings"])} for verdict in verdicts],
    }


def answers(receipts: Iterable[Receipt]) -> dict[str, int]:
    """What the archive said, by kind and DIMSE status: {"success 0000": 12}. Status -1: nothing came back."""
    return dict(Counter(f"{r.kind} {r.status:04X}" if r.status >= 0 else f"{r.kind} none" for r in receipts))


def identity(job: JobRow) -> Mapping[str, object]:
    """Which job, of which study, under which policy."""
    return {
        "job": job.job_key,
        "study": job.study_key,
        "generation": job.generation,
        "policy_digest": job.policy_digest,
    }
