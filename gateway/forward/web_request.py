"""One request to a web archive, and what is said when there is no answer. Redirects, proxies and `.netrc` of the
environment are not followed: nobody but the archive that was named gets anything.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError, SSLError

from gateway.errors import Retry
from gateway.forward.transport import TransportOptions
from gateway.tls import client_context

LONGEST_BYTES = 1 << 20  # of an answer; what is longer is not read on
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `headers` by small letters; `body` no longer than LONGEST_BYTES."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def open_pool(base: str, options: TransportOptions) -> urllib3.PoolManager:
    """Connections to one archive, over TLS where `base` is https. Raises EnvironmentFault for files that are none."""
    return urllib3.PoolManager(
        1,
        ssl_context=client_context(options.access.tls) if base.startswith("https:") else None,
        timeout=urllib3.Timeout(connect=options.timeout_s, read=options.timeout_s),
        retries=False,
    )


def place_of(base: str) -> str:
    """Host and port, for messages."""
    return base.partition("://")[2].partition("/")[0]


def ask(
    pool: urllib3.PoolManager,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: Iterator[bytes] | bytes | None = None,
    sink: Callable[[bytes], None] | None = None,
) -> Answer:
    """The answer to one request; with `sink`, the body of a 200 goes there, whole, however long. Raises Retry when
    there is no answer, or not all of it.
    """
    place = place_of(url)
    try:
        answer = pool.request(
            method,
            url,
            body=body,
            headers=dict(headers),
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        try:
            found = {name.lower(): value for name, value in answer.headers.items()}
            if sink is not None and answer.status == 200:
                for piece in answer.stream(_PIECE_BYTES, decode_content=False):
                    sink(piece)
                return Answer(answer.status, found, b"")
            return Answer(answer.status, found, answer.read(LONGEST_BYTES, decode_content=True))
        finally:
            answer.release_conn() if answer.length_remaining == 0 else answer.close()
    except SSLError as error:
        why = error.args[0] if error.args else None
        if isinstance(why, ssl.SSLCertVerificationError):
            raise Retry("archive_untrusted", at=f"{place} (certificate: {why.verify_message})") from None
        raise Retry("archive_unreachable", at=f"{place} (no TLS)") from None
    except (NewConnectionError, ConnectTimeoutError, NameResolutionError):
        raise Retry("archive_unreachable", at=place) from None
    except (HTTPError, OSError) as error:
        raise Retry("archive_aborted", at=f"{place} ({type(error).__name__})") from None
