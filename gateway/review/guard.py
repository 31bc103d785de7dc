"""Around every request, before any page: whose address was asked for, how much may be sent; after it: what a browser
may do with the answer. Nothing is ever stored in a cache, and no page runs a script or a style but ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.review.problems import Problem

MAX_BODY_BYTES = 16 * 1024
BODY_S = 10.0
API = "/api/"  # below it answers are for machines
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), display-capture=()",
    # "no-referrer" would make browsers send `Origin: null` with our own forms
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}


class Guard:
    """ASGI middleware. `hosts` are the values of the Host header that mean us."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, secure: bool) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._more = {"Strict-Transport-Security": "max-age=31536000"} if secure else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await send({"type": "websocket.close", "code": 1000})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (HEADERS | self._more).items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, guarded)
        else:
            await told(scope["path"], refusal)(scope, receive, guarded)

    def _refusal(self, headers: Headers) -> Problem | None:
        named = headers.getlist("host")
        if len(named) != 1 or named[0].casefold() not in self._hosts:  # DNS rebinding, and a proxy set up wrong
            return Problem(421, "not an address of this page; see DEID_REVIEW_URL")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:12]) > MAX_BODY_BYTES:
            return _too_much()
        return None


def _too_much() -> Problem:
    return Problem(413, "too much")


def told(path: str, problem: Problem) -> Response:
    """A refusal as whoever asked can read it: words for people, problem+json for machines."""
    return problem.response() if path.startswith(API) else PlainTextResponse(f"{problem.says}\n", problem.status)


async def body_of(request: Request) -> bytes:
    """All of a body that is not too large and does not come too slowly. Raises Problem."""
    body = b""
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise _too_much()
    except TimeoutError:
        raise Problem(408, "too slow") from None
    return body
