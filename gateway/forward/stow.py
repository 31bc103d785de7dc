"""`https://host/dicom-web`: STOW-RS (PS3.18 10.5). Cleared files go out as they lie there, one instance a request.

One a request, so that every answer is of one instance, and a connection that breaks loses one, which is sent again by
the next call. `http://` is for this machine alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import urllib3
from urllib3.exceptions import HTTPError

from gateway.errors import EnvironmentFault, Retry, UsageError
from gateway.forward import stow_answers, stow_credentials
from gateway.forward.transport import Outgoing, Tally, TransportOptions, is_uid
from gateway.forward.verified import Verified, open_verified
from gateway.forward.web_request import ask, open_pool, place_of
from gateway.study import Receipt

JSON = "application/dicom+json"


@dataclass(frozen=True, slots=True)
class StowTransport:
    """STOW-RS to one archive; `base` is the URL of its service, without a slash at its end."""

    base: str
    options: TransportOptions

    @classmethod
    def at(cls, url: str, options: TransportOptions) -> StowTransport:
        """The transport of `https://host[:port]/path`, or of `http:` to this machine. Raises UsageError."""
        try:
            parts = urllib3.util.parse_url(url)
        except HTTPError:
            parts = urllib3.util.Url()
        if parts.scheme not in ("https", "http") or not parts.host or parts.auth or parts.query or parts.fragment:
            raise UsageError("a DICOMweb archive is https://host/path, what /studies is put behind")
        if parts.scheme == "http" and parts.host not in ("127.0.0.1", "localhost", "[::1]"):
            raise UsageError("http:// is for this machine only; write https://")
        return cls(url.rstrip("/"), options)

    def send(self, items: Sequence[Outgoing], on_receipt: Callable[[Receipt], None]) -> None:
        tally = Tally(on_receipt)
        try:
            with open_pool(self.base, self.options) as pool:
                headers = stow_credentials.headers_of(self.options.access)
                for item in items:
                    self._send_one(pool, headers, item, tally)
        except EnvironmentFault as error:
            raise Retry("archive_access", at=str(error)) from None
        except Retry as error:
            if not tally.later:
                tally.later.append((error.reason, error.at))
        tally.close()

    def probe(self) -> None:
        """Ask for one study (QIDO-RS). An archive that only stores says so, and is there. Raises Retry."""
        try:
            with open_pool(self.base, self.options) as pool:
                headers = {"Accept": JSON, **stow_credentials.headers_of(self.options.access)}
                status = ask(pool, "GET", f"{self.base}/studies?limit=1", headers).status
        except EnvironmentFault as error:
            raise Retry("archive_access", at=str(error)) from None
        if status >= 500 and status != 501:
            raise Retry("archive_busy", at=f"{self._place} (HTTP {status})")
        if status >= 300 and status not in (405, 501):
            raise Retry("archive_rejects_us", at=f"{self._place} (HTTP {status})")

    @property
    def _place(self) -> str:
        return place_of(self.base)

    def _send_one(self, pool: urllib3.PoolManager, auth: Mapping[str, str], item: Outgoing, tally: Tally) -> None:
        """Offer one instance and note the answer. Raises Retry when the connection is lost, Hold for broken bytes."""
        one = item.cleared
        if not all(map(is_uid, (one.sop_class_uid, one.sop_instance_uid, one.transfer_syntax_uid))):
            tally.refused(one.name, "output_invalid", f"instance {one.name}")
            return
        with open_verified(item) as file:
            boundary = secrets.token_hex(24)
            head, tail = _around(boundary)
            headers = {
                "Accept": JSON,
                "Content-Type": f'multipart/related; type="application/dicom"; boundary={boundary}',
                "Content-Length": str(len(head) + file.size + len(tail)),
                **auth,
            }
            try:
                answer = ask(pool, "POST", f"{self.base}/studies", headers, _body(head, file, tail))
            except Retry as lost:
                tally.postponed(one.name, lost.reason, f"instance {one.name}, {lost.at}")
                raise
        tally.answered += 1
        stow_answers.note(one, answer.status, answer.body, tally)


def _around(boundary: str) -> tuple[bytes, bytes]:
    """What stands before and behind the one part (RFC 2046 5.1.1)."""
    return f"--{boundary}\r\nContent-Type: application/dicom\r\n\r\n".encode(), f"\r\n--{boundary}--\r\n".encode()


def _body(head: bytes, file: Verified, tail: bytes) -> Iterator[bytes]:
    yield head
    yield from map(bytes, file.everything())
    yield tail
