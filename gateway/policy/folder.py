"""A policies folder as a whole: destinations, policies, routes, and what they say about each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import Fault, PolicyError
from gateway.policy.destinations import Destination, resolve_destinations
from gateway.policy.document import Document, close_match, read_document
from gateway.policy.fitting import checks_fit_routes
from gateway.policy.frozen import FrozenMap
from gateway.policy.loading import resolve
from gateway.policy.model import Policy, Registry
from gateway.policy.routes import Routes, resolve_routes
from gateway.policy.sources import Source, resolve_sources

ROUTES = "routes.yaml"
DESTINATIONS = "destinations.yaml"


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Everything that a policies folder says, checked as a whole."""

    policies: Mapping[str, Policy]
    routes: Routes
    destinations: Mapping[str, Destination]
    sources: Mapping[str, Source]


def load_policies(folder: Path, registry: Registry) -> PolicySet:
    """Everything in a policies folder. Raises PolicyError with every fault of every file."""
    if not folder.is_dir():
        raise PolicyError([Fault(str(folder), 0, "the policies folder does not exist", "set DEID_POLICIES")])
    hint = "rename it to .yaml, or move it away"
    faults = [Fault(str(path), 0, "would not be read", hint) for path in sorted(folder.glob("*.yml"))]
    routes_file, destinations_file = (read_document(folder / name) for name in (ROUTES, DESTINATIONS))
    destinations = resolve_destinations(destinations_file, folder) if _usable(destinations_file) else {}
    sources = resolve_sources(destinations_file, folder)
    policies = _policies(folder, registry, destinations, faults)
    routes = resolve_routes(routes_file, folder, policies, destinations) if _usable(routes_file) else Routes(())
    checks_fit_routes(routes_file, routes, policies, registry)
    faults += routes_file.faults + destinations_file.faults
    if faults:
        raise PolicyError(faults)
    sound = {name: policy for name, policy in policies.items() if policy is not None}
    return PolicySet(FrozenMap(sound), routes, FrozenMap(destinations), FrozenMap(sources))


def _usable(document: Document) -> bool:
    """False when the file could not be read at all: what it should have held is not called missing then."""
    return bool(document.data) or not document.faults


def _policies(
    folder: Path, registry: Registry, destinations: Mapping[str, Destination], faults: list[Fault]
) -> dict[str, Policy | None]:
    """Policies by name; None for one that has faults of its own, so that routes to it are not called unknown."""
    policies: dict[str, Policy | None] = {}
    for path in sorted(folder.glob("*.yaml")):
        if path.name in (ROUTES, DESTINATIONS):
            continue
        document = read_document(path)
        policy = resolve(document, registry)
        name = document.data.get("name")
        if isinstance(name, str):
            if name in policies:
                document.fault(("name",), f"another file has a policy named {name} too", "rename one of them")
            policies[name] = policy
        if policy is not None:
            _check_forward(document, policy, destinations)
        faults += document.faults
    return policies


def _check_forward(document: Document, policy: Policy, destinations: Mapping[str, Destination]) -> None:
    to = policy.forward.to
    if to and to not in destinations:
        hint = close_match(to, destinations) or f"there is: {', '.join(sorted(destinations))}"
        document.fault(("forward", "to"), f"unknown destination {to}", hint)
    elif to and policy.forward.verify == "storage-commitment" and not destinations[to].url.startswith("dicom"):
        document.fault(
            ("forward", "verify"), f"{to} cannot be asked for storage-commitment", "only a DICOM archive can be asked"
        )
