"""The parts of a policy about what follows a judgement: `escalate:`, `release:` and `retain:`.

    escalate: {stage: resynthesize, levels: [0.95, 0.70, 0.40, 0.20], max_attempts: 4}
    release: {min_subjects: 150, close: nightly, on_fail: escalate}
    retain: {originals_days: 30, held_days: 90, references_days: 365}

Without `escalate` a study is made once; without `release` it leaves by itself.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gateway.policy.document import Faulty


def _one_way(levels: tuple[float, ...]) -> tuple[float, ...]:
    steps = list(pairwise(levels))
    if not (all(a < b for a, b in steps) or all(a > b for a, b in steps)):
        says = "levels go one way, from the weakest to the strongest, and none is there twice"
        raise Faulty(says, "write them in the order in which they are to be tried")
    return levels


class Section(BaseModel):
    """No unknown key, no coercion, no change after loading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class EscalatePolicy(Section):
    """Try a stage again at a stronger level when its study does not pass. `levels` are the stage's own, the weakest
    first; a study is made at `max_attempts` of them at most, and a release judged as often.
    """

    stage: str
    levels: Annotated[tuple[float, ...], Field(min_length=1), AfterValidator(_one_way)]
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 1


class ReleasePolicy(Section):
    """Cleared studies wait until a release of at least `min_subjects` people closes: as soon as it has them (`full`),
    at night, or when somebody closes it. One that fails is held, or (`escalate`) its studies of the weakest level are
    made at the next one, and it is judged again.
    """

    min_subjects: Annotated[int, Field(ge=1)]
    close: Literal["nightly", "full", "manual"] = "manual"
    on_fail: Literal["hold", "escalate"] = "hold"


Days = Annotated[int, Field(ge=1, le=3660)]


class RetainPolicy(Section):
    """How long identifying data stays here, in days."""

    originals_days: Days = 30
    held_days: Days = 90
    references_days: Days = 365
