"""The JSON schema that editors use (`policies/schema.json`), made from the same types that the loader uses.

The file is the schema of a policy; `#/$defs/routes` and `#/$defs/destinations` are those of the other two files. It
shows shapes, names and choices while somebody types; the loader remains the judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from gateway.policy.destinations import NOTES, S3_KEYS, SOURCES, TLS_KEYS, WEB_KEYS
from gateway.policy.header_section import HeaderShape
from gateway.policy.model import (
    CARRIED_OUT,
    PROFILE,
    ForwardPolicy,
    NotAssessedEntry,
    Registry,
)
from gateway.policy.parsing import parameter_model
from gateway.policy.release_section import EscalatePolicy, ReleasePolicy, RetainPolicy
from gateway.policy.review_section import ReviewPolicy
from gateway.policy.routes import PREDICATES, PRIORITIES
from gateway.policy.sources import ASSOCIATIONS_MAX, GET, MOVE, PER_HOUR_MAX
from gateway.policy.standard import OPTION_CODES, editions
from gateway.policy.vault_section import VaultPolicy

Json = dict[str, Any]
NAME: Json = {"type": "string", "pattern": "^[a-z0-9][a-z0-9.-]{0,62}$"}


def _closed(properties: Json, required: tuple[str, ...], says: str) -> Json:
    return {
        "type": "object",
        "description": says,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _of(model: type[BaseModel], definitions: Json) -> Json:
    """The schema of a model; what it refers to goes to `definitions`."""
    schema = model.model_json_schema(ref_template="#/$defs/{model}", mode="validation")
    for name, inner in schema.pop("$defs", {}).items():
        definitions[name] = inner
    return schema


def _by_name(types: Mapping[str, type], definitions: Json) -> Json:
    return {name: _of(parameter_model(kind), definitions) for name, kind in sorted(types.items())}


def _header(definitions: Json) -> Json:
    header = _of(HeaderShape, definitions)
    header["properties"]["options"]["items"] = {"enum": sorted(CARRIED_OUT)}
    header["properties"]["options"]["uniqueItems"] = True
    header["properties"]["options"]["description"] = "; ".join(
        f"{name}: {OPTION_CODES[name][1]}" for name in sorted(CARRIED_OUT)
    )
    header["properties"]["keep"]["propertyNames"] = {"pattern": "^[A-Z][A-Za-z0-9]*$"}
    header["properties"]["keep"]["description"] = "DICOM keyword -> why it is kept, and who decided so"
    return header


def _gate(registry: Registry, definitions: Json) -> Json:
    entry = _of(NotAssessedEntry, definitions)
    entry["properties"]["aspects"]["items"] = {"enum": sorted(registry.aspects)}
    return _closed(
        {
            "study": {
                **_closed(_by_name(registry.study_checks, definitions), (), "checks of every study"),
                "minProperties": 1,
            },
            "release": _closed(
                _by_name(registry.release_checks, definitions), (), "checks over people, need `release`"
            ),
            "not_assessed": {"type": "array", "items": entry},
        },
        ("study",),
        "what must hold before anything leaves",
    )


def _pixels(registry: Registry, definitions: Json) -> Json:
    stages = _by_name(registry.stages, definitions)
    items = [_closed({name: schema}, (name,), f"stage {name}") for name, schema in stages.items()]
    return {"type": "array", "items": {"oneOf": items}} if items else {"type": "array", "maxItems": 0}


def _routes() -> Json:
    value = {"type": "string", "minLength": 1}
    values = {"oneOf": [value, {"type": "array", "items": value, "minItems": 1, "uniqueItems": True}]}
    when = _closed(dict.fromkeys(PREDICATES, values), (), "every predicate must match on one of its values")
    target = _closed(
        {"project": NAME, "policy": NAME, "destination": NAME}, ("project", "policy", "destination"), "one job"
    )
    rule = _closed(
        {
            "name": NAME,
            "when": {**when, "minProperties": 1},
            "targets": {"type": "array", "items": target, "minItems": 1, "uniqueItems": True},
            "priority": {"enum": list(PRIORITIES), "description": "which studies are worked on first; else routine"},
        },
        ("name", "when", "targets"),
        "the first rule that matches decides",
    )
    return _closed({"routes": {"type": "array", "items": rule, "minItems": 1}}, ("routes",), "routes.yaml")


def _destinations() -> Json:
    url = {
        "type": "string",
        "pattern": "^(dicom(-tls)?://[^@]{1,16}@.+:[0-9]{1,5}|https://.+|http://(127.0.0.1|localhost|\\[::1\\]).*|s3://.+|folder:.+)$",
    }
    text = {"type": "string", "minLength": 1}
    span = {"type": "string", "pattern": "^([A-Z][a-z]{2}(-[A-Z][a-z]{2})? +)?[0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}$"}
    hours = {
        "hours": {"oneOf": [span, {"type": "array", "items": span, "minItems": 1}]},
        "zone": {**text, "description": "time zone of hours, such as Europe/Berlin; else UTC"},
    }
    access = _closed(
        {"url": url, NOTES: {"type": "boolean"}, **hours} | dict.fromkeys((*TLS_KEYS, *WEB_KEYS, *S3_KEYS), text),
        ("url",),
        "an archive that asks who we are, that takes rejection notes, or that is sent to in some hours only",
    )
    source = _closed(
        {
            "url": {"type": "string", "pattern": "^dicom(-tls)?://[^@]{1,16}@.+:[0-9]{1,5}$"},
            "retrieve": {"enum": [MOVE, GET]},
            "move_to": {"type": "string", "minLength": 1, "maxLength": 16},
            "studies_per_hour": {"type": "integer", "minimum": 1, "maximum": PER_HOUR_MAX},
            "associations": {"type": "integer", "minimum": 1, "maximum": ASSOCIATIONS_MAX},
            **hours,
        }
        | dict.fromkeys(TLS_KEYS, text),
        ("url",),
        "a PACS that a back-load fetches studies from",
    )
    return {
        "type": "object",
        "description": "destinations.yaml: name of an archive -> where it is",
        "propertyNames": NAME,
        "properties": {SOURCES: {"type": "object", "propertyNames": NAME, "additionalProperties": source}},
        "additionalProperties": {"oneOf": [url, access]},
        "minProperties": 1,
    }


def policy_schema(registry: Registry) -> Json:
    """JSON schema, draft 2020-12, of what this build can do. The same registry gives the same schema."""
    definitions: Json = {}
    properties = {
        "name": NAME,
        "extends": {
            "type": "array",
            "items": {"enum": [f"{PROFILE}@{edition}" for edition in editions()]},
            "minItems": 1,
            "maxItems": 1,
        },
        "header": _header(definitions),
        "pixels": _pixels(registry, definitions),
        "gate": _gate(registry, definitions),
        "escalate": _of(EscalatePolicy, definitions),
        "release": _of(ReleasePolicy, definitions),
        "retain": _of(RetainPolicy, definitions),
        "forward": _of(ForwardPolicy, definitions),
        "vault": _of(VaultPolicy, definitions),
        "review": _of(ReviewPolicy, definitions),
    }
    policy = _closed(properties, ("name", "extends", "gate"), "a de-identification policy")
    definitions |= {"routes": _routes(), "destinations": _destinations()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "deid-gateway policy",
        **policy,
        "$defs": dict(sorted(definitions.items())),
    }
