"""The checks by the names that policies use. Adding one is a file, a line here, and a policy entry.

A study check is a frozen dataclass whose fields are the policy parameters, with

    judges: ClassVar[frozenset[str]]                                   the aspects that it judges (`aspects`)
    def judge(self, pairs: Sequence[Pair], policy: Policy) -> Verdict  raises Hold("gate_failed") when it cannot

One that needs cards has `judge_by_cards(pairs, policy, folders, look)` beside it; one that may not fit a policy has
`misfits(policy, folders)` and `modalities(policy, folders)`, which the policy loader asks. `LEVELS_HELP = True` says
that what it finds can be gone at a stronger level of a stage: it has its study tried again, any other failure holds at
once. Release checks are in `release_judgement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from gateway.gate.reading import Pair
from gateway.gate.release_judgement import RELEASE_CHECKS
from gateway.gate.residual import ResidualIdentifiers
from gateway.gate.residual_document import ResidualDocument
from gateway.gate.residual_face import ResidualFace
from gateway.gate.residual_text import ResidualText
from gateway.gate.same_scan import SameScan
from gateway.policy import Policy
from gateway.study import Verdict


class StudyCheck(Protocol):
    """What `judge` needs of a check."""

    judges: ClassVar[frozenset[str]]

    def judge(self, pairs: Sequence[Pair], policy: Policy) -> Verdict: ...


CHECKS: dict[str, type] = {
    "residual_identifiers": ResidualIdentifiers,
    "residual_text": ResidualText,
    "residual_document": ResidualDocument,
    "residual_face": ResidualFace,
    "same_scan": SameScan,
}

__all__ = ["CHECKS", "RELEASE_CHECKS", "StudyCheck"]
