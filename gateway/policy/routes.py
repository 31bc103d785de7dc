"""`routes.yaml`: which study goes where. Closed predicates, first match; a study that no rule matches is held.

    routes:
      - name: brain-mr
        when: {modality: MR, description: ["*brain*", "*head*"]}
        targets: [{project: brain, policy: research-basic, destination: research-archive}]
        priority: urgent          # or routine, which is what a rule without it has; or background

Every predicate of `when` must match; one of its values is enough, on any value of the attribute in any instance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydicom._uid_dict import UID_dictionary

from gateway.errors import PolicyError
from gateway.policy.cohorts import load_cohort
from gateway.policy.destinations import ae_title
from gateway.policy.document import Document, Faulty, Path_, close_match
from gateway.policy.frozen import FrozenMap
from gateway.policy.model import Policy
from gateway.policy.names import name_fault

RULE_KEYS = ("name", "when", "targets")
PRIORITIES = ("urgent", "routine", "background")  # which studies are worked on first
TARGET_KEYS = ("project", "policy", "destination")
_UID = re.compile(r"[0-2](\.(0|[1-9][0-9]*))+")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a routed study goes: `project` selects the pseudonyms, `policy` what is done, `destination` the archive."""

    project: str
    policy: str
    destination: str


@dataclass(frozen=True, slots=True)
class Route:
    """One rule: every predicate of `when` must match on any of its values (`in_cohort`: file names). `priority`: one of
    PRIORITIES.
    """

    name: str
    when: Mapping[str, tuple[str, ...]]
    targets: tuple[Target, ...]
    priority: str = "routine"


@dataclass(frozen=True, slots=True)
class Routes:
    """The rules in order; the first that matches decides."""

    routes: tuple[Route, ...]


@cache
def _sop_classes() -> Mapping[str, str]:
    """UID, keyword and name (without case) of every SOP class that pydicom knows -> UID."""
    known: dict[str, str] = {}
    for uid, (name, kind, _, _, keyword) in UID_dictionary.items():
        if kind == "SOP Class":
            known |= {uid: uid, name.lower(): uid, keyword.lower(): uid}
    return FrozenMap(known)


def _sop_class(value: str) -> str:
    known = _sop_classes().get(value.lower())
    if known is not None:
        return known
    if _UID.fullmatch(value) and len(value) <= 64 and not value.startswith("1.2.840.10008."):
        return value  # a private SOP class; the header stage holds it, a rule may still name it
    keywords = [entry[4] for entry in UID_dictionary.values() if entry[1] == "SOP Class"]
    raise Faulty(f"unknown SOP class {value}", close_match(value, keywords) or "write its UID, keyword or full name")


def _code(value: str) -> str:
    if not re.fullmatch(r"[A-Z0-9_ ]{1,16}", value) or not value.strip():
        raise Faulty(f"{value} must be 1 to 16 capitals, digits, spaces and underscores (PS3.5 6.2 CS)")
    return value.strip()


def _text(value: str) -> str:
    text = value.strip()
    if not text:
        raise Faulty("an empty value matches nothing")
    return text


def _cohort(value: str) -> str:
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", value):
        raise Faulty("in_cohort needs the name of a file below this folder, for example cohorts/brain.csv")
    return value


PREDICATES: Mapping[str, Callable[[str], str]] = FrozenMap(
    {
        "calling_ae": ae_title,
        "called_ae": ae_title,
        "sop_class": _sop_class,
        "modality": _code,
        "body_part": _code,
        "manufacturer": _text,
        "description": _text,
        "image_type": _code,
        "in_cohort": _cohort,
    }
)


def resolve_routes(
    document: Document, folder: Path, policies: Mapping[str, Policy | None], destinations: Mapping[str, Any]
) -> Routes:
    """The rules that have no fault. `policies` holds None for one with faults of its own, which are not repeated."""
    for key in document.data:
        if key != "routes":
            document.fault((key,), f"unknown key {key}", close_match(key, ["routes"]) or "the only key is routes")
    entries = document.data.get("routes")
    if not isinstance(entries, list) or not entries:
        if not document.faults or "routes" in document.data:
            document.fault(("routes",), "routes needs a list of rules", "without a rule every study is held")
        return Routes(())
    routes: list[Route] = []
    for index, entry in enumerate(entries):
        at: Path_ = ("routes", index)
        if not _keys(document, at, entry, RULE_KEYS, "rule", ("priority",)):
            continue
        says = name_fault("the name of a rule", entry["name"])
        if says:
            document.fault((*at, "name"), says)
        when = _when(document, (*at, "when"), entry["when"], folder)
        targets = _targets(document, (*at, "targets"), entry["targets"], policies, destinations)
        priority = entry.get("priority", "routine")
        if priority not in PRIORITIES:
            document.fault((*at, "priority"), "unknown priority", f"write one of: {', '.join(PRIORITIES)}")
        route = Route(str(entry["name"]), when, targets, str(priority))
        _against_earlier(document, at, route, routes)
        routes.append(route)
    return Routes(tuple(routes))


