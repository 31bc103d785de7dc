"""Signing in by the hospital's OpenID provider: there, and back. A local account still gets in when it is out of reach.

The cookie that ties the way back to the browser that left is Lax: the way back comes from another site. The session's
own is Strict as ever, so the page that the browser comes back to sends it on by itself.
"""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from gateway.review.desk import Person
from gateway.review.provider import NotLetIn, Provider
from gateway.review.visits import Denied, Visit

AGAIN = "This sign-in was not begun here, or long ago. Begin again."


def start(visit: Visit) -> Response:
    """Off to the provider."""
    office = visit.office
    mark, attempt = office.attempts.begin(f"{_origin(visit)}/oidc/back")
    page = RedirectResponse(_provider(visit).address(attempt), 303)
    page.set_cookie(_cookie(visit), mark, path="/", secure=office.secure, httponly=True, samesite="lax")
    return page


def back(visit: Visit) -> Response:
    """Back again: a new session with a new token, whatever the browser brought."""
    office, asked, provider = visit.office, visit.request.query_params, _provider(visit)
    attempt = office.attempts.take(visit.request.cookies.get(_cookie(visit), ""), asked.get("state", ""))
    try:
        if attempt is None:
            raise NotLetIn(AGAIN)
        if "error" in asked or not asked.get("code"):
            raise NotLetIn("The sign-in provider let you not in. Begin again, or ask who runs it.")
        if asked.get("iss", provider.registration.issuer) != provider.registration.issuer:  # RFC 9207
            raise NotLetIn(AGAIN)
        account = office.people.meet(provider.identity(attempt, asked["code"]), office.accounts)
    except NotLetIn as refusal:
        page: Response = visit.page("message.html", 403, title="Not signed in", says=str(refusal))
    else:
        token, session = office.sessions.open(account)
        office.desk.note("signed_in", Person(session.name, str(session.role), session.ident), provider="oidc")
        page = visit.page("arrived.html")
        office.set_cookie(page, office.cookie, token)
    page.delete_cookie(_cookie(visit), path="/", secure=office.secure, httponly=True, samesite="lax")
    return page


def _provider(visit: Visit) -> Provider:
    if visit.office.provider is None:
        raise Denied(visit.message("No such page", "People sign in by accounts of this page.", 404))
    return visit.office.provider


def _origin(visit: Visit) -> str:
    """Our address as this browser has it; the guard let no other through."""
    host = visit.request.headers["host"].casefold()
    return next(origin for origin in visit.office.origins if origin.partition("://")[2] == host)


def _cookie(visit: Visit) -> str:
    return "__Host-oidc" if visit.office.secure else "oidc"
