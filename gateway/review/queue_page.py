"""The queue: what waits for a person, oldest first. Nothing on it identifies anybody; a screenshot may be sent on."""

from __future__ import annotations

from collections import Counter
from typing import Any

from starlette.responses import Response

from gateway.review.visits import Visit

MOST_ROWS = 500


def queue(visit: Visit) -> Response:
    return visit.page("queue.html", **_found(visit))


def rows(visit: Visit) -> Response:
    """The table alone, asked for by the page itself."""
    return visit.page("queue_rows.html", **_found(visit))


def _found(visit: Visit) -> dict[str, Any]:
    everything = visit.office.desk.queue()
    reason, policy = (visit.request.query_params.get(name, "") for name in ("reason", "policy"))
    reasons, policies = Counter(e.reason for e in everything), Counter(e.policy for e in everything if e.policy)
    reason, policy = reason if reason in reasons else "", policy if policy in policies else ""
    chosen = [e for e in everything if reason in ("", e.reason) and policy in ("", e.policy)]
    return {
        "entries": chosen[:MOST_ROWS],
        "count": len(everything),
        "chosen": len(chosen),
        "reasons": sorted(reasons.items()),
        "policies": sorted(policies.items()),
        "reason": reason,
        "policy": policy,
    }
