"""What is written down: policies in plain words and their versions, who is behind a pseudonym, who did what."""

from __future__ import annotations

from starlette.responses import Response

from gateway.errors import UsageError
from gateway.review.records import Sought
from gateway.review.visits import Visit
from gateway.review.wording import day_of, midnight, reason_of

MOST_LINES = 500


def policies(visit: Visit) -> Response:
    desk = visit.office.desk
    return visit.page("policies.html", policies=desk.policies(), versions=desk.versions())


def difference(visit: Visit) -> Response:
    """What differs between two policies that studies began under."""
    old, new = (visit.request.query_params.get(name, "")[:64] for name in ("old", "new"))
    changes = visit.office.desk.difference(old, new)
    return visit.page("difference.html", old=old, new=new, changes=changes)


def vault(visit: Visit) -> Response:
    """Who is behind a pseudonym. Pseudonym and reason come by POST, so no address holds them."""
    if visit.request.method == "GET":
        return visit.page("vault.html", records=None, pseudonym="")
    pseudonym = visit.form.get("pseudonym", "").strip()[:64]
    if not pseudonym:
        raise UsageError("name the pseudonym, or the Study Instance UID, as it left")
    records = visit.office.desk.open_vault(visit.person, pseudonym, reason_of(visit.form.get("reason", "")))
    return visit.page("vault.html", records=records, pseudonym=pseudonym)


def audit(visit: Visit) -> Response:
    """The ledger's lines that name a person; looking into it is a line of its own. What is searched for comes by POST:
    somebody may type a Patient ID, and an address stays in the browser's history.
    """
    asked = {name: visit.form.get(name, "").strip()[:64] for name in ("pseudonym", "who", "event", "since", "until")}
    since, until = day_of(asked["since"], "the first day"), day_of(asked["until"], "the last day")
    sought = Sought(
        pseudonym=asked["pseudonym"],
        who=asked["who"],
        event=asked["event"],
        since=None if since is None else midnight(since),
        before=None if until is None else midnight(until, after=True),
    )
    visit.office.desk.note("audit_read", visit.person)
    events = visit.office.desk.audit(sought, MOST_LINES)
    return visit.page("audit.html", events=events, asked=asked, most=MOST_LINES)
