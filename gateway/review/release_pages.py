"""Releases: all of them with their worst figure, one with its scores over time, and its report to take away."""

from __future__ import annotations

from starlette.responses import Response

from gateway.review.visits import Visit

KINDS = {"html": "text/html; charset=utf-8", "pdf": "application/pdf"}
MOST = 200


def releases(visit: Visit) -> Response:
    found = visit.office.desk.releases()
    return visit.page("releases.html", releases=found[:MOST], count=len(found))


def release(visit: Visit) -> Response:
    found = visit.office.desk.release(visit.path("name"))
    if found is None:
        return visit.message("No such release", "No release has this name; the list has those that there are.", 404)
    return visit.page("release.html", detail=found, release=found.view)


def report(visit: Visit) -> Response:
    """A file to keep: it goes into a data-protection file, and names nobody."""
    name, kind = visit.path("name"), visit.path("kind")
    data = visit.office.desk.report(name, kind) if kind in KINDS else None
    if data is None:
        return visit.message("No such report", "There is a report of each release, as html and as pdf.", 404)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    return Response(data, media_type=KINDS[kind], headers=headers)
