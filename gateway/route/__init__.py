"""Route: which rule a study falls under. Reads headers, decides by `routes.yaml`, changes nothing."""

from gateway.route.explain import Explanation, Outcome, Predicate, Trial, explain
from gateway.route.facts import ATTRIBUTES, META, Facts, gather
from gateway.route.rules import route

__all__ = [
    "ATTRIBUTES",
    "META",
    "Explanation",
    "Facts",
    "Outcome",
    "Predicate",
    "Trial",
    "explain",
    "gather",
    "route",
]
