"""What a ledger line tells of a job: codes, counts and digests, never a value."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from gateway.database import JobRow
from gateway.study import NotAssessed, Receipt, Step, Verdict


def total(steps: Sequence[Step]) -> dict[str, dict[str, int]]:
    """Counts of all instances, by stage and version: what the ledger tells of a job."""
    sums: dict[str, Counter[str]] = {}
    for step in steps:
        sums.setdefault(f"{step.stage}@{step.version}", Counter())["instances"] += 1
        sums[f"{step.stage}@{step.version}"].update(step.counts)
    return {stage: dict(counts) for stage, counts in sorted(sums.items())}


def dropped(names: Sequence[str], steps: Sequence[Step]) -> dict[str, dict[str, int]]:
    """The instances that a stage left out, by their names in the job: stored and told beside the counts."""
    out = {name: 1 for name, step in zip(names, steps, strict=True) if step.dropped}
    return {"dropped": out} if out else {}


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
