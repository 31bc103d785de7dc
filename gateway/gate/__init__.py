"""The gate: judges the encoded bytes about to leave, with code that shares nothing with the scrubbers it judges.

It imports the nouns, the policy and observe; it reads with its own scan and with pydicom (DESIGN.md section 2,
*Independence*). Here and in a recorded review, and nowhere else, a `Clearance` is made.
"""

from gateway.gate.aspects import ASPECTS
from gateway.gate.checks import CHECKS, RELEASE_CHECKS
from gateway.gate.judgement import Judgement, clear_by_review, judge
from gateway.gate.notes import mentions
from gateway.gate.reading import Pair
from gateway.gate.residual import ResidualIdentifiers

__all__ = [
    "ASPECTS",
    "CHECKS",
    "RELEASE_CHECKS",
    "Judgement",
    "Pair",
    "ResidualIdentifiers",
    "clear_by_review",
    "judge",
    "mentions",
]
