"""Every call of the API: its address, its scope, what it takes and what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from gateway.review.api import answers, handlers, requests
from gateway.review.api.calls import Call, Operation
from gateway.review.api.openapi import document
from gateway.review.desk import HeaderLine
from gateway.review.tokens import Scope


def description(_call: Call) -> Response:
    """What this API can do: the OpenAPI document itself."""
    return Response(json.dumps(document(OPERATIONS)), media_type="application/json")


def _write(ident: str, path: str, scope: Scope, handler: Callable[[Call], answers.Accepted], body: Any) -> Operation:
    """A wish that is written down; what came of it is asked for afterwards."""
    return Operation(ident, "POST", path, scope, handler, answers.Accepted, body=body, status=202)


S, R = "/studies/{key:key}", "/releases/{name:key}"
OPERATIONS = (
    Operation("description", "GET", "/openapi.json", None, description, "application/json"),
    Operation("queue", "GET", "/queue", Scope.STUDIES_READ, handlers.queue, answers.Queue, requests.QueueQuery),
    Operation("study", "GET", S, Scope.STUDIES_READ, handlers.study, answers.Study),
    Operation("findings", "GET", f"{S}/findings", Scope.STUDIES_READ, handlers.findings, answers.Findings),
    Operation("history", "GET", f"{S}/history", Scope.STUDIES_READ, handlers.history, list[answers.LedgerLine]),
    Operation(
        "header", "GET", f"{S}/objects/{{name:key}}/header", Scope.ORIGINALS_READ, handlers.header, list[HeaderLine]
    ),
    Operation(
        "frame",
        "GET",
        f"{S}/objects/{{name:key}}/frames/{{frame:count}}/{{kind:key}}",
        Scope.ORIGINALS_READ,
        handlers.frame,
        "image/png",
    ),
    _write("decide", f"{S}/decisions", Scope.DECISIONS_WRITE, handlers.decide, requests.Decision),
    Operation(
        "outcome", "GET", f"{S}/decisions/{{serial:count}}", Scope.STUDIES_READ, handlers.outcome, answers.Outcome
    ),
    Operation("releases", "GET", "/releases", Scope.RELEASES_READ, handlers.releases, list[answers.Release]),
    Operation("release", "GET", R, Scope.RELEASES_READ, handlers.release, answers.ReleaseWithContent),
    Operation("report_html", "GET", f"{R}/report.html", Scope.RELEASES_READ, handlers.report_html, "text/html"),
    Operation("report_pdf", "GET", f"{R}/report.pdf", Scope.RELEASES_READ, handlers.report_pdf, "application/pdf"),
    _write("close", f"{R}/close", Scope.RELEASES_WRITE, handlers.close, requests.Close),
    _write("recall", f"{R}/recall", Scope.RELEASES_WRITE, handlers.recall, requests.Recall),
    Operation(
        "release_outcome",
        "GET",
        f"{R}/decisions/{{serial:count}}",
        Scope.RELEASES_READ,
        handlers.release_outcome,
        answers.Outcome,
    ),
    Operation("policies", "GET", "/policies", Scope.POLICIES_READ, handlers.policies, list[answers.PolicyText]),
    Operation("versions", "GET", "/policies/versions", Scope.POLICIES_READ, handlers.versions, list[answers.Version]),
    Operation(
        "difference",
        "GET",
        "/policies/difference",
        Scope.POLICIES_READ,
        handlers.difference,
        list[answers.Changed],
        requests.DifferenceQuery,
    ),
    Operation(
        "audit",
        "POST",
        "/audit/search",
        Scope.AUDIT_READ,
        handlers.audit,
        list[answers.LedgerLine],
        body=requests.AuditSearch,
    ),
)
