"""Pixel stages by the name a policy gives them. Adding one: a file here and a line in STAGES (contract: `stage`).

They run on header-clean candidates, before the gate, in the order of the policy. What no stage and no check answers for
is `not_assessed`, so a study that bears pixels leaves only where the policy accepts that with reason and approver.
"""

from __future__ import annotations

from gateway.pixels.estimates import run_stage
from gateway.pixels.stage import Estimate, Instance, Scope, Stage, Work

STAGES: dict[str, type] = {}

__all__ = ["STAGES", "Estimate", "Instance", "Scope", "Stage", "Work", "run_stage"]
