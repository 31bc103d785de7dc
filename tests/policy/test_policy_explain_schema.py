"""What a policy is in plain words, and what editors know of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from gateway.errors import PolicyError
from gateway.policy import Policy, Registry, explain_policy, policy_schema
from gateway.policy.loading import KEYS, REQUIRED
from gateway.policy.routes import PREDICATES

Load = Callable[[str | bytes], Policy]


def test_the_explanation_says_everything_that_the_policy_decides(load: Load, whole: str) -> None:
    lines = explain_policy(load(whole))
    text = "\n".join(lines)
    for part in (
        "brain-2026",
        load(whole).digest,
        "edition 2026d (657 rows)",
        "recorded in the objects as 113107",
        "recorded in the objects as 113109",
        '"BT-"',
        "between -300 and 300, never 0",
        "PatientAge (0010,1010), because: stratification, DPO-2026-014",
        "deface (margin_mm 3.0)",
        "residual_identifiers (max 0)",
        "rank1",
        "burned in text of CT and MR. Because: rare",
        "J. Doe",
        "levels 0.95, 0.7, at most 2 times",
        "at least 150 people; it closes every night",
        "originals 10 days, held studies 20 days, references 30 days",
        "only research-archive",
    ):
        assert part in text
    assert all("\n" not in line and line for line in lines)


def test_the_explanation_of_dates_follows_the_options(load: Load, small: str) -> None:
    def dates(header: str) -> str:
        return next(line for line in explain_policy(load(small + header)) if line.startswith("Dates:"))

    assert "removed" in dates("")
    assert "kept as they are" in dates("header: {options: [retain-longitudinal-full-dates]}\n")
    assert "between -365 and 365" in dates("header: {options: [retain-longitudinal-modified-dates]}\n")


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        ("{verify: status}", "counts as sent when the archive answered for every instance"),
        ("{verify: storage-commitment}", "counts as sent when the archive committed to keep every instance"),
        ("{shadow: true}", "nothing leaves"),
    ],
)
def test_the_explanation_says_when_a_study_counts_as_sent(load: Load, small: str, forward: str, says: str) -> None:
    assert says in explain_policy(load(f"{small}forward: {forward}\n"))[-1]


def accepts(schema: Any, data: Any, root: Any) -> bool:
    """A small judge of the JSON schema words that our schema uses (draft 2020-12), written for these tests."""
    if "$ref" in schema:
        return accepts(root["$defs"][schema["$ref"].rpartition("/")[2]], data, root)
    if "enum" in schema and data not in schema["enum"]:
        return False
    if "const" in schema and data != schema["const"]:
        return False
    if any(word in schema for word in ("anyOf", "oneOf")) and not any(
        accepts(part, data, root) for part in schema.get("anyOf", schema.get("oneOf"))
    ):
        return False
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}
    if "type" in schema and (not isinstance(data, kinds[schema["type"]]) or isinstance(data, bool)):
        return False
    if isinstance(data, dict):
        known = schema.get("properties", {})
        extra = schema.get("additionalProperties", True)
        return (
            set(schema.get("required", ())) <= set(data)
            and len(data) >= schema.get("minProperties", 0)
            and all(accepts(known[key], item, root) for key, item in data.items() if key in known)
            and (extra is not False or set(data) <= set(known))
            and (not isinstance(extra, dict) or all(accepts(extra, v, root) for k, v in data.items() if k not in known))
        )
    if isinstance(data, list):
        sizes = schema.get("minItems", 0) <= len(data) <= schema.get("maxItems", 10**9)
        return sizes and all(accepts(schema.get("items", {}), item, root) for item in data)
    if isinstance(data, int | float) and not isinstance(data, bool):
        return bool(schema.get("minimum", data) <= data <= schema.get("maximum", data))
    return True


def test_the_schema_accepts_what_the_loader_accepts(load: Load, whole: str, small: str, registry: Registry) -> None:
    schema = policy_schema(registry)
    for text in (whole, small):
        load(text)
        assert accepts(schema, yaml.safe_load(text), schema)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: brain-2026\n", ""),
        ("2026d", "2026c"),
        ("retain-device-identity", "retain-everything"),
        ("pseudonym: keyed", "pseudonym: plain"),
        ("prefix: BT-", "prefixes: BT-"),
        ("residual_identifiers", "residual_identifier"),
        ("max: 0", "max: none"),
        ("burned_in_text", "burned_in_txt"),
        (", approver: J. Doe", ""),
        ("- deface", "- defaced"),
        ("min_subjects: 150", "min_subjects: 0"),
        ("close: nightly", "close: hourly"),
        ("originals_days: 10", "originals_days: 0"),
        ("forward:", "forwards:"),
    ],
)
def test_the_schema_and_the_loader_refuse_the_same(
    load: Load, whole: str, registry: Registry, before: str, after: str
) -> None:
    text = whole.replace(before, after, 1)
    assert text != whole
    with pytest.raises(PolicyError):
        load(text)
    schema = policy_schema(registry)
    assert not accepts(schema, yaml.safe_load(text), schema)


def test_the_schema_names_every_key_and_predicate_and_is_deterministic(registry: Registry) -> None:
    schema = policy_schema(registry)
    assert set(schema["properties"]) == set(KEYS)
    assert schema["required"] == list(REQUIRED)
    rule = schema["$defs"]["routes"]["properties"]["routes"]["items"]
    assert set(rule["properties"]["when"]["properties"]) == set(PREDICATES)
    assert json.dumps(policy_schema(registry)) == json.dumps(schema)
    references = [part.partition('"')[0] for part in json.dumps(schema).split('"#/$defs/')[1:]]
    assert set(references) <= set(schema["$defs"])


def test_a_build_without_stages_offers_none(registry: Registry) -> None:
    schema = policy_schema(Registry({}, registry.study_checks, {}, registry.aspects))
    assert schema["properties"]["pixels"] == {"type": "array", "maxItems": 0}
