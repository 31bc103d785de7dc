"""The durable study workflow: which leg follows which, retries, and the one place that catches everything.

`Engine` runs the legs on DBOS; `legs` says what a leg is and turns every exception into a held study, a retry or a
refusal. The steps themselves are given by `app`; nothing here knows how a header is scrubbed.
"""

from gateway.flow.engine import Engine
from gateway.flow.legs import Leg, Next, Steps, run_leg

__all__ = ["Engine", "Leg", "Next", "Steps", "run_leg"]
