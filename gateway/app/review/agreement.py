"""Two people for one decision, where the policy wants it (`review: {two_person: true}`).

Both must be signed in on the page, each under an account of their own: a name that somebody types at a command line
proves nothing. The first one's agreement is in the ledger and changes nothing; it stands for the same wish in the same
round, so whatever changes the study meanwhile takes it back.
"""

from __future__ import annotations

from gateway.app.account import identity
from gateway.app.parts import Parts
from gateway.app.review.wishes import FIRST, ON_PAGE, asked_in
from gateway.database import Intent, JobRow

ON_THE_PAGE = "this policy needs two people who agree on the review page; nobody may release it from a command line"
SAME_PERSON = "you have agreed already; somebody else must agree as well"


def agreed_by(parts: Parts, key: str, kind: str) -> list[Intent]:
    """First agreements to the same wish in the same round."""
    return [one for one in parts.database.intents_of(key) if one.outcome == FIRST and one.kind == kind]


def missing(parts: Parts, intent: Intent, job: JobRow) -> str:
    """Why one of two people is still missing, "" when both agreed. The first agreement goes to the ledger here."""
    if not (intent.actor.endswith(ON_PAGE) and asked_in(intent.kind).round):
        return ON_THE_PAGE
    earlier = agreed_by(parts, intent.key, intent.kind)
    if not earlier:
        parts.ledger.append(
            "agreed",
            f"intent/{intent.serial}",
            actor=intent.actor,
            reason_given=intent.reason,
            wish=intent.kind,
            **identity(job),
        )
        return FIRST
    return "" if any(one.actor != intent.actor for one in earlier) else SAME_PERSON
