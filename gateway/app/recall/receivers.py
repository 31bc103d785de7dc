"""What receivers have of some jobs, in numbers; read without a running gateway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.app.person.tables import PeopleTables
from gateway.app.policy.registry import REGISTRY
from gateway.app.sending import delivered
from gateway.database import Database, JobRow
from gateway.policy import load_policies
from gateway.study import State


def receivers_of(database: Database, jobs: Sequence[JobRow]) -> list[dict[str, Any]]:
    """By receiver: studies and instances that it has, and how many of the studies were recalled."""
    found: dict[str, dict[str, Any]] = {}
    for job in jobs:
        names = delivered(database.receipts(job.job_key))
        if names:
            of_one = found.setdefault(
                job.destination, {"receiver": job.destination, "studies": 0, "instances": 0, "recalled": 0}
            )
            of_one["studies"] += 1
            of_one["instances"] += len(names)
            row = database.job(job.job_key)
            of_one["recalled"] += row is not None and row.state == State.RECALLED
    return [found[name] for name in sorted(found)]


def names_of(person: str, tables: PeopleTables, policies: Path) -> frozenset[str]:
    """Every keyed name of a person under the merge tables of a policies folder. Raises PolicyError."""
    names = frozenset({person})
    for policy in load_policies(policies, REGISTRY).policies.values():
        names = tables.merges(policy.header.patient_id).names(names)
    return names
