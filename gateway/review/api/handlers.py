"""What each call of the API does. A docstring here is what the OpenAPI document says of a call."""

from __future__ import annotations

from starlette.responses import Response

from gateway.review.api import answers, requests, wording
from gateway.review.api.calls import Call
from gateway.review.desk import Case, HeaderLine, Kind, Verb, Wish
from gateway.review.problems import Problem
from gateway.review.records import Sought
from gateway.review.release_pages import KINDS
from gateway.review.roles import May
from gateway.review.study_page import box_of, picture_headers
from gateway.review.wording import midnight, reason_of

VERBS = {"approve": Verb.RELEASE, "reject": Verb.REJECT, "rerun": Verb.RERUN, "redact": Verb.REDACT}


def queue(call: Call) -> answers.Queue:
    """Studies that wait for a person, oldest first."""
    asked = call.query
    found = [one for one in call.desk.queue() if asked.reason in ("", one.reason) and asked.policy in ("", one.policy)]
    chosen = found[asked.offset : asked.offset + asked.limit]
    return answers.Queue(len(found), list(map(wording.held_study, chosen)))


def study(call: Call) -> answers.Study:
    """One study: why it is held, what may be decided about it, its objects."""
    return wording.study(_case(call), looks=call.may(May.LOOK))


def findings(call: Call) -> answers.Findings:
    """What the gate said of a study, and the elements and boxes that its findings point at."""
    return wording.findings(_case(call))


def history(call: Call) -> list[answers.LedgerLine]:
    """What the ledger has of a study, in order."""
    _case(call)
    return wording.ledger_lines(call.desk.history(call.path["key"]))


def header(call: Call) -> list[HeaderLine]:
    """Every element of one object before and after. It shows an original: the ledger has it first."""
    return call.desk.header(call.person, call.path["key"], call.path["name"])


def frame(call: Call) -> Response:
    """One frame as a PNG, `before` or `after`. It shows an original: the ledger has it first."""
    kind = call.path["kind"]
    if kind not in set(Kind):
        raise Problem(404, "a frame is shown before or after")
    picture = call.desk.picture(call.person, call.path["key"], call.path["name"], call.path["frame"], Kind(kind))
    return Response(picture.png, media_type="image/png", headers=picture_headers(picture))


def decide(call: Call) -> answers.Accepted:
    """Approve, reject, run again or redact. The gateway carries it out; where two people must agree, it waits for the
    other one. The account of the token decides, and a token of the same account is no second person.
    """
    asked, key = call.body, call.path["key"]
    digest = getattr(asked, "policy_digest", None) or ""
    if digest:
        call.require(May.REPOLICY)
    is_box = isinstance(asked, requests.Redact)
    wish = Wish(
        verb=VERBS[asked.verb],
        round=asked.round,
        reason=reason_of(asked.reason),
        policy_digest=digest,
        name=asked.object if is_box else "",
        box=box_of(asked.box) if is_box else None,
        whole_series=asked.whole_series if is_box else True,
    )
    _case(call)
    serial = call.desk.wish(call.person, key, wish)
    return answers.Accepted(serial, f"/api/v1/studies/{key}/decisions/{serial}")


def outcome(call: Call) -> answers.Outcome:
    """What came of a decision about a study."""
    return _outcome(call, call.path["key"])


def releases(call: Call) -> list[answers.Release]:
    """Every release, newest first."""
    return list(map(wording.release, call.desk.releases()))


def release(call: Call) -> answers.ReleaseWithContent:
    """One release with its leak scores, what was done to it and what nobody judged."""
    found = call.desk.release(call.path["name"])
    if found is None:
        raise Problem(404, "no release has this name")
    return wording.with_content(found)


def report_html(call: Call) -> Response:
    """The report of a release for a data-protection file, as a page. It names nobody."""
    return _report(call, "html")


def report_pdf(call: Call) -> Response:
    """The same report as PDF."""
    return _report(call, "pdf")


def close(call: Call) -> answers.Accepted:
    """Judge a release now; it is cleared as a whole, or blocked."""
    _known(call)
    name = call.path["name"]
    serial = call.desk.close_release(call.person, name, reason_of(call.body.reason))
    return answers.Accepted(serial, f"/api/v1/releases/{name}/decisions/{serial}")


def recall(call: Call) -> answers.Accepted:
    """Ask every receiver to give up what it got of a release. What was about to be sent of it is held."""
    _known(call)
    name = call.path["name"]
    serial = call.desk.recall_release(call.person, name, call.body.code, reason_of(call.body.reason))
    return answers.Accepted(serial, f"/api/v1/releases/{name}/decisions/{serial}")


def release_outcome(call: Call) -> answers.Outcome:
    """What came of closing or recalling a release."""
    return _outcome(call, call.path["name"])


def policies(call: Call) -> list[answers.PolicyText]:
    """The policies in force, in plain words."""
    return call.desk.policies()


def versions(call: Call) -> list[answers.Version]:
    """Every policy that a study ever began under, newest first."""
    return list(map(wording.version, call.desk.versions()))


def difference(call: Call) -> list[answers.Changed]:
    """What differs between two policies, by digest."""
    return call.desk.difference(call.query.old, call.query.new)


def audit(call: Call) -> list[answers.LedgerLine]:
    """Lines of the ledger that name a person, newest first. Reading them is a line of its own."""
    asked = call.body
    call.desk.note("audit_read", call.person, token=call.token.name)
    return wording.ledger_lines(
        call.desk.audit(
            Sought(
                asked.pseudonym.strip(),
                asked.who.strip(),
                asked.event.strip(),
                None if asked.since is None else midnight(asked.since),
                None if asked.until is None else midnight(asked.until, after=True),
            ),
            asked.limit,
        )
    )


def _case(call: Call) -> Case:
    case = call.desk.case(call.path["key"])
    if case is None:
        raise Problem(404, "there is no study with this key")
    return case


def _known(call: Call) -> None:
    if call.path["name"] not in {one.name for one in call.desk.releases()}:
        raise Problem(404, "no release has this name")


def _outcome(call: Call, key: str) -> answers.Outcome:
    said = call.desk.outcome(key, call.path["serial"])
    if said is None:
        raise Problem(404, "there is no such decision about it")
    return wording.outcome(said)


def _report(call: Call, kind: str) -> Response:
    name = call.path["name"]
    data = call.desk.report(name, kind)
    if data is None:
        raise Problem(404, "no release has this name")
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    return Response(data, media_type=KINDS[kind], headers=headers)
