"""Whether the checks of a policy can work in it: they are asked, since only they know their limits and their cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gateway.policy.document import Document
from gateway.policy.model import Policy, Registry

if TYPE_CHECKING:  # `routes` stands above `loading`, which asks this file
    from gateway.policy.routes import Routes


def checks_of(policy: Policy) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """(path in the file, check) of every check of a policy."""
    for part, checks in (("study", policy.gate.study), ("release", policy.gate.release)):
        for name, check in checks.items():
            yield ("gate", part, name), check


def checks_fit(document: Document, policy: Policy, registry: Registry) -> None:
    """A limit that nothing can pass, a card that is not there: `misfits(policy, cards)` of a check or stage says it."""
    for index, (name, stage) in enumerate(policy.pixels):
        misfits = getattr(stage, "misfits", None)
        for says, hint in misfits(policy, registry.cards) if misfits is not None else ():
            document.fault(("pixels", index, name), says, hint)
    for at, check in checks_of(policy):
        misfits = getattr(check, "misfits", None)
        for says, hint in misfits(policy, registry.cards) if misfits is not None else ():
            document.fault(at, says, hint)
        if hasattr(check, "modalities"):
            _accepted_unjudged(document, policy, at[-1], check, check.modalities(policy, registry.cards))


def _accepted_unjudged(document: Document, policy: Policy, name: str, check: Any, known: frozenset[str]) -> None:
    """What a check cannot judge for want of a card may be accepted, what it can may not."""
    for index, entry in enumerate(policy.gate.not_assessed):
        aspects = sorted(set(entry.aspects) & check.judges)
        modalities = sorted(set(entry.modality) & known)
        if aspects and modalities:
            says = f"the check {name} judges {' and '.join(aspects)} of {', '.join(modalities)}: it cannot be accepted"
            document.fault(("gate", "not_assessed", index), f"{says} unjudged as well", "remove it here, or the check")


def checks_fit_routes(
    document: Document, routes: Routes, policies: Mapping[str, Policy | None], registry: Registry
) -> None:
    """A check that knows no modality of a route would hold whatever comes by it. `document` is routes.yaml."""
    for number, route in enumerate(routes.routes):
        wanted = set(route.when.get("modality", ()))
        for name in dict.fromkeys(target.policy for target in route.targets):
            policy = policies.get(name)
            if policy is None or not wanted:
                continue
            for at, check in checks_of(policy):
                modalities = getattr(check, "modalities", None)
                known = modalities(policy, registry.cards) if modalities is not None else frozenset()
                if known and not known & wanted:
                    says = f"the check {at[-1]} of {name} knows no modality of this rule: all of it would be held"
                    document.fault(("routes", number), says, f"it knows {', '.join(sorted(known))}")