def _keys(
    document: Document, at: Path_, entry: Any, keys: tuple[str, ...], kind: str, may: tuple[str, ...] = ()
) -> bool:
    """Whether `entry` is a mapping that has all of `keys`, and of others those of `may`; records what is wrong."""
    if not isinstance(entry, dict):
        document.fault(at, f"a {kind} is a mapping with {', '.join(keys)}")
        return False
    for key in entry:
        if key not in (*keys, *may):
            hint = close_match(key, (*keys, *may)) or f"keys here: {', '.join((*keys, *may))}"
            document.fault((*at, key), f"unknown key {key}", hint)
    absent = [key for key in keys if key not in entry]
    for key in absent:
        document.fault(at, f"the key {key} is missing")
    return not absent


def _when(document: Document, at: Path_, entry: Any, folder: Path) -> FrozenMap[str, tuple[str, ...]]:
    if not isinstance(entry, dict) or not entry:
        hint = "to take whatever a peer sends, name it: calling_ae: PACS"
        document.fault(at, "when needs at least one predicate", hint)
        return FrozenMap()
    when: dict[str, tuple[str, ...]] = {}
    for name, given in entry.items():
        here: Path_ = (*at, name)
        if name not in PREDICATES:
            hint = close_match(name, PREDICATES) or f"predicates: {', '.join(PREDICATES)}"
            document.fault(here, f"unknown predicate {name}", hint)
            continue
        values = given if isinstance(given, list) else [given]
        if not values:
            document.fault(here, f"{name} has no value", "an empty list matches nothing")
        found: list[str] = []
        for index, value in enumerate(values):
            place = (*here, index) if isinstance(given, list) else here
            if not isinstance(value, str):
                document.fault(place, f"a value of {name} must be text", "put it in quotes")
                continue
            try:
                found.append(PREDICATES[name](value))
            except Faulty as error:
                document.fault(place, f"{name}: {error}", error.hint)
                continue
            if found[-1] in found[:-1]:
                document.fault(place, f"{name} has a value twice", "remove one of them")
            if name == "in_cohort":
                _check_cohort(document, place, folder / found[-1])
        when[name] = tuple(found)
    return FrozenMap(when)


def _check_cohort(document: Document, at: Path_, path: Path) -> None:
    if not path.is_file():
        document.fault(at, "the cohort file does not exist", f"expected at {path}")
        return
    try:
        load_cohort(path)
    except PolicyError as error:
        document.faults.extend(error.faults)


def _targets(
    document: Document, at: Path_, entry: Any, policies: Mapping[str, Policy | None], destinations: Mapping[str, Any]
) -> tuple[Target, ...]:
    if not isinstance(entry, list) or not entry:
        document.fault(at, "targets needs a list of {project, policy, destination}")
        return ()
    targets: list[Target] = []
    for index, fields in enumerate(entry):
        here: Path_ = (*at, index)
        if not _keys(document, here, fields, TARGET_KEYS, "target"):
            continue
        if not all(isinstance(fields[key], str) for key in TARGET_KEYS):
            document.fault(here, "project, policy and destination are text", "put them in quotes")
            continue
        target = Target(*(fields[key] for key in TARGET_KEYS))
        if name_fault("project", target.project):
            document.fault((*here, "project"), name_fault("project", target.project))
        for kind, name, known in (
            ("policy", target.policy, policies),
            ("destination", target.destination, destinations),
        ):
            if name not in known:
                hint = close_match(name, known) or f"there is: {', '.join(sorted(known))}"
                document.fault((*here, kind), f"unknown {kind} {name}", hint if known else "")
        if target in targets:
            document.fault(here, "the same target twice", "remove one of them")
        policy = policies.get(target.policy)
        if policy is not None and policy.forward.to not in ("", target.destination):
            says = f"the policy {policy.name} lets studies go to {policy.forward.to} only (forward.to)"
            document.fault((*here, "destination"), says, "change the target, or the policy")
        targets.append(target)
    return tuple(targets)


def _against_earlier(document: Document, at: Path_, route: Route, earlier: list[Route]) -> None:
    """A name twice, or a rule that an earlier one always forestalls: it demands less, of the same attributes."""
    for other in earlier:
        if other.name == route.name:
            document.fault((*at, "name"), f"the rule name {route.name} is here twice", "rename one of them")
        covers = all(set(route.when.get(name, ())) <= set(values) for name, values in other.when.items())
        if other.when and covers and all(name in route.when for name in other.when):
            says = f"this rule never applies: {other.name} matches first whatever it would match"
            document.fault((*at, "when"), says, "move it up, or remove it")
            return
