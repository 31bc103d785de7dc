"""The policies that ship are strict: they load, they refuse to guess, and they accept only what they say."""

from __future__ import annotations

import json

import pytest
import yaml

from gateway.app.policy.registry import REGISTRY
from gateway.policy import PolicySet, load_policies
from gateway.settings import SHIPPED_POLICIES


@pytest.fixture
def shipped() -> PolicySet:
    return load_policies(SHIPPED_POLICIES, REGISTRY)


def test_research_basic_is_the_basic_profile_with_modified_dates(shipped: PolicySet) -> None:
    policy = shipped.policies["research-basic"]
    assert policy.extends == ("ps3.15-basic@2026d",)
    assert policy.header.options == {"retain-longitudinal-modified-dates"}
    assert policy.header.dates is not None
    assert policy.header.dates.shift_days == (-365, 365)
    assert dict(policy.header.keep) == {}
    assert list(policy.gate.study) == ["residual_identifiers"]
    assert policy.gate.study["residual_identifiers"].max == 0


def test_it_accepts_unjudged_pictures_of_sectional_imaging_and_radiotherapy_only(shipped: PolicySet) -> None:
    entries = shipped.policies["research-basic"].gate.not_assessed
    assert {modality for entry in entries for modality in entry.modality} == {
        *("CT", "MR", "PT", "RTPLAN", "RTSTRUCT", "RTDOSE"),
    }
    assert all("header" not in entry.aspects for entry in entries)
    assert all("privacy officer" in entry.approver and len(entry.reason) > 40 for entry in entries)


def test_every_modality_of_the_routes_is_sent_through_a_policy_to_the_archive(shipped: PolicySet) -> None:
    modalities = [value for rule in shipped.routes.routes for value in rule.when["modality"]]
    assert len(modalities) == len(set(modalities))
    assert {"CT", "MR", "PT", "RTSTRUCT", "US", "XA", "SC", "OT", "SR"} <= set(modalities)
    assert {target.destination for rule in shipped.routes.routes for target in rule.targets} == {"research-archive"}
    by_modality = {m: rule.targets[0].policy for rule in shipped.routes.routes for m in rule.when["modality"]}
    assert {by_modality[m] for m in ("CT", "MR", "PT", "RTDOSE", "SR", "XC", "GM")} == {"research-basic"}
    assert {by_modality[m] for m in ("US", "XA", "CR", "SC", "OT")} == {"research-pictures"}


def test_pictures_lose_their_text_and_the_gate_looks_again(shipped: PolicySet) -> None:
    policy = shipped.policies["research-pictures"]
    assert [name for name, _ in policy.pixels] == ["hidden_pixels", "burned_in_text"]
    assert set(policy.gate.study) == {"residual_identifiers", "residual_text"}
    assert policy.gate.study["residual_text"].max == 0
    aspects = {aspect for entry in policy.gate.not_assessed for aspect in entry.aspects}
    assert aspects == {"recognizable_features", "image_identity"}
    photographs = {"ES", "XC", "GM", "SM"}
    assert not photographs & {modality for entry in policy.gate.not_assessed for modality in entry.modality}


def test_the_example_archive_is_on_this_machine(shipped: PolicySet) -> None:
    assert shipped.destinations["research-archive"].url == "dicom://ARCHIVE@127.0.0.1:11113"
    assert shipped.destinations["local-folder"].url.startswith("folder:/")


def test_each_file_points_editors_to_the_schema() -> None:
    schema = json.loads((SHIPPED_POLICIES / "schema.json").read_text("utf-8"))
    for path in SHIPPED_POLICIES.glob("*.yaml"):
        first = path.read_text("utf-8").splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema=schema.json")
        _, _, pointer = first.partition("#/$defs/")
        assert not pointer or pointer in schema["$defs"]
        assert yaml.safe_load(path.read_text("utf-8"))
