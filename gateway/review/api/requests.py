"""What the API is asked: queries and bodies. Unknown fields are refused; what is refused is never repeated."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from gateway.review.wording import LEAST_REASON, MOST_REASON

MOST_LINES, MOST_STUDIES = 500, 500
LARGEST = 1 << 20

Reason = Annotated[
    str,
    Field(
        min_length=LEAST_REASON,
        max_length=MOST_REASON,
        description="Why: printable, on one line, without names, ids and dates of patients. It goes to the ledger.",
    ),
]


def _whole(value: object) -> object:
    """JSON has one kind of number: 3.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
Round = Annotated[int, Field(ge=0, le=999_999, description="The round of the study that was looked at."), WHOLE]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Digest of a policy.")]


class Asked(BaseModel):
    """Closed: a field that is not known is a mistake of the caller."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Nothing(Asked):
    """A call without a query."""


class QueueQuery(BaseModel):
    """Which held studies. Numbers come as text here, so this one is not strict."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=64, description="Reason code; empty = any.")
    policy: str = Field("", max_length=128, description="Name of a policy; empty = any.")
    limit: int = Field(100, ge=1, le=MOST_STUDIES)
    offset: int = Field(0, ge=0, le=LARGEST)


class DifferenceQuery(Asked):
    """From one policy to another."""

    old: Digest
    new: Digest


class Approve(Asked):
    """Let it go as it is. Where the policy wants two people, the second agreement does."""

    verb: Literal["approve"]
    round: Round
    reason: Reason


class Reject(Asked):
    """Nothing of it ever leaves."""

    verb: Literal["reject"]
    round: Round
    reason: Reason


class Rerun(Asked):
    """Begin again, under the policies of now or under a loaded one by its digest."""

    verb: Literal["rerun"]
    round: Round
    reason: Reason
    policy_digest: Digest | None = None


class Redact(Asked):
    """Cover a box, then run again. Top, left, bottom, right in pixels from 0, half open."""

    verb: Literal["redact"]
    round: Round
    reason: Reason
    object: str = Field(pattern=r"^[0-9]{5}$", description="Name of the object that it was drawn on.")
    box: Annotated[list[Annotated[int, Field(ge=0, le=LARGEST), WHOLE]], Field(min_length=4, max_length=4)]
    whole_series: bool = Field(True, description="On every object of its series that has this size.")


Decision = Annotated[Approve | Reject | Rerun | Redact, Field(discriminator="verb")]


class Close(Asked):
    """Judge a release now."""

    reason: Reason


class Recall(Asked):
    """Ask for a release back. `code`: 113039 may not be kept longer, 113037 is not safe, 113038 wrong person."""

    reason: Reason
    code: Literal["113037", "113038", "113039"] = "113039"


class AuditSearch(Asked):
    """Which lines; all that is named must fit. It comes by POST: a pseudonym belongs into no address."""

    pseudonym: str = Field("", max_length=64, description="As it left; empty = everybody.")
    who: str = Field("", max_length=64, description="A part of the name of who did it.")
    event: str = Field("", max_length=64, description="A part of the event, such as `rejected`.")
    since: date | None = Field(None, description="From this day on (UTC).")
    until: date | None = Field(None, description="To the end of this day (UTC).")
    limit: Annotated[int, Field(ge=1, le=MOST_LINES), WHOLE] = 100
