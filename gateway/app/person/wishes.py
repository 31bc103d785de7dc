"""What the `subject` commands write down: keyed names into the ledger, then into the tables, where it counts at once.

The gateway then carries out what follows (`subjects`). Neither a Patient ID nor an issuer is kept anywhere. What a
restored database lacks is read again out of the ledger, or out of a list that `subject list --json` made.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.app.person.subjects import ERASE, OPT_OUT
from gateway.database import Database, Subject
from gateway.errors import UsageError
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys

OUT, IN, ASKED = "subject_opted_out", "subject_opted_in", "subject_erasure_asked"  # events


@dataclass(frozen=True, slots=True)
class Rights:
    """Of one home."""

    database: Database
    ledger: Ledger
    keys: Keys

    def subject(self, patient_id: str, issuer: str) -> Subject:
        """The person of a Patient ID; every issuer's when none is named."""
        if not patient_id.strip(" \0"):
            raise UsageError("no Patient ID was given; write it on the first line")
        return Subject(self.keys.person(patient_id), self.keys.issuer(issuer))

    def behind(self, pseudonym: str, project: str) -> Subject:
        """The person who got this pseudonym, in one project or in any. Raises UsageError."""
        people = {self.database.person_under(key) for key in self.pseudonym_keys(pseudonym, project)} - {""}
        if not people:
            raise UsageError("nothing has left under that pseudonym; write it as it left, letter by letter")
        if len(people) > 1:
            raise UsageError("two projects gave that pseudonym to two people; name one with --project")
        return Subject(people.pop())

    def pseudonym_keys(self, pseudonym: str, project: str) -> list[str]:
        """The keyed names of a pseudonym, by project."""
        projects = [project] if project else self.database.projects()
        return [self.keys.opaque("issued", one, pseudonym.casefold()) for one in projects]

    def opt_out(self, subject: Subject, *, actor: str, reason: str) -> int:
        """Serial of the wish that stops what is on its way."""
        now = time.time()
        self._tell(OUT, subject, now, actor, reason)
        return self.database.opt_out(subject, at=now, actor=actor, reason=reason, intent=OPT_OUT)

    def opt_in(self, subject: Subject, *, actor: str, reason: str) -> bool:
        """Whether the person had opted out."""
        now = time.time()
        self._tell(IN, subject, now, actor, reason)
        return self.database.opt_in(subject, at=now)

    def ask_erasure(self, subject: Subject, *, actor: str, reason: str) -> int:
        """Serial of the wish that removes everything."""
        now = time.time()
        self._tell(ASKED, subject, now, actor, reason)
        return self.database.ask_erasure(subject, at=now, actor=actor, reason=reason, intent=ERASE)

    def _tell(self, event: str, subject: Subject, now: float, actor: str, reason: str) -> None:
        who = {"subject": subject.person_key, "issuer": subject.issuer_key, "at_time": now}
        decision = f"{event}/{subject.person_key}.{subject.issuer_key}/{int(now * 1e6)}"
        self.ledger.append(event, decision, **who, actor=actor, reason_given=reason)

    # -- after a restore ------------------------------------------------------------------------------------------

    def listed(self) -> dict[str, Any]:
        """Everything that people asked for, as JSON data without an ID: what `restore` takes."""
        return {
            "opted_out": [
                {
                    "subject": one.subject.person_key,
                    "issuer": one.subject.issuer_key,
                    "since": one.since,
                    "ended_at": one.ended_at,
                    "actor": one.actor,
                    "reason": one.reason,
                }
                for one in self.database.opted_out(ended=True)
            ],
            "erased": [
                {
                    "subject": one.subject.person_key,
                    "issuer": one.subject.issuer_key,
                    "requested_at": one.requested_at,
                    "done_at": one.done_at,
                    "removed": dict(one.removed),
                    "actor": one.actor,
                    "reason": one.reason,
                }
                for one in self.database.erasures()
            ],
        }

    def restore(self, listed: Mapping[str, Any]) -> int:
        """Enter what the tables lack of a list; how many entries. Raises UsageError for another kind of file."""
        try:
            events = [(float(one["since"]), OUT, one, float(one["ended_at"] or 0.0)) for one in listed["opted_out"]] + [
                (float(one["requested_at"]), ASKED, one, 0.0) for one in listed["erased"]
            ]
            lines = [
                {
                    "event": event,
                    "at_time": at,
                    **{name: str(one[name]) for name in ("subject", "issuer", "actor", "reason")},
                    "ended_at": ended_at,
                }
                for at, event, one, ended_at in events
            ]
        except (KeyError, TypeError, ValueError):
            raise UsageError("that is no list that `deid-gateway subject list --json` made") from None
        ended = [{**line, "event": IN, "at_time": line["ended_at"]} for line in lines if line["ended_at"]]
        return self._enter_all(sorted([*lines, *ended], key=lambda line: float(line["at_time"])))

    def restore_from_ledger(self) -> int:
        """The same out of the ledger, which may be newer than the tables."""
        lines = [line for line in self.ledger.lines() if line["event"] in (OUT, IN, ASKED)]
        return self._enter_all({**line, "reason": line["reason_given"]} for line in lines)

    def _enter_all(self, lines: Iterable[Mapping[str, Any]]) -> int:
        """Enter what the tables lack; how many they lacked."""
        asked = {(one.subject, one.requested_at) for one in self.database.erasures()}
        last = {one.subject: max(one.since, one.ended_at or 0.0) for one in self.database.opted_out(ended=True)}
        entered = 0
        for line in lines:
            subject, at = Subject(line["subject"], line["issuer"]), float(line["at_time"])
            told = {"actor": line["actor"], "reason": line["reason"]}
            if line["event"] == ASKED:
                if (subject, at) not in asked:
                    asked.add((subject, at))
                    self.database.ask_erasure(subject, at=at, **told, intent=ERASE)
                    entered += 1
            elif line["event"] == OUT:
                if last.get(subject, 0.0) < at:
                    last[subject] = at
                    self.database.opt_out(subject, at=at, **told, intent=OPT_OUT)
                    entered += 1
            else:
                entered += self._end(subject, at, last)
        return entered

    def _end(self, subject: Subject, at: float, last: dict[Subject, float]) -> int:
        """Somebody opted in at that time: what they had asked for before ends."""
        same = [one for one in last if one.person_key == subject.person_key and last[one] < at]
        older = [one for one in same if subject.issuer_key in ("", one.issuer_key)]
        for one in older:
            last[one] = at
        return sum(self.database.opt_in(one, at=at) for one in older)
