"""The running API against its own OpenAPI document: schemathesis makes calls that fit and calls that do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from review_site import PASSWORD, Site

from gateway.app.review.accounts import new_token
from gateway.review import ReviewPages, Role, throttle
from gateway.review.tokens import Scope
from gateway.web import WebServer

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
MOST_S = 15  # of making calls; what is found until then counts
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,negative_data_rejection,positive_data_acceptance,missing_required_header,"
    "unsupported_method,ignored_auth"
)


@pytest.mark.skipif(not SCHEMATHESIS.exists(), reason="no schemathesis here: pip install schemathesis")
def test_it_does_what_its_document_says_and_takes_nothing_else(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "CALLS", 1_000_000)
    site.accounts.put("paula", Role.PRIVACY_OFFICER, PASSWORD)
    parts = site.house.parts
    secret, _ = new_token(parts.home, parts.settings, "fuzzer", "paula", list(Scope), 1, by="uid 0")
    server = WebServer("127.0.0.1", 0, "the review page", "REVIEW")
    server.bind()
    origin = f"http://127.0.0.1:{server.port}"
    server.start(ReviewPages(site.pages.office.desk, site.pages.doors, [origin]).app)
    real = f'[parameters]\n"path.key" = "{site.held}"\n"path.name" = "00001"\n'  # the others are made up
    (tmp_path / "schemathesis.toml").write_text(real)
    try:
        done = subprocess.run(
            [
                *(SCHEMATHESIS, "run", f"{origin}/api/v1/openapi.json"),
                *("--header", f"Authorization: Bearer {secret}", "--checks", CHECKS),
                *("--phases", "examples,coverage,fuzzing", "--max-examples", "12", "--max-time", str(MOST_S)),
                *("--seed", "20261130", "--generation-database", "none", "--no-color"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        server.stop()
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    used = {line["operation"] for line in site.events("token_used")}
    assert used == {"decide", "close", "recall"}  # it came as far as the handlers of what writes
