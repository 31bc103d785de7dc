"""Synthetic people, and readers of research layouts: every one gives a `Cohort`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from models.cohorts.brains import synthetic_brains
from models.cohorts.cohort import Cohort, Scan
from models.cohorts.manifest import read_manifest

if TYPE_CHECKING:
    from models.cohorts.chest import synthetic_chest
    from models.cohorts.fundus import synthetic_fundus
    from models.cohorts.readers import MODALITIES, READERS

_LATER = {  # imported when first asked for: they bring OpenCV, and readers many formats
    "MODALITIES": "models.cohorts.readers",
    "READERS": "models.cohorts.readers",
    "synthetic_chest": "models.cohorts.chest",
    "synthetic_fundus": "models.cohorts.fundus",
}

__all__ = [
    "MODALITIES",
    "READERS",
    "Cohort",
    "Scan",
    "read_manifest",
    "synthetic_brains",
    "synthetic_chest",
    "synthetic_fundus",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
