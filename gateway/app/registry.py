"""What this build can do, for the policy loader: stages and checks stand above `policy`, so `app` hands them down."""

from __future__ import annotations

from gateway.gate import ASPECTS, CHECKS, RELEASE_CHECKS
from gateway.pixels import STAGES
from gateway.policy import Registry

REGISTRY = Registry(stages=STAGES, study_checks=CHECKS, release_checks=RELEASE_CHECKS, aspects=ASPECTS)
