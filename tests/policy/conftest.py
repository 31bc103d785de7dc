"""A small registry and a policy text that loads, for the tests of policy loading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from gateway.policy import Policy, Registry, load_policy


@dataclass(frozen=True)
class Residual:
    judges: ClassVar[frozenset[str]] = frozenset({"header"})
    max: int = 0

    def __post_init__(self) -> None:
        if self.max < 0:
            raise ValueError("max cannot be negative")


@dataclass(frozen=True)
class Risk:
    target: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resynthesize:
    HAS_LEVELS = True
    card: str
    privacy: Risk = Risk(0.05)


@dataclass(frozen=True)
class Deface:
    margin_mm: float = 3.0


REGISTRY = Registry(
    stages={"resynthesize": Resynthesize, "deface": Deface},
    study_checks={"residual_identifiers": Residual},
    release_checks={"rank1": Risk},
    aspects=frozenset({"header", "burned_in_text", "recognizable_features", "image_identity"}),
)

WHOLE = """\
name: brain-2026
extends: [ps3.15-basic@2026d]
header:
  options: [retain-longitudinal-modified-dates, retain-device-identity]
  patient_id: {pseudonym: keyed, prefix: BT-}
  dates: {shift_days: [-300, 300], scope: patient}
  keep:
    PatientAge: "stratification, DPO-2026-014"
    PatientSex: "stratification, DPO-2026-014"
pixels:
  - deface: {}
  - resynthesize: {card: cxr-v1, privacy: {target: 0.1}}
gate:
  study:
    residual_identifiers: {max: 0}
  release:
    rank1: {target: 1, words: [a, b]}
  not_assessed:
    - {aspects: [burned_in_text], modality: [CT, MR], reason: rare, approver: J. Doe}
escalate: {stage: resynthesize, levels: [0.95, 0.7], max_attempts: 2}
release: {min_subjects: 150, close: nightly, on_fail: hold}
retain: {originals_days: 10, held_days: 20, references_days: 30}
forward: {to: research-archive, verify: status}
"""

SMALL = "name: small\nextends: [ps3.15-basic@2026d]\ngate: {study: {residual_identifiers: {max: 0}}}\n"


@pytest.fixture
def registry() -> Registry:
    return REGISTRY


@pytest.fixture
def whole() -> str:
    return WHOLE


@pytest.fixture
def small() -> str:
    return SMALL


@pytest.fixture
def load(tmp_path: Path):
    def load_text(text: str | bytes) -> Policy:
        path = tmp_path / "policy.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_policy(path, REGISTRY)

    return load_text
