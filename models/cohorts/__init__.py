"""Synthetic people, and readers of research layouts: every one gives a `Cohort`."""

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.manifest import read_manifest

__all__ = ["Cohort", "Scan", "read_manifest"]
