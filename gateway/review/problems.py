"""What a machine is told when something cannot be done: problem details as JSON (RFC 9457). Never a value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An answer instead of the one that was asked for. `faults` say what is wrong where, as (place, code, sentence)."""

    def __init__(
        self,
        status: int,
        says: str,
        *,
        faults: Sequence[tuple[str, str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status)
        self.status, self.says, self.faults, self.headers = status, says, tuple(faults), dict(headers or {})

    def response(self) -> Response:
        body: dict[str, object] = {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": self.says}
        if self.faults:
            body["errors"] = [{"at": at, "code": code, "says": says} for at, code, says in self.faults]
        return Response(json.dumps(body), self.status, self.headers, MEDIA_TYPE)
