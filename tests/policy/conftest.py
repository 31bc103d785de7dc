"""A small registry and a policy text that loads, for the tests of policy loading."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_registry import REGISTRY

from gateway.policy import Policy, Registry, load_policy

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
