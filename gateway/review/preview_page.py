"""What a loaded policy would do to a study whose originals are here: each object before and after, and why.

The answer shows originals, so it is for reviewers, in no cache and in the ledger. The study is named by its key.
"""

from __future__ import annotations

from starlette.responses import Response

from gateway.errors import UsageError
from gateway.review.visits import Visit


def form(visit: Visit) -> Response:
    return _page(visit, "", "")


def preview(visit: Visit) -> Response:
    key, digest = (visit.form.get(name, "").strip()[:80] for name in ("study", "policy"))
    if not key or not digest:
        raise UsageError("choose a study and a policy")
    return _page(visit, key, digest)


def _page(visit: Visit, key: str, digest: str) -> Response:
    desk = visit.office.desk
    found = desk.preview(visit.person, key, digest) if key else None
    return visit.page(
        "preview.html", studies=desk.received(), policies=desk.policies(), key=key, digest=digest, previews=found
    )
