"""All addresses of the page, each with what it needs permission for; and the application that they and the API make."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from gateway.review import oidc_signing, preview_page, queue_page, record_pages, release_pages, signing, study_page
from gateway.review.accounts import Accounts
from gateway.review.api import OPERATIONS, Bureau, api_of
from gateway.review.desk import Desk
from gateway.review.guard import Guard
from gateway.review.known_people import KnownPeople
from gateway.review.provider import Provider
from gateway.review.roles import May
from gateway.review.tokens import Tokens
from gateway.review.visits import Office, Page, Visit

STATIC = Path(__file__).parent / "static"
KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


def _static(visit: Visit) -> Response:
    """Only what lies in our folder, by its name."""
    path = STATIC / visit.path("name")
    if path.parent != STATIC or path.suffix not in KINDS or not path.is_file():
        return PlainTextResponse("no such file\n", 404)
    return Response(path.read_bytes(), headers={"Content-Type": KINDS[path.suffix]})


def _home(_visit: Visit) -> Response:
    return RedirectResponse("/queue", 303)


def _nowhere(visit: Visit) -> Response:
    return visit.message("No such page", "There is nothing at this address.", 404)


PAGES = (
    Page("GET", "/", _home, May.QUEUE),
    Page("GET", "/static/{name}", _static, None),
    Page("GET", "/login", signing.form, None),
    Page("POST", "/login", signing.sign_in, None),
    Page("GET", "/oidc/start", oidc_signing.start, None),
    Page("GET", "/oidc/back", oidc_signing.back, None),
    Page("POST", "/logout", signing.sign_out, May.QUEUE),
    Page("GET", "/queue", queue_page.queue, May.QUEUE),
    Page("GET", "/queue/rows", queue_page.rows, May.QUEUE, by_itself=True),
    Page("GET", "/study/{key}", study_page.study, May.QUEUE),
    Page("GET", "/study/{key}/outcome/{serial:int}", study_page.outcome, May.QUEUE, by_itself=True),
    Page("GET", "/study/{key}/frame/{name}/{frame:int}/{kind}", study_page.frame, May.LOOK),
    Page("GET", "/study/{key}/header/{name}", study_page.header, May.LOOK),
    Page("POST", "/study/{key}/decide", study_page.decide, May.DECIDE),
    Page("GET", "/policies", record_pages.policies, May.POLICIES),
    Page("GET", "/policies/difference", record_pages.difference, May.POLICIES),
    Page("GET", "/policies/preview", preview_page.form, May.LOOK),
    Page("POST", "/policies/preview", preview_page.preview, May.LOOK),
    Page("GET", "/releases", release_pages.releases, May.QUEUE),
    Page("GET", "/releases/{name}", release_pages.release, May.QUEUE),
    Page("GET", "/releases/{name}/report.{kind}", release_pages.report, May.POLICIES),
    Page("POST", "/releases/{name}/close", release_pages.close, May.CLOSE),
    Page("POST", "/releases/{name}/recall", release_pages.recall, May.CLOSE),
    Page("GET", "/audit", record_pages.audit, May.AUDIT),
    Page("POST", "/audit", record_pages.audit, May.AUDIT),
    Page("GET", "/vault", record_pages.vault, May.OPEN_VAULT),
    Page("POST", "/vault", record_pages.vault, May.OPEN_VAULT),
)


@dataclass(frozen=True, slots=True)
class Doors:
    """By what people and programs get in."""

    accounts: Accounts
    tokens: Tokens
    people: KnownPeople
    provider: Provider | None = None


class ReviewPages:
    """The ASGI application. `origins` are the addresses that it answers to, the first being the one to show."""

    def __init__(self, desk: Desk, doors: Doors, origins: Collection[str]) -> None:
        first = next(iter(origins))
        self.doors = doors
        self.office = Office(desk, doors.accounts, doors.people, first, frozenset(origins), doors.provider)
        routes: list[BaseRoute] = [
            Route(page.path, page.endpoint(self.office), methods=[page.method]) for page in PAGES
        ]
        routes.append(Mount("/api/v1", api_of(Bureau(desk, doors.accounts, doors.tokens), OPERATIONS)))
        hosts = [origin.partition("://")[2] for origin in origins]
        nowhere = Page("GET", "", _nowhere, None).endpoint(self.office)

        async def not_found(request: Request, _error: Exception) -> Response:
            return PlainTextResponse("no such page\n", 404) if request.method == "POST" else await nowhere(request)

        pages = Starlette(routes=routes, exception_handlers={404: not_found})
        self.app: ASGIApp = Guard(pages, hosts, secure=self.office.secure)
