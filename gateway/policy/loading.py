"""One policy file: shapes first, then the rules between its parts, every fault at once. No other file is looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from gateway.errors import PolicyError, UsageError
from gateway.policy.document import Document, close_match, read_document
from gateway.policy.fitting import checks_fit
from gateway.policy.header_section import resolve_header
from gateway.policy.model import (
    PROFILE,
    ForwardPolicy,
    GatePolicy,
    HeaderPolicy,
    NotAssessedEntry,
    Policy,
    Registry,
    Strict,
)
from gateway.policy.names import name_fault
from gateway.policy.parsing import build, parse
from gateway.policy.release_section import EscalatePolicy, ReleasePolicy, RetainPolicy
from gateway.policy.review_section import ReviewPolicy
from gateway.policy.standard import editions, standard_digest
from gateway.policy.vault_section import VaultPolicy

KEYS = ("name", "extends", "header", "pixels", "gate", "escalate", "release", "retain", "forward", "vault", "review")
REQUIRED = {  # and how each may look
    "name": "name: brain-study",
    "extends": "extends: [ps3.15-basic@2026d]",
    "gate": "gate: {study: {residual_identifiers: {max: 0}}}",
}
M = TypeVar("M", bound=BaseModel)


class GateShape(Strict):
    """`gate:` as it is written; parameters of checks are judged by the registry's types."""

    study: Mapping[str, Any] = Field(default_factory=dict)
    release: Mapping[str, Any] = Field(default_factory=dict)
    not_assessed: tuple[NotAssessedEntry, ...] = ()


def load_policy(path: Path, registry: Registry) -> Policy:
    """The policy in one file. Raises PolicyError with all its faults."""
    document = read_document(path)
    policy = resolve(document, registry)
    if policy is None:
        raise PolicyError(document.faults)
    return policy


