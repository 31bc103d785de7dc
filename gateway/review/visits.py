"""From a request to a page: who asks, whether that role may, whether a form is ours. Deny by default.

A page is a plain function from a `Visit` to a response; it runs on a thread. Whatever it raises of our errors becomes a
page that says so.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from gateway.errors import EnvironmentFault, StudyError, UsageError
from gateway.review.accounts import Account, Accounts
from gateway.review.attempts import Attempts
from gateway.review.desk import Desk, Person
from gateway.review.guard import body_of, told
from gateway.review.known_people import KnownPeople
from gateway.review.problems import Problem
from gateway.review.provider import Provider
from gateway.review.roles import May
from gateway.review.sessions import Session, Sessions
from gateway.review.throttle import Throttle
from gateway.review.wording import FILTERS

TEMPLATES = Path(__file__).parent / "templates"
FORM = "application/x-www-form-urlencoded"


class Denied(Exception):
    """The request gets this answer and nothing else."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


@dataclass(frozen=True)
class Office:
    """What all pages share. `origin` is our address as browsers see it, such as http://127.0.0.1:8081."""

    desk: Desk
    accounts: Accounts
    people: KnownPeople
    origin: str
    origins: frozenset[str]
    provider: Provider | None = None
    attempts: Attempts = field(default_factory=Attempts)
    sessions: Sessions = field(default_factory=Sessions)
    throttle: Throttle = field(default_factory=Throttle)

    def known(self) -> dict[str, Account]:
        """Everybody who may be signed in, by name."""
        return {**(self.people.all() if self.provider is not None else {}), **self.accounts.all()}

    @property
    def secure(self) -> bool:
        return self.origin.startswith("https://")

    @property
    def cookie(self) -> str:
        """With TLS a name that a browser gives back to this very host and over TLS only."""
        return "__Host-review" if self.secure else "review"

    def set_cookie(self, response: Response, name: str, value: str) -> None:
        """Gone with the browser, for no script, never sent from another site."""
        response.set_cookie(name, value, path="/", secure=self.secure, httponly=True, samesite="strict")


@dataclass(frozen=True)
class Visit:
    """One request. `session` is None on pages that need none; `form` is empty but for a POST."""

    office: Office
    request: Request
    session: Session | None
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def signed_in(self) -> Session:
        """Whoever asks. Raises Denied where a page without permission forgot to say that it needs one."""
        if self.session is None:
            raise Denied(PlainTextResponse("sign in first\n", 401))
        return self.session

    @property
    def person(self) -> Person:
        session = self.signed_in
        return Person(session.name, str(session.role), session.ident)

    def may(self, what: May) -> bool:
        return self.session is not None and self.session.may(what)

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A template with what every page needs."""
        text = _TEMPLATES.get_template(template).render(
            session=self.session, csrf=self.session.csrf if self.session else "", May=May, **values
        )
        return HTMLResponse(text, status)

    def message(self, title: str, says: str, status: int) -> Response:
        """A page that only says something; for the frames of a page, the words alone."""
        if self.request.headers.get("hx-request") or "/frame/" in self.request.url.path:
            return PlainTextResponse(f"{says}\n", status)
        return self.page("message.html", status, title=title, says=says)


Handler = Callable[[Visit], Response]
_TEMPLATES = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters.update(FILTERS)


@dataclass(frozen=True, slots=True)
class Page:
    """One address. `may` None is for everybody. A page that asks by itself does not keep a session alive."""

    method: str
    path: str
    handler: Handler
    may: May | None
    by_itself: bool = False

    def endpoint(self, office: Office) -> Callable[[Request], Awaitable[Response]]:
        """What Starlette calls."""

        async def answer(request: Request) -> Response:
            visit = Visit(office, request, None)
            try:
                if request.method == "POST":
                    _require_our_site(request, office)
                    visit = Visit(office, request, None, await _form(request))
                return await run_in_threadpool(self._answer, visit)
            except Denied as denied:
                return denied.response
            except Problem as problem:
                return told(request.url.path, problem)

        return answer

    def _answer(self, visit: Visit) -> Response:
        """What the handler gives; for errors of ours a page that says so, with the way on for whoever is signed in."""
        try:
            visit = self._recognised(visit)
            return self._permitted(visit)
        except UsageError as error:
            return visit.message("That cannot be done", str(error), 409)
        except StudyError as error:
            return visit.message("That cannot be shown", str(error), 409)
        except EnvironmentFault as error:
            return visit.message("Nothing can be shown or decided now", str(error), 503)

    def _recognised(self, visit: Visit) -> Visit:
        """The visit with the session that its cookie stands for, if any."""
        office, request = visit.office, visit.request
        session = None
        if office.cookie in request.cookies:
            token = request.cookies[office.cookie]
            session = office.sessions.find(token, office.known(), touch=not self.by_itself)
        return Visit(office, request, session, visit.form)

    def _permitted(self, visit: Visit) -> Response:
        request, session = visit.request, visit.session
        if self.may is None:
            return self.handler(visit)
        if session is None:
            plain = request.method == "GET" and not request.headers.get("hx-request")
            plain = plain and "text/html" in request.headers.get("accept", "")
            raise Denied(RedirectResponse("/login", 303) if plain else PlainTextResponse("sign in first\n", 401))
        if not session.may(self.may):
            raise Denied(visit.message("Not for this account", f"The role {session.role} may not: {self.may}.", 403))
        if request.method == "POST" and not hmac.compare_digest(
            visit.form.get("csrf", "").encode(), session.csrf.encode()
        ):
            raise Denied(visit.message("This form is out of date", "Open the page again, and send it from there.", 403))
        return self.handler(visit)


def _require_our_site(request: Request, office: Office) -> None:
    """A form that another site made a browser send is none of ours, whatever it brings. Raises Denied."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    if origin not in office.origins or site != "same-origin":
        raise Denied(PlainTextResponse("not from this site\n", 403))
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM:
        raise Denied(PlainTextResponse("not a form of this site\n", 415))


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; of one that is there twice, the last. Raises Problem, and Denied."""
    try:
        return dict(parse_qsl((await body_of(request)).decode("utf-8"), keep_blank_values=True, max_num_fields=32))
    except ValueError:
        raise Denied(PlainTextResponse("not a form of this site\n", 400)) from None
