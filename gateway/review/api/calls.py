"""From a request to an answer: whose token, whether its scopes and its account's role may, whether what is asked fits.

Deny by default, and in this order, so that nobody without permission learns what a call would say. Cookies count for
nothing here, so no other site can make a browser call. What is wrong is said without repeating any of it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import EnvironmentFault, StudyError, UsageError
from gateway.review.accounts import Account, Accounts
from gateway.review.api.requests import Nothing
from gateway.review.desk import Desk, Person
from gateway.review.guard import body_of
from gateway.review.problems import Problem
from gateway.review.roles import GRANTS, May
from gateway.review.throttle import Rate
from gateway.review.tokens import NEEDS, Scope, Token, Tokens

KEY, COUNT = r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}", 9  # keys and names in addresses; digits of a number
NOBODY = ""  # calls without a token that counts share one rate
TELLABLE = {  # messages of pydantic that repeat nothing of what was sent
    *("missing", "string_type", "string_too_short", "string_too_long", "string_pattern_mismatch", "int_type"),
    *("int_parsing", "greater_than_equal", "less_than_equal", "literal_error", "list_type", "bool_type", "too_short"),
    *("too_long", "model_type", "model_attributes_type", "date_type", "date_from_datetime_parsing", "date_parsing"),
}


@dataclass(frozen=True)
class Bureau:
    """What all calls share."""

    desk: Desk
    accounts: Accounts
    tokens: Tokens
    rate: Rate = field(default_factory=Rate)


@dataclass(frozen=True)
class Call:
    """One call that may be carried out."""

    desk: Desk
    token: Token
    account: Account
    path: Mapping[str, Any]
    query: Any
    body: Any

    @property
    def person(self) -> Person:
        """The account that the token stands for."""
        return Person(self.account.name, str(self.account.role), self.token.ident)

    def may(self, what: May) -> bool:
        return what in GRANTS[self.account.role]

    def require(self, what: May) -> None:
        if not self.may(what):
            raise Problem(403, f"the role {self.account.role} may not: {what}")


@dataclass(frozen=True)
class Operation:
    """One call: `ident` and the handler's docstring describe it. `answer` is a type, or the media type of a file."""

    ident: str
    method: str
    path: str
    scope: Scope | None  # None: any token that counts
    handler: Callable[[Call], Any]
    answer: Any
    query: type[BaseModel] = Nothing
    body: Any = None
    status: int = 200

    @cached_property
    def answers(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.answer)

    @cached_property
    def takes(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.body)

    @property
    def is_file(self) -> bool:
        return isinstance(self.answer, str)

    def endpoint(self, bureau: Bureau) -> Callable[[Request], Awaitable[Response]]:
        """What Starlette calls."""

        async def answer(request: Request) -> Response:
            try:
                token, account = await run_in_threadpool(self._authorised, bureau, request)
                body = await body_of(request) if self.body is not None else b""
                return await run_in_threadpool(self._answer, bureau, token, account, request, body)
            except Problem as problem:
                return problem.response()
            except (UsageError, StudyError) as error:
                return Problem(409, str(error)).response()
            except EnvironmentFault as error:
                return Problem(503, str(error)).response()

        return answer

    def _authorised(self, bureau: Bureau, request: Request) -> tuple[Token, Account]:
        """Raises Problem, with the same words for a token that never was, that is over, and that was revoked."""
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        found = None
        if kind.casefold() == "bearer" and secret:
            found = bureau.tokens.find(secret.strip(), bureau.accounts, time.time())
        wait_s = bureau.rate.wait_s(found[0].name if found else NOBODY)
        if wait_s:
            raise Problem(429, "too many calls", headers={"Retry-After": str(int(wait_s) + 1)})
        if found is None:
            says = "a token is needed (Authorization: Bearer); `deid-gateway review token new` makes one"
            raise Problem(401, says, headers={"WWW-Authenticate": "Bearer"})
        token, account = found
        if self.scope is not None and self.scope not in token.scopes:
            told = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{self.scope}"'}  # RFC 6750 3.1
            raise Problem(403, f"the token has no scope {self.scope}", headers=told)
        if self.scope is not None and NEEDS[self.scope] not in GRANTS[account.role]:
            raise Problem(403, f"the role {account.role} may not: {NEEDS[self.scope]}")
        return token, account

    def _answer(self, bureau: Bureau, token: Token, account: Account, request: Request, body: bytes) -> Response:
        call = Call(
            bureau.desk,
            token,
            account,
            request.path_params,
            _checked("query", self.query.model_validate, dict(request.query_params)),
            self._body(request, body) if self.body is not None else None,
        )
        if self.scope is not None and self.scope.writes:  # before anything is asked of the gateway
            named = str(next(iter(request.path_params.values()), ""))
            about = named if bureau.desk.knows(named) else ""  # a Patient ID in an address must not stay for good
            bureau.desk.note("token_used", call.person, token=token.name, operation=self.ident, key=about)
        value = self.handler(call)
        if isinstance(value, Response):
            return value
        return Response(self.answers.dump_json(value), self.status, media_type="application/json")

    def _body(self, request: Request, body: bytes) -> Any:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Problem(415, "send application/json")
        return _checked("body", self.takes.validate_json, body)


def _checked(part: str, validate: Callable[[Any], Any], value: Any) -> Any:
    """Raises Problem that says which fields are wrong, and nothing of what they hold."""
    try:
        return validate(value)
    except ValidationError as error:
        faults = [_fault(part, one) for one in error.errors(include_url=False, include_input=False)]
        raise Problem(422, f"the {part} is not as the document at /api/v1/openapi.json says", faults=faults) from None


def _fault(part: str, one: Mapping[str, Any]) -> tuple[str, str, str]:
    """The name of a field that is not known is the caller's own text: it is left out."""
    places: Sequence[Any] = one["loc"][:-1] if one["type"] == "extra_forbidden" else one["loc"]
    says = one["msg"] if one["type"] in TELLABLE else "see the document"
    return "/".join([part, *map(str, places)]), str(one["type"]), says


async def _not_one(_request: Request, error: Exception) -> Response:
    """No such address, or another method."""
    if not isinstance(error, HTTPException):
        return Problem(500, "the gateway failed at this; its log says where").response()
    says = {404: "no such call; see /api/v1/openapi.json", 405: "not by this method"}.get(error.status_code, "refused")
    return Problem(error.status_code, says, headers=error.headers).response()


class KeyConvertor(Convertor[str]):
    """Keys and names; an address with anything else in it is no call."""

    regex = KEY

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class CountConvertor(Convertor[int]):
    regex = f"[0-9]{{1,{COUNT}}}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


def api_of(bureau: Bureau, operations: Sequence[Operation]) -> Starlette:
    """The application below /api/v1."""
    register_url_convertor("key", KeyConvertor())
    register_url_convertor("count", CountConvertor())
    routes = [Route(one.path, one.endpoint(bureau), methods=[one.method]) for one in operations]
    return Starlette(routes=routes, exception_handlers={HTTPException: _not_one, Exception: _not_one})
