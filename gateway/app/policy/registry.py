"""What this build can do, for the policy loader: stages and checks stand above `policy`, so `app` hands them down."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.gate import ASPECTS, CHECKS, RELEASE_CHECKS, folders_of
from gateway.pixels import STAGES
from gateway.policy import Registry

REGISTRY = Registry(
    stages=STAGES, study_checks=CHECKS, release_checks=RELEASE_CHECKS, aspects=ASPECTS, cards=folders_of()
)


def registry_of(models: Path | None) -> Registry:
    """The same for a home that may have cards of its own there; None: without a home."""
    return replace(REGISTRY, cards=folders_of(models))
