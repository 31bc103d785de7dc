"""Signing in and out. The answer to a wrong name is that to a wrong password, and as slow."""

from __future__ import annotations

import hmac
import secrets

from starlette.responses import RedirectResponse, Response

from gateway.review.desk import Person
from gateway.review.visits import Visit

VISIT = "visit"  # cookie of a browser that is about to sign in


def form(visit: Visit) -> Response:
    if visit.session is not None:
        return RedirectResponse("/queue", 303)
    return _form(visit, "", 200)


def _form(visit: Visit, says: str, status: int) -> Response:
    mark = secrets.token_urlsafe(24)
    office = visit.office
    page = visit.page(
        "login.html",
        status,
        proof=office.sessions.proof(mark),
        says=says,
        by_provider=office.provider is not None,
        by_password=office.provider is None or bool(office.accounts.all()),
    )
    office.set_cookie(page, VISIT, mark)
    return page


def sign_in(visit: Visit) -> Response:
    """A new session with a new token, whatever the browser brought. Too many failures: 429."""
    office, form = visit.office, visit.form
    mark = visit.request.cookies.get(VISIT, "")
    if not mark or not hmac.compare_digest(form.get("proof", "").encode(), office.sessions.proof(mark).encode()):
        return _form(visit, "This form was out of date. Try again.", 403)
    name = form.get("name", "").strip().casefold()[:64]
    if office.throttle.wait_s(name) > 0:
        return _too_many(visit, name)
    with office.throttle.hashing() as there_is_room:
        if not there_is_room:
            return _form(visit, "Too many people sign in at this moment. Try again.", 429)
        if not office.throttle.begin(name):  # others failed while this one waited for room
            return _too_many(visit, name)
        account = office.accounts.verify(name, form.get("password", ""))
    if account is None:
        return _form(visit, "Name or password is wrong.", 401)
    office.throttle.succeeded(name)
    token, session = office.sessions.open(account)
    office.desk.note("signed_in", Person(session.name, str(session.role), session.ident))
    page = RedirectResponse("/queue", 303)
    office.set_cookie(page, office.cookie, token)
    page.delete_cookie(VISIT, path="/", secure=office.secure, httponly=True, samesite="strict")
    return page


def _too_many(visit: Visit, name: str) -> Response:
    wait_s = visit.office.throttle.wait_s(name)
    page = _form(visit, f"Too many tries. Wait {wait_s / 60:.0f} minutes.", 429)
    page.headers["Retry-After"] = str(int(wait_s) + 1)
    return page


def sign_out(visit: Visit) -> Response:
    office = visit.office
    office.sessions.close(visit.request.cookies.get(office.cookie, ""))
    office.desk.note("signed_out", visit.person)
    leaving = ""
    if visit.signed_in.account.is_vouched and office.provider is not None:
        leaving = office.provider.leaving(f"{office.origin}/login")
    page: Response = RedirectResponse("/login", 303)
    if leaving:  # a link, since a form may not be sent on to another site
        page = Visit(office, visit.request, None).page("left.html", leaving=leaving)
    page.delete_cookie(office.cookie, path="/", secure=office.secure, httponly=True, samesite="strict")
    page.headers["Clear-Site-Data"] = '"cache", "storage"'
    return page
