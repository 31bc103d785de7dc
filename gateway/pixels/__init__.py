"""Pixel stages by the name a policy gives them. Adding one: a file here and a line in STAGES.

This version has none: a policy that names one does not load, and what pixels show is `not_assessed` by the gate, so a
study that bears pixels leaves only where the policy accepts that with reason and approver.
"""

from __future__ import annotations

STAGES: dict[str, type] = {}