def read_snapshot(text: str, registry: Registry) -> Policy:
    """Inverse of Policy.to_snapshot. Raises UsageError when this build cannot do exactly what the snapshot says."""
    try:
        body = json.loads(text)
        document = Document("policy snapshot", dict(body["policy"]))
        standard = body["standard"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError("a policy snapshot is damaged; the study it belongs to needs to be released anew") from error
    policy = resolve(document, registry, fits=False)  # that was asked when its file was loaded
    if policy is None:
        raise PolicyError(document.faults)
    if standard_digest(policy.header.edition) != standard:
        raise UsageError(
            f"policy {policy.name} began under other tables of PS3.15 than this version ships; "
            "finish its studies with the version they began with, or send them again"
        )
    return policy


def resolve(document: Document, registry: Registry, *, fits: bool = True) -> Policy | None:
    """A document as a policy, or None when it has any fault (recorded in it). With `fits` its checks are asked too."""
    data = document.data
    if not data and document.faults:
        return None
    for key in data:
        if key not in KEYS:
            hint = close_match(key, KEYS) or f"keys here: {', '.join(KEYS)}"
            document.fault((key,), f"unknown key {key}", hint)
    for key, example in REQUIRED.items():
        if key not in data:
            document.fault((), f"the key {key} is missing", f"for example {example}")
    if "name" in data and name_fault("name", data["name"]):
        document.fault(("name",), name_fault("name", data["name"]))
    edition = _edition(document)
    header = resolve_header(document, edition)
    pixels = _pixels(document, registry)
    _stages_fit(document, header or HeaderPolicy(), [name for name, _ in pixels], registry)
    gate = _gate(document, registry)
    escalate = _section(document, "escalate", EscalatePolicy)
    release = _section(document, "release", ReleasePolicy)
    retain = _section(document, "retain", RetainPolicy)
    forward = _section(document, "forward", ForwardPolicy)
    vault = _section(document, "vault", VaultPolicy)
    review = _section(document, "review", ReviewPolicy)
    if escalate is not None:
        _escalate(document, escalate, registry)
    if release is not None and release.on_fail == "escalate" and "escalate" not in data:
        says = "on_fail: escalate needs a stage that has levels, and this policy has no `escalate:`"
        document.fault(("release", "on_fail"), says, "add `escalate:`, or write on_fail: hold")
    if gate is not None and gate.release and "release" not in data:
        document.fault(
            ("gate", "release"), "release checks need people, and this policy clears study by study", "add `release:`"
        )
    if document.faults or gate is None:
        return None
    policy = Policy(
        name=data["name"],
        header=header or HeaderPolicy(),
        gate=gate,
        pixels=pixels,
        escalate=escalate,
        release=release,
        retain=retain or RetainPolicy(),
        forward=forward or ForwardPolicy(),
        vault=vault,
        review=review,
    )
    if fits:
        checks_fit(document, policy, registry)
    return None if document.faults else policy


def _section(document: Document, key: str, model: type[M]) -> M | None:
    if key not in document.data:
        return None
    parsed, _ = parse(model, document, (key,), document.data[key])
    return parsed


def _edition(document: Document) -> str:
    """The edition that `extends` names; the newest one when it is at fault, so that the rest can be judged."""
    newest = editions()[-1]
    known = [f"{PROFILE}@{edition}" for edition in editions()]
    entries = document.data.get("extends")
    if entries is None and "extends" not in document.data:
        return newest
    if not isinstance(entries, list) or len(entries) != 1 or not isinstance(entries[0], str):
        document.fault(("extends",), "extends needs a list of one profile", f"write [{known[-1]}]")
        return newest
    if entries[0] not in known:
        hint = f"this version has: {', '.join(known)}"
        document.fault(("extends", 0), f"unknown profile or edition {entries[0]}", hint)
        return newest
    return entries[0].partition("@")[2]


def _known(document: Document, at: tuple[str | int, ...], kind: str, name: str, known: Any) -> bool:
    if name in known:
        return True
    there = f"there is: {', '.join(sorted(known))}" if known else f"this version has no {kind}"
    document.fault(at, f"unknown {kind} {name}", close_match(name, known) or there)
    return False


def _pixels(document: Document, registry: Registry) -> tuple[tuple[str, Any], ...]:
    entries = document.data.get("pixels", [])
    if not isinstance(entries, list):
        document.fault(("pixels",), "pixels needs a list of stages", "write - stage: {parameters}")
        return ()
    stages: list[tuple[str, Any]] = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or len(entry) != 1:
            document.fault(("pixels", index), "a stage is one name with its parameters", "write - stage: {parameters}")
            continue
        ((name, data),) = entry.items()
        at = ("pixels", index, name)
        if not _known(document, at, "stage", name, registry.stages):
            continue
        if name in seen:
            document.fault(at, f"the stage {name} is here twice", "remove one of them")
        seen.add(name)
        stages.append((name, build(registry.stages[name], document, at, data)))
    return tuple(stages)


def _stages_fit(document: Document, header: HeaderPolicy, names: Sequence[str], registry: Registry) -> None:
    """What a stage asks of the rest of the policy: its static method `misfit(header, stages after it)` says a fault and
    a hint, or None.
    """
    for index, name in enumerate(names):
        misfit = getattr(registry.stages.get(name), "misfit", None)
        says = misfit(header, tuple(names[index + 1 :])) if misfit is not None else None
        if says is not None:
            document.fault(("pixels", index, name), *says)


def _gate(document: Document, registry: Registry) -> GatePolicy | None:
    if "gate" not in document.data:
        return None
    shape, damaged = parse(GateShape, document, ("gate",), document.data["gate"])
    if shape is None:
        return None
    if not shape.study and "study" not in damaged:
        checks = ", ".join(sorted(registry.study_checks))
        document.fault(("gate",), "gate.study names no check, so nothing would be judged", f"checks: {checks}")
    built: dict[str, dict[str, Any]] = {"study": {}, "release": {}}
    for part, known in (("study", registry.study_checks), ("release", registry.release_checks)):
        for name, data in getattr(shape, part).items():
            at = ("gate", part, name)
            if _known(document, at, f"{part} check", name, known):
                built[part][name] = build(known[name], document, at, data)
    by_name, named = {**registry.release_checks, **registry.study_checks}, (*built["release"], *built["study"])
    everywhere = (name for name in named if not hasattr(by_name[name], "modalities"))  # others: see `fitting`
    judged = {aspect: name for name in everywhere for aspect in getattr(by_name[name], "judges", ())}
    _not_assessed(document, shape.not_assessed, registry, judged)
    return GatePolicy(study=built["study"], release=built["release"], not_assessed=shape.not_assessed)


def _not_assessed(
    document: Document, entries: tuple[NotAssessedEntry, ...], registry: Registry, judged: Mapping[str, str]
) -> None:
    """Faults of `not_assessed`. `judged` maps an aspect to the check of this policy that judges it."""
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(entries):
        at = ("gate", "not_assessed", index)
        for aspect in entry.aspects:
            if _known(document, (*at, "aspects"), "aspect", aspect, registry.aspects) and aspect in judged:
                says = f"the check {judged[aspect]} judges {aspect}: it cannot be accepted unjudged as well"
                document.fault((*at, "aspects"), says, "remove it here, or remove the check")
        pairs = [(aspect, modality) for aspect in entry.aspects for modality in entry.modality]
        for aspect, modality in dict.fromkeys(pairs):
            if (aspect, modality) in seen or pairs.count((aspect, modality)) > 1:
                says = f"{aspect} of {modality} is accepted twice"
                document.fault(at, says, "one entry, so that one reason and one approver answer for it")
        seen.update(pairs)


def _escalate(document: Document, escalate: EscalatePolicy, registry: Registry) -> None:
    entries = document.data.get("pixels", [])
    present = {name for entry in entries if isinstance(entry, dict) for name in entry} if entries else set()
    at = ("escalate", "stage")
    if escalate.stage not in present:
        document.fault(at, f"escalate names {escalate.stage}, which is not under pixels", "add the stage, or remove it")
    elif not getattr(registry.stages.get(escalate.stage), "HAS_LEVELS", False):
        document.fault(at, f"the stage {escalate.stage} has no levels", "remove escalate")
    if escalate.max_attempts > len(escalate.levels):
        document.fault(("escalate", "max_attempts"), "max_attempts is larger than the number of levels")
