"""Who may not be in any release: asked at intake before routing, and again before every leg of a job.

A person who opted out is refused, whoever of their names a study bears: its Patient IDs, other IDs that it tells, and
those that a merge table joins with them. A study of several people is refused when one of them opted out. What cannot
be told holds: a merge table that cannot be read, while somebody has opted out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.app.person.mapping import Mapper
from gateway.database import Database, Subject
from gateway.errors import Refuse
from gateway.policy import PatientIdPolicy, Policy

OPTED_OUT, ERASED = "opted_out", "erased"
WITHDRAWN = frozenset({OPTED_OUT, ERASED})
Named = tuple[str, str]  # keyed names of a Patient ID and of its issuer, "" where none is told


def require_consent(
    database: Database,
    mapper: Mapper,
    policies: Iterable[Policy],
    persons: Iterable[Named],
    *,
    arrived_at: float | None = None,
) -> None:
    """Raise Refuse `opted_out`, or `erased` for what arrived before an erasure was asked for. `persons` are those that
    a study names. Raises Hold `lookup_unusable`.
    """
    subjects = [(entry.subject, OPTED_OUT) for entry in database.opted_out()]
    if arrived_at is not None:
        subjects += [(entry.subject, ERASED) for entry in database.erasures() if entry.requested_at >= arrived_at]
    if not subjects:
        return
    rules = rules_of(policies)
    named = {(name, issuer) for person, issuer in persons for name in mapper.names_of(person, rules)}
    for subject, reason in subjects:
        if any(subject.is_meant_by(*one) for one in named):
            raise Refuse(reason)


def rules_of(policies: Iterable[Policy]) -> Sequence[PatientIdPolicy]:
    """How policies map Patient IDs, each once."""
    return list(dict.fromkeys(policy.header.patient_id for policy in policies))


def subject_of(key: str) -> Subject:
    """The person that an intent's key names."""
    person, _, issuer = key.partition(".")
    return Subject(person, issuer)
