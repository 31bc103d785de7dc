"""Route: which rule a study falls under. Reads headers, decides by `routes.yaml`, changes nothing."""

from gateway.route.facts import Facts, gather
from gateway.route.rules import route

__all__ = ["Facts", "gather", "route"]
