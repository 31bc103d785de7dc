"""What a pixel stage is: it estimates, then applies; what it estimated is stored before it is used.

A stage is a frozen dataclass whose fields are the policy parameters. `estimate` may use whatever is not exactly
repeatable (text detectors, registrations); `apply` is a pure function of files, parameters, seed and estimate. So a
replay, a second arrival and another worker give the same bytes (DESIGN.md invariant 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from gateway.policy import Policy
from gateway.study import Step


class Scope(StrEnum):
    """Which instances of a study one call of a stage sees together; groups run side by side."""

    INSTANCE = "instance"
    SERIES = "series"
    STUDY = "study"


@dataclass(frozen=True, slots=True)
class Instance:
    """`original` is read only. `candidate` is header-clean; a stage replaces it whole, or leaves it as it is."""

    name: str
    original: Path
    candidate: Path


@dataclass(frozen=True, slots=True)
class Work:
    """What a stage works with. `seed`: 32 bytes keyed by project, study and stage; nobody without the key has it.
    `models`: a folder of cards of the site's own, beside those that ship. `level`: how strongly the stage that the
    policy's `escalate` names works this time, as its levels say it; None for every other stage, and for a stage that
    goes by its own parameters. `follow_up`: another study of this person, in this project, left before this one.
    """

    policy: Policy
    seed: bytes
    models: Path | None = None
    level: float | None = None
    follow_up: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """`facts` is JSON data, `arrays` go beside it. Neither holds an identifying value: no text that was read, no pixels
    of the original.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


class Stage(Protocol):
    """Every stage; one contract suite tests all of them."""

    VERSION: ClassVar[str]  # changes when the same input would give another estimate or other bytes
    SCOPE: ClassVar[Scope]

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:
        """Look, and write nothing. Raises Hold."""

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:
        """Replace the candidates that must change; one Step for each instance, in order. A Step with `dropped` leaves
        its instance out. Raises Hold.
        """

    def describe(self) -> str:
        """One English sentence of what these parameters do, for `policy explain`."""
