"""One held study: its frames before and after, its header, what the gate found, its history, and decisions about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from starlette.responses import PlainTextResponse, RedirectResponse, Response

from gateway.errors import UsageError
from gateway.review.desk import Box, Case, Kind, Picture, Verb, Wish
from gateway.review.roles import May
from gateway.review.visits import Denied, Visit
from gateway.review.wording import reason_of


def study(visit: Visit) -> Response:
    key = visit.path("key")
    case = _case(visit, key)
    asked = visit.request.query_params.get("asked", "")
    serial = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 16 else 0
    looks = visit.may(May.LOOK) and not case.closed
    things = case.things if looks else ()
    return visit.page(
        "study.html",
        case=case,
        looks=looks,
        viewer=json.dumps([asdict(thing) for thing in things if thing.frames]),
        pointers=json.dumps([asdict(pointer) for pointer in case.pointers if looks]),
        things=things,
        history=visit.office.desk.history(key),
        serial=serial,
        said=visit.office.desk.outcome(key, serial) if serial else None,
    )


def outcome(visit: Visit) -> Response:
    """What came of a decision; asked for by the page itself until there is an answer."""
    key, serial = visit.path("key"), int(visit.request.path_params["serial"])
    said = visit.office.desk.outcome(key, serial)
    return visit.page("outcome.html", key=key, serial=serial, said=said)


def frame(visit: Visit) -> Response:
    """A PNG. Its headers tell how samples become stored values."""
    kind = visit.path("kind")
    if kind not in set(Kind):
        raise Denied(PlainTextResponse("before or after\n", 404))
    number = int(visit.request.path_params["frame"])
    picture = visit.office.desk.picture(visit.person, visit.path("key"), visit.path("name"), number, Kind(kind))
    return Response(picture.png, media_type="image/png", headers=picture_headers(picture))


def picture_headers(picture: Picture) -> dict[str, str]:
    """How samples become stored values: value = sample * step + low."""
    return {
        "X-Low": repr(picture.low),
        "X-Step": repr(picture.step),
        "X-Inverted": "1" if picture.inverted else "0",
    }


def header(visit: Visit) -> Response:
    name = visit.path("name")
    lines = visit.office.desk.header(visit.person, visit.path("key"), name)
    changed = [line for line in lines if line.outcome != "kept"]
    return visit.page("header.html", name=name, lines=lines, changed=len(changed))


def decide(visit: Visit) -> Response:
    """Write a wish down and show the study again, with what came of it."""
    key, form = visit.path("key"), visit.form
    verb = form.get("verb", "")
    if verb not in set(Verb):
        raise UsageError("choose one of approve, reject, re-run and redact")
    wish = Wish(
        verb=Verb(verb),
        round=_number(form.get("round", ""), "the state of the study"),
        reason=reason_of(form.get("reason", "")),
        policy_digest=form.get("policy", "") if verb == Verb.RERUN else "",
        name=form.get("name", "") if verb == Verb.REDACT else "",
        box=_drawn(form) if verb == Verb.REDACT else None,
        whole_series=form.get("scope") == "series",
    )
    if wish.policy_digest and not visit.may(May.REPOLICY):
        raise Denied(visit.message("Not for this account", f"Your role may not: {May.REPOLICY}.", 403))
    _case(visit, key)
    serial = visit.office.desk.wish(visit.person, key, wish)
    return RedirectResponse(f"/study/{key}?asked={serial}", 303)


def _case(visit: Visit, key: str) -> Case:
    case = visit.office.desk.case(key)
    if case is None:
        raise Denied(visit.message("No such study", "There is no study with this key; see the queue.", 404))
    return case


def _drawn(form: Mapping[str, str]) -> Box:
    return box_of([_number(form.get(side, ""), "a side of the box") for side in ("top", "left", "bottom", "right")])


def box_of(sides: Sequence[int]) -> Box:
    """Raises UsageError for one with nothing in it."""
    top, left, bottom, right = sides
    if not (top < bottom and left < right):
        raise UsageError("draw a box first: its bottom lies below its top, its right side beyond its left")
    return top, left, bottom, right


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{what} is a whole number, 0 or more")
    return int(text)
