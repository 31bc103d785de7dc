"""The `review:` part of a policy: who must agree before a held study leaves.

    review: {two_person: true}

Without it one reviewer may let a held study go.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ReviewPolicy(BaseModel):
    """`two_person`: a held study leaves, or begins again under another policy, when two people agreed on the review
    page, each under an account of their own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    two_person: bool = False
