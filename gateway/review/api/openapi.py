"""The OpenAPI 3.1 document, written off the list of calls and the types that they take and give: it cannot differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from gateway.review.api.calls import COUNT, KEY, Operation
from gateway.review.problems import MEDIA_TYPE
from gateway.review.tokens import NEEDS

REFS = "#/components/schemas/{model}"
WHERE = {  # what a part of an address names
    "key": "Key of a study, as the queue has it.",
    "name": "Name of an object of the study, or of a release.",
    "frame": "Number of a frame, from 0.",
    "kind": "`before` or `after`.",
    "serial": "Serial of a decision, as it was accepted.",
}
REFUSALS = {
    "401": "No token, or one that is unknown, over or revoked.",
    "403": "The token has no such scope, or the role of its account may not.",
    "404": "There is no such thing.",
    "405": "Not by this method.",
    "408": "The body came too slowly.",
    "409": "It cannot be done, or shown, and why.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "The query or body is not as described here; `errors` says where.",
    "429": "Too many calls; `Retry-After` says how many seconds to wait.",
    "503": "Nothing can be shown or decided now, and why.",
}
PROBLEM = {
    "type": "object",
    "description": "RFC 9457. It repeats nothing of what was sent.",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["at", "code", "says"],
                "properties": {name: {"type": "string"} for name in ("at", "code", "says")},
            },
        },
    },
}


def document(operations: Sequence[Operation], server: str = "/api/v1") -> dict[str, Any]:
    """As JSON data."""
    given: list[tuple[str, Any, TypeAdapter[Any]]] = []
    for one in operations:
        if not one.is_file:
            given.append((f"{one.ident} answer", "serialization", one.answers))
        if one.body is not None:
            given.append((f"{one.ident} body", "validation", one.takes))
    schemas, definitions = TypeAdapter.json_schemas(given, ref_template=REFS)
    parts = {name: schema for (name, _), schema in schemas.items()}
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        address = re.sub(r":\w+\}", "}", one.path)
        paths.setdefault(address, {})[one.method.lower()] = _operation(one, parts)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "De-identification gateway: review",
            "version": "1",
            "description": "What the review page does, for machines. Each call needs a token with its scope, and an "
            "account whose role may do it. Every write, and every view of an original, is in the ledger.",
        },
        "servers": [{"url": server}],
        "paths": paths,
        "components": {
            "schemas": {**definitions.get("$defs", {}), "Problem": PROBLEM},
            "responses": {status: _refusal(says) for status, says in REFUSALS.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Operation, parts: Mapping[str, Any]) -> dict[str, Any]:
    words = " ".join((one.handler.__doc__ or "").split())
    media = one.answer if one.is_file else "application/json"
    schema = {"type": "string", "format": "binary"} if one.is_file else parts[f"{one.ident} answer"]
    found: dict[str, Any] = {
        "operationId": one.ident,
        "summary": words.partition(". ")[0].rstrip("."),
        "description": words + (f" Needs a role that may: {NEEDS[one.scope]}." if one.scope else ""),
        "security": [{"token": [str(one.scope)] if one.scope else []}],
        "parameters": [*_in_path(one), *_in_query(one)],
        "responses": {
            str(one.status): {"description": "As asked.", "content": {media: {"schema": schema}}},
            **{status: {"$ref": f"#/components/responses/{status}"} for status in _refusals(one)},
        },
    }
    if one.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": parts[f"{one.ident} body"]}},
        }
    return found


def _refusals(one: Operation) -> list[str]:
    without = set() if one.body is not None else {"408", "415"}
    return [status for status in REFUSALS if status not in without]


def _refusal(says: str) -> dict[str, Any]:
    return {
        "description": says,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _in_path(one: Operation) -> list[dict[str, Any]]:
    kinds = {
        "key": {"type": "string", "pattern": f"^{KEY}$"},
        "count": {"type": "integer", "minimum": 0, "maximum": 10**COUNT - 1},
    }
    return [
        {"name": name, "in": "path", "required": True, "description": WHERE[name], "schema": kinds[kind]}
        for name, kind in re.findall(r"\{(\w+):(\w+)\}", one.path)
    ]


def _in_query(one: Operation) -> list[dict[str, Any]]:
    schema = one.query.model_json_schema()
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": body.get("description", ""),
            "schema": {key: value for key, value in body.items() if key not in ("title", "description")},
        }
        for name, body in schema.get("properties", {}).items()
    ]
