"""The review page's view of a gateway: reads tables, spool and candidates; writes views and wishes, decides nothing.

Beside a running engine or without one. What must be decoded or parsed goes through a worker process of its own, so
that no broken object takes the gateway with it, and no long scrub makes a reviewer wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar

from gateway.app.parts import Parts
from gateway.app.recall.recalls import RECALL, RELEASE
from gateway.app.release.closing import CLOSE
from gateway.app.review import history as review_history
from gateway.app.review.cases import CaseFiles, Subject
from gateway.app.review.drawn import Drawing, place_of, store
from gateway.app.review.frames import render
from gateway.app.review.header import header_lines, original_lines
from gateway.app.review.preview import Previews
from gateway.app.review.records import Records
from gateway.app.review.wishes import ID_CHARACTERS, Asked, page_actor
from gateway.app.waiting import everything_held
from gateway.app.workers import Workers
from gateway.database import Intent
from gateway.errors import Hold, UsageError
from gateway.forward.rejection_note import TITLES
from gateway.review.desk import Case, Entry, HeaderLine, Kind, Person, Picture, Previewed, VaultRecord, Verb, Wish
from gateway.review.records import (
    Changed,
    Chart,
    Event,
    PolicyText,
    PolicyVersion,
    Received,
    ReleaseDetail,
    ReleaseView,
    Sought,
)
from gateway.study import State

AGAIN_S = 600.0  # the same object for the same person within this is the same view
R = TypeVar("R")


class ReviewDesk:
    """Implements review.Desk over a wired gateway."""

    def __init__(self, parts: Parts, workers: Workers | None = None) -> None:
        self._parts = parts
        self._workers = workers or Workers(1, memory_bytes=parts.settings.worker_memory_bytes)
        self._files = CaseFiles(parts, self._run)
        self._records = Records(parts)
        self._previews = Previews(parts, self._workers)

    def close(self) -> None:
        self._workers.close()

    # -- what waits ---------------------------------------------------------------------------------------------------

    def queue(self) -> list[Entry]:
        agreed = self._files.agreed()
        held = everything_held(self._parts.home, self._parts.settings)
        return [self._files.entry(one, agreed) for one in held if one.state == State.HELD]

    def case(self, key: str) -> Case | None:
        return self._files.case(key)

    def knows(self, name: str) -> bool:
        return self._files.subject(name) is not None or self._parts.database.release_named(name) is not None

    def history(self, key: str) -> list[Event]:
        subject = self._files.subject(key)
        return review_history.of_study(self._parts.home.ledger, key, subject.study_key if subject else "")

    # -- originals ----------------------------------------------------------------------------------------------------

    def picture(self, person: Person, key: str, name: str, frame: int, kind: Kind) -> Picture:
        """Both sides of a held study may show a person, so both are views."""
        subject = self._files.open_subject(key)
        pair = subject.pair(name)
        path = pair.original if kind is Kind.BEFORE else pair.candidate
        if not path.is_file():
            raise UsageError("there is no such picture: nothing was made of this object yet, or it is gone")
        self._viewed(person, subject, name, str(kind))
        drawn = self._run(partial(render, path, frame), Hold("pixels_unreadable", at=name))
        return Picture(drawn.png, drawn.low, drawn.step, drawn.inverted)

    def header(self, person: Person, key: str, name: str) -> list[HeaderLine]:
        subject = self._files.open_subject(key)
        pair = subject.pair(name)
        if not pair.original.is_file():
            raise UsageError("the original is gone")
        self._viewed(person, subject, name, "header")
        call: Callable[[], list[HeaderLine]] = partial(original_lines, pair.original)
        if pair.candidate.is_file() and subject.policy_digest:
            snapshot = self._parts.policies.snapshot(subject.policy_digest)
            call = partial(header_lines, pair.original, pair.candidate, snapshot)
        return self._run(call, Hold("unreadable_object", at=name))

    def _viewed(self, person: Person, subject: Subject, name: str, shown: str) -> None:
        """In the ledger before a byte is read. Raises EnvironmentFault where it cannot be: then nothing is shown."""
        window = int(time.time() // AGAIN_S)
        self._parts.ledger.append(
            "viewed",
            f"viewed/{person.session}/{subject.key}/r{subject.round}/{name}/{shown}/{window}",
            key=subject.key,
            study=subject.study_key,
            instance=name,
            shown=shown,
            actor=page_actor(person.name),
            role=person.role,
        )

    # -- decisions ----------------------------------------------------------------------------------------------------

    def wish(self, person: Person, key: str, wish: Wish) -> int:
        subject = self._files.open_subject(key)
        if wish.round != subject.round:
            raise UsageError("the study has changed since you opened it; open it again")
        about = ""
        if wish.verb is Verb.RERUN and wish.policy_digest:
            about = self._digest_of(wish.policy_digest)
        elif wish.verb is Verb.REDACT:
            about = self._store(subject, wish)
        asked = Asked(str(wish.verb), about, wish.round)
        return self._parts.database.add_intent(
            kind=asked.kind, key=key, actor=page_actor(person.name), reason=wish.reason
        )

    def outcome(self, key: str, serial: int) -> str | None:
        found = self._parts.database.intent(serial)
        if found is None or found.key != key:
            return None
        return _outcome(found)

    def _digest_of(self, digest: str) -> str:
        loaded = {policy.digest for policy in self._parts.policies.current.policies.values()}
        if digest not in loaded:
            raise UsageError("that policy is not loaded; open the study again")
        return digest[:ID_CHARACTERS]

    def _store(self, subject: Subject, wish: Wish) -> str:
        """The box, in writing before the wish that names it."""
        if wish.box is None or not subject.policy_digest:
            raise UsageError("nothing of it has been cleaned yet, so nothing can be redacted")
        pair = subject.pair(wish.name)
        place = self._run(partial(place_of, pair.original, self._parts.keys.master), Hold("unreadable_object"))
        _, _, bottom, right = wish.box
        if not place.rows or bottom > place.rows or right > place.columns:
            raise UsageError("the box does not lie on a picture of this object")
        drawing = Drawing(place, wish.box, wish.whole_series)
        return store(self._parts.home, subject.study_key, drawing)

    # -- records ------------------------------------------------------------------------------------------------------

    def policies(self) -> list[PolicyText]:
        return self._records.policies()

    def versions(self) -> list[PolicyVersion]:
        return self._records.versions()

    def difference(self, old: str, new: str) -> list[Changed]:
        return self._records.difference(old, new)

    def releases(self) -> list[ReleaseView]:
        return self._records.releases()

    def worst_over_time(self) -> list[Chart]:
        return self._records.worst_over_time()

    def release(self, name: str) -> ReleaseDetail | None:
        return self._records.release(name)

    def report(self, name: str, kind: str) -> bytes | None:
        return self._records.report(name, kind)

    def received(self) -> list[Received]:
        return self._previews.received()

    def preview(self, person: Person, key: str, digest: str) -> list[Previewed]:
        return self._previews.of(person, key, digest)

    def audit(self, sought: Sought, limit: int) -> list[Event]:
        return self._records.audit(sought, limit)

    def open_vault(self, person: Person, pseudonym: str, reason: str) -> list[VaultRecord]:
        return self._records.open_vault(person, pseudonym, reason)

    def close_release(self, person: Person, name: str, reason: str) -> int:
        return self._of_release(person, name, CLOSE, reason)

    def recall_release(self, person: Person, name: str, code: str, reason: str) -> int:
        if code not in TITLES:
            raise UsageError(f"no such title of a rejection note; one of {', '.join(TITLES)}")
        return self._of_release(person, name, f"{RECALL}:{RELEASE}:{code}", reason)

    def _of_release(self, person: Person, name: str, kind: str, reason: str) -> int:
        if self._parts.database.release_named(name) is None:
            raise UsageError("no release has this name")
        return self._parts.database.add_intent(kind=kind, key=name, actor=page_actor(person.name), reason=reason)

    def note(self, event: str, person: Person, **told: str) -> None:
        self._parts.ledger.append(
            event, f"{event}/{person.session}/{time.time_ns()}", actor=page_actor(person.name), role=person.role, **told
        )

    def _run(self, call: Callable[[], R], broken: Hold) -> R:
        """In the worker. One that dies of it raises `broken`."""
        try:
            return self._workers.run(call)
        except (BrokenProcessPool, MemoryError):
            raise broken from None


def _outcome(intent: Intent) -> str:
    if intent.done_at is None:
        return ""
    return intent.outcome or "done"
