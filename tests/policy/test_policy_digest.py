"""The digest is the policy's meaning: blind to order, comments and spaces, changed by every change of meaning."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import PolicyError, UsageError
from gateway.policy import Policy, Registry, read_snapshot
from gateway.policy import model as policy_model

Load = Callable[[str | bytes], Policy]


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same data with the keys of every mapping in another order; lists keep theirs."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, rng)) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.booleans(), st.integers(2, 8), st.integers(20, 200))
def test_order_style_indentation_and_comments_do_not_matter(
    load: Load, whole: str, seed: int, flow: bool, indent: int, width: int
) -> None:
    data = shuffled(yaml.safe_load(whole), random.Random(seed))
    text = yaml.safe_dump(data, sort_keys=False, default_flow_style=flow, indent=indent, width=width)
    commented = "# a comment\n" + text + "\n\n# another\n"
    assert load(commented).digest == load(whole).digest


def test_the_order_of_options_does_not_matter_and_that_of_stages_does(load: Load, whole: str) -> None:
    digest = load(whole).digest
    options = "[retain-longitudinal-modified-dates, retain-device-identity]"
    assert options in whole
    assert load(whole.replace(options, "[retain-device-identity, retain-longitudinal-modified-dates]")).digest == digest
    stages = ["  - deface: {}\n", "  - resynthesize: {card: cxr-v1, privacy: {target: 0.1}}\n"]
    assert load(whole.replace("".join(stages), "".join(reversed(stages)))).digest != digest


def test_a_default_written_out_does_not_matter(load: Load, small: str) -> None:
    written = (
        "header: {options: [], patient_id: {pseudonym: keyed, prefix: ''}, keep: {}}\npixels: []\n"
        "retain: {originals_days: 30, held_days: 90, references_days: 365}\nforward: {to: '', verify: status}\n"
    )
    assert load(small + written).digest == load(small).digest


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("brain-2026", "brain-2027"),
        (", retain-device-identity", ""),
        ("prefix: BT-", "prefix: BU-"),
        ("[-300, 300]", "[-300, 301]"),
        ('PatientAge: "stratification, DPO-2026-014"', 'PatientAge: "stratification, DPO-2026-015"'),
        ("    PatientSex:", "    PatientSize:"),
        ("target: 0.1", "target: 0.2"),
        ("card: cxr-v1", "card: cxr-v2"),
        ("max: 0", "max: 1"),
        ("words: [a, b]", "words: [a]"),
        ("modality: [CT, MR]", "modality: [CT, MR, PT]"),
        ("reason: rare", "reason: very rare"),
        ("approver: J. Doe", "approver: J. Roe"),
        ("levels: [0.95, 0.7]", "levels: [0.95, 0.6]"),
        ("min_subjects: 150", "min_subjects: 151"),
        ("close: nightly", "close: manual"),
        ("held_days: 20", "held_days: 21"),
        ("to: research-archive", "to: other-archive"),
        ("  - deface: {}\n", ""),
    ],
)
def test_every_change_of_meaning_changes_it(load: Load, whole: str, before: str, after: str) -> None:
    assert before in whole
    assert load(whole.replace(before, after, 1)).digest != load(whole).digest


def test_other_tables_of_the_standard_change_it(load: Load, small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = load(small).digest
    monkeypatch.setattr(policy_model, "standard_digest", lambda edition: "another table")
    assert load(small).digest != digest


def test_a_changed_copy_has_its_own_digest_and_its_own_kept_tags(load: Load, whole: str) -> None:
    policy = load(whole)
    assert policy.model_copy(update={"name": "other"}).digest != policy.digest
    assert policy.header.kept_tags
    assert policy.header.model_copy(update={"keep": {}}).kept_tags == frozenset()


def test_it_is_64_hex_digits(load: Load, small: str) -> None:
    assert len(bytes.fromhex(load(small).digest)) == 32


def test_a_snapshot_gives_an_equal_policy_back(load: Load, whole: str, small: str, registry: Registry) -> None:
    for text in (whole, small, small + "header: {options: [retain-longitudinal-full-dates]}\n"):
        policy = load(text)
        again = read_snapshot(policy.to_snapshot(), registry)
        assert again == policy
        assert again.digest == policy.digest
        assert again.to_snapshot() == policy.to_snapshot()


def test_a_snapshot_of_other_tables_is_refused(load: Load, small: str, registry: Registry) -> None:
    body = json.loads(load(small).to_snapshot())
    body["standard"] = "0" * 64
    with pytest.raises(UsageError, match="other tables"):
        read_snapshot(json.dumps(body), registry)


def test_a_snapshot_that_this_build_cannot_carry_out_is_refused(load: Load, whole: str, registry: Registry) -> None:
    snapshot = load(whole).to_snapshot()
    smaller = Registry({}, registry.study_checks, registry.release_checks, registry.aspects)
    with pytest.raises(PolicyError, match="unknown stage resynthesize"):
        read_snapshot(snapshot, smaller)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"policy": 1, "standard": ""}', '{"policy": {}}', "\ud800", "[" * 9])
def test_a_damaged_snapshot_is_a_usage_error(registry: Registry, text: str) -> None:
    with pytest.raises(UsageError):
        read_snapshot(text, registry)
