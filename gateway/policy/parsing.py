"""From a document's data to a strict model, with every fault in plain words at its line.

What is at fault is cut out and the rest is parsed again, so that one pass shows the faults of all layers.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import typing
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from gateway.policy.document import Document, Faulty, Path_, close_match

M = TypeVar("M", bound=BaseModel)

_SAYS = {
    "int_type": "needs a whole number",
    "int_from_float": "needs a whole number",
    "float_type": "needs a number",
    "bool_type": "needs true or false",
    "string_type": "needs text",
    "dict_type": "needs a mapping (key: value)",
    "model_type": "needs a mapping (key: value)",
    "model_attributes_type": "needs a mapping (key: value)",
    "dataclass_type": "needs a mapping (key: value)",
    "tuple_type": "needs a list",
    "list_type": "needs a list",
    "set_type": "needs a list",
    "frozen_set_type": "needs a list",
    "string_too_short": "must not be empty",
    "too_short": "has too few entries",
    "too_long": "has too many entries",
}
_HINTS = {"string_type": "put it in quotes", "int_type": "without quotes", "bool_type": "without quotes"}
_ABSENT = frozenset({"missing", "too_short"})  # no fault of the file where the value was cut out before


def parse(model: type[M], document: Document, at: Path_, data: Any) -> tuple[M | None, frozenset[str]]:
    """`data` as a `model`, and the names of its fields that had faults (these hold what was left of them).

    None when nothing usable is left, for example when a mandatory key is missing.
    """
    data = copy.deepcopy(data)
    damaged: set[str] = set()
    cuts: list[Path_] = []
    while True:
        try:
            return model.model_validate_json(json.dumps(data), strict=True), frozenset(damaged)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
        before = len(cuts)
        inner = [_clean(fault["loc"]) for fault in faults if fault["type"] not in _ABSENT]
        for fault in reversed(faults):  # reversed: cutting an entry out of a list moves only those behind it
            loc = _clean(fault["loc"])
            around = loc[:-1] if loc and isinstance(loc[-1], int) else loc
            if fault["type"] not in _ABSENT or not any(other[: len(around)] == around for other in (*inner, *cuts)):
                document.fault((*at, *loc), *_words(model, fault, loc))
            damaged.update(str(part) for part in loc[:1])
            cut = loc[:-1] if fault["type"] == "missing" else loc
            if _cut(data, cut):
                cuts.append(cut)
        if len(cuts) == before:
            return None, frozenset(damaged)


def _clean(loc: tuple[int | str, ...]) -> Path_:
    """The path in the document: a fault of a mapping's key is reported as (..., key, "[key]")."""
    return loc[:-1] if loc and loc[-1] == "[key]" else loc


def _cut(data: Any, loc: Path_) -> bool:
    """Remove what is at `loc`. False when there is nothing to remove: an outer cut took it, or the whole is meant."""
    try:
        for part in loc[:-1]:
            data = data[part]
        del data[loc[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _words(model: type[BaseModel], fault: Any, loc: Path_) -> tuple[str, str]:
    kind, name = fault["type"], ".".join(str(part) for part in loc if not isinstance(part, int))
    context = fault.get("ctx", {})
    if kind == "extra_forbidden":
        known = _fields_at(model, loc[:-1])
        return f"unknown key {loc[-1]}", close_match(str(loc[-1]), known) or _list("keys here", known)
    if kind == "missing":
        return f"the key {loc[-1]} is missing", ""
    if kind == "value_error" and isinstance(context.get("error"), ValueError):
        error = context["error"]
        return str(error), error.hint if isinstance(error, Faulty) else ""
    if kind == "literal_error":
        return f"{name} must be {context['expected']}", ""
    says = _SAYS.get(kind) or fault["msg"][:1].lower() + fault["msg"][1:]
    return f"{name} {says}" if name else says, _HINTS.get(kind, "")


def _list(title: str, names: list[str]) -> str:
    return f"{title}: {', '.join(names)}" if names else ""


def _fields_at(model: type[BaseModel], loc: Path_) -> list[str]:
    """The keys that exist at `loc`."""
    here: Any = model
    for part in loc:
        if isinstance(part, str) and part in here.model_fields:
            inner = _models_in(here.model_fields[part].annotation)
            if not inner:
                return []
            here = inner[0]
    return list(here.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in typing.get_args(annotation) for model in _models_in(argument)]


@cache
def parameter_model(kind: type) -> type[BaseModel]:
    """The strict model of a registry's parameter type: a dataclass whose fields are the policy parameters."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: dict[str, Any] = {}
    for entry in dataclasses.fields(kind):
        if not entry.init:
            continue
        annotation = hints[entry.name]
        if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
            annotation = parameter_model(annotation)
        default: Any = ... if entry.default is dataclasses.MISSING else entry.default
        if entry.default_factory is not dataclasses.MISSING:
            default = entry.default_factory()
        fields[entry.name] = (annotation, default)
    return create_model(kind.__name__, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def build(kind: type, document: Document, at: Path_, data: Any) -> Any | None:
    """An instance of a registry's parameter type from its mapping, or None with the faults recorded."""
    if not isinstance(data, dict):
        document.fault(at, f"{at[-1]} needs its parameters as a mapping", f"write {at[-1]}: {{}} for the defaults")
        return None
    before = len(document.faults)
    values, _ = parse(parameter_model(kind), document, at, data)
    if values is None or len(document.faults) > before:
        return None
    try:
        return _construct(kind, values)
    except Faulty as error:
        document.fault(at, str(error), error.hint)
    except ValueError as error:
        document.fault(at, str(error))
    return None


def _construct(kind: type, values: BaseModel) -> Any:
    """The dataclass itself: its own `__post_init__` may raise ValueError for combinations that do not fit."""
    hints = typing.get_type_hints(kind)
    arguments = {}
    for name in type(values).model_fields:
        value = getattr(values, name)
        inner = hints[name]
        nested = isinstance(value, BaseModel) and dataclasses.is_dataclass(inner) and isinstance(inner, type)
        arguments[name] = _construct(inner, value) if nested else value
    return kind(**arguments)
