"""Closing a release that has its people: by a person (`release close`), at once (`close: full`), or at night.

Closing changes a row; the leg RELEASE does the rest (`releases`).
"""

from __future__ import annotations

from gateway.app.course import release_leg
from gateway.app.notes import NAMES_SOMEBODY, names_somebody
from gateway.app.parts import Parts
from gateway.app.release.releases import identity_of, least_people
from gateway.database import Intent, ReleaseRow
from gateway.database.releases import AUDITING, OPEN
from gateway.errors import Hold
from gateway.flow import Next
from gateway.observe import log

CLOSE = "close"  # the kind of an intent whose key is the name of a release
DONE = "done"
DAY_S = 86400.0


class Closing:
    """Closes releases, over our tables."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def carry_out(self, intent: Intent) -> tuple[Next, ...]:
        """What a person wished: close a release by name. What is not possible is told in the intent's outcome."""
        database = self._parts.database
        release = database.release_named(intent.key)
        refusal = "no such release" if release is None else self._refusal(release)
        if release is None or refusal:
            database.finish_intent(intent.serial, refusal)
            return ()
        members = [row.job_key for row in database.members(release.serial)]
        if names_somebody(self._parts, (job.study_key for job in database.jobs_of_members(members)), intent.reason):
            database.withhold_intent(intent.serial, NAMES_SOMEBODY)
            return ()
        self._close(release, f"intent/{intent.serial}", actor=intent.actor, reason_given=intent.reason)
        database.finish_intent(intent.serial, DONE)
        return (release_leg(release),)

    def _refusal(self, release: ReleaseRow) -> str:
        if release.state == AUDITING:  # a crash came between closing it and finishing the intent
            return ""
        if release.state != OPEN:
            return f"not open: it is {release.state}"
        try:
            least = least_people(self._parts.policies.of(release.policy_digest))
        except Hold:  # its policy is gone: it can be closed, which ends it, and its studies begin again
            return ""
        people = self._parts.database.waiting_people(release.serial)
        return f"it has {people} people of at least {least}; collect more, then close it" if people < least else ""

    def close_due(self, now: float) -> list[Next]:
        """Open releases that have their people and close by themselves: those whose policy says `full`, and after each
        midnight (UTC) once those that close nightly.
        """
        closed = []
        for release in self._parts.database.releases_in(OPEN):
            try:
                policy = self._parts.policies.of(release.policy_digest)
            except Hold:
                continue
            how = policy.release.close if policy.release is not None else ""
            tonight = how == "nightly" and now // DAY_S > release.checked_at // DAY_S
            if tonight:
                self._parts.database.set_release(release.serial, checked_at=now)
            if (tonight or how == "full") and not self._refusal(release):
                self._close(release, f"{how}/{release.name}/{int(now // DAY_S)}")
                closed.append(release_leg(release))
        return closed

    def _close(self, release: ReleaseRow, decision: str, **facts: object) -> None:
        people = self._parts.database.waiting_people(release.serial)
        self._parts.ledger.append("release_closed", decision, **identity_of(release), subjects=people, **facts)
        self._parts.database.close_release(release.serial)
        log("release_closed", policy=release.policy, count=people)
