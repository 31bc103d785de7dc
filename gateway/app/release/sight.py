"""Whether the gate can see: asked before anything is served, and again when policies are loaded anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gateway.app.release.references import MODELS
from gateway.app.workers import Workers
from gateway.errors import EnvironmentFault
from gateway.gate import all_cards, blind_cards, blind_to_figures, folders_of
from gateway.observe import log
from gateway.policy import Policy


def require_sight(policies: Iterable[Policy], workers: Workers, home: Path) -> None:
    """Plant known leaks in front of what these policies rely on. Raises EnvironmentFault for what is not seen.

    Policies that measure no identity need no sight. Runs in a worker: encoders are not loaded into this process.
    """
    measuring = [policy for policy in policies if policy.gate.release or all_cards(policy)]
    if not measuring:
        return
    names = sorted({name for policy in measuring for name in all_cards(policy)})
    of_studies = sorted({getattr(policy.gate.study.get("same_scan"), "card", "") for policy in measuring} - {""})
    unseen = workers.run(blindness, names, of_studies, home / MODELS)
    if unseen:
        raise EnvironmentFault(
            f"the gate cannot see a known leak, so nothing is served: {'; '.join(unseen)}. "
            "Mend or replace the card, or take its check out of the policy"
        )
    log("gate_sees", count=len(names))


def blindness(names: Sequence[str], of_studies: Sequence[str], models: Path) -> tuple[str, ...]:
    """What is not seen, in a worker."""
    figures = blind_to_figures()
    return (*((figures,) if figures else ()), *blind_cards(names, of_studies, folders_of(models)))
