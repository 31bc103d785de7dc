"""Requests to an OpenID provider: JSON in bounded size and time, over TLS, following nothing, a few at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from gateway.errors import EnvironmentFault, UsageError
from gateway.tls import TlsFiles, client_context

TIMEOUT_S, MOST_BYTES, AT_ONCE = 5.0, 256 * 1024, 4


class Asking:
    """Safe to share between threads."""

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file
        self._room = BoundedSemaphore(AT_ONCE)

    def ask(self, method: str, where: str, headers: Mapping[str, str], body: str | None) -> tuple[int, dict[str, Any]]:
        """Status and JSON object. Raises EnvironmentFault when none comes in time."""
        context = client_context(TlsFiles(ca_file=self._ca_file)) if where.startswith("https://") else None
        with self._one_of_few(), urllib3.PoolManager(ssl_context=context, timeout=TIMEOUT_S, retries=False) as pool:
            try:
                answer = pool.request(
                    method, where, body=body, headers=dict(headers), redirect=False, preload_content=False
                )
                data = answer.read(MOST_BYTES + 1)
                found = json.loads(data)
            except (HTTPError, ValueError, RecursionError):
                raise out_of_reach() from None
        if len(data) > MOST_BYTES or not isinstance(found, dict):
            raise out_of_reach()
        return answer.status, found

    @contextmanager
    def _one_of_few(self) -> Iterator[None]:
        if not self._room.acquire(blocking=False):  # a slow provider must not take every thread of the page
            raise EnvironmentFault("too many people wait for the sign-in provider at this moment; try again")
        try:
            yield
        finally:
            self._room.release()


def require_issuer(issuer: str) -> None:
    """Raise UsageError for an address that a token must not travel to."""
    if not is_safe(issuer) or urlsplit(issuer).query:
        raise UsageError("DEID_REVIEW_OIDC_ISSUER begins with https:// (http:// on this machine only)")


def is_safe(address: object) -> bool:
    """True for https, and for http that stays on this machine."""
    try:
        url = urlsplit(address if isinstance(address, str) else "")
    except ValueError:  # brackets of IPv6 that do not close
        return False
    here = url.hostname in ("127.0.0.1", "::1", "localhost")
    return bool(url.hostname) and (url.scheme == "https" or (url.scheme == "http" and here))


def out_of_reach() -> EnvironmentFault:
    return EnvironmentFault(
        "the sign-in provider cannot be reached, or answers what it should not; try again later, or sign in by a local "
        "account"
    )
