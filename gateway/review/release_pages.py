"""Releases: all with their worst figure; one with its scores over time and its report, and closing and recalling it."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from gateway.review.visits import Visit
from gateway.review.wording import reason_of

KINDS = {"html": "text/html; charset=utf-8", "pdf": "application/pdf"}
MOST = 200
CODES = {  # titles of rejection notes (IHE IOCM), the likely one first
    "113039": "may not be kept longer",
    "113037": "is not safe to use",
    "113038": "is of another person",
}


def releases(visit: Visit) -> Response:
    found, charts = visit.office.desk.releases(), visit.office.desk.worst_over_time()
    return visit.page("releases.html", releases=found[:MOST], count=len(found), charts=charts)


def release(visit: Visit) -> Response:
    found = visit.office.desk.release(visit.path("name"))
    if found is None:
        return visit.message("No such release", "No release has this name; the list has those that there are.", 404)
    asked = visit.request.query_params.get("asked", "")
    serial = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 16 else 0
    said = visit.office.desk.outcome(found.view.name, serial) if serial else None
    return visit.page("release.html", detail=found, release=found.view, said=said, codes=CODES)


def close(visit: Visit) -> Response:
    """Write down that it is to be judged now."""
    name = visit.path("name")
    serial = visit.office.desk.close_release(visit.person, name, reason_of(visit.form.get("reason", "")))
    return RedirectResponse(f"/releases/{name}?asked={serial}", 303)


def recall(visit: Visit) -> Response:
    """Write down that it is asked back from whoever got something of it."""
    name, code = visit.path("name"), visit.form.get("code", "")
    serial = visit.office.desk.recall_release(visit.person, name, code, reason_of(visit.form.get("reason", "")))
    return RedirectResponse(f"/releases/{name}?asked={serial}", 303)


def report(visit: Visit) -> Response:
    """A file to keep: it goes into a data-protection file, and names nobody."""
    name, kind = visit.path("name"), visit.path("kind")
    data = visit.office.desk.report(name, kind) if kind in KINDS else None
    if data is None:
        return visit.message("No such report", "There is a report of each release, as html and as pdf.", 404)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    return Response(data, media_type=KINDS[kind], headers=headers)
