"""`s3://bucket/prefix`: cleared files as objects `<prefix>/<Study Instance UID>/<SOP Instance UID>.dcm` of an S3 store.

What is there already is compared, never replaced: it is looked at before, and the store is told to refuse what exists
(`If-None-Match: *`). The store gets the sha256 of the cleared file with the request, signed; after it we ask what it
keeps, by the checksum it computed itself, or by reading the object back where it computes none. One request an object,
so that whatever breaks leaves it whole or not there, and the next call sends what is missing. 5 GiB is the most that S3
takes in one request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import urllib3

from gateway.errors import EnvironmentFault, Retry, UsageError
from gateway.forward import s3_credentials
from gateway.forward.folder import study_uid_of
from gateway.forward.s3_signing import EMPTY_SHA256, Credentials, signed_headers
from gateway.forward.transport import Outgoing, Tally, TransportOptions, is_uid
from gateway.forward.verified import Verified, open_verified
from gateway.forward.web_request import Answer, ask, open_pool, place_of
from gateway.study import ClearedInstance, Receipt

LARGEST_BYTES = 5 << 30
_URL = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>(/[A-Za-z0-9._~-]+)*)/?")
_CODE = re.compile(rb"<Code>([A-Za-z.]{1,64})</Code>")
_REJECTS_US = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
_LATER = frozenset({408, 409, 423, 425, 429})  # 409: somebody writes the same object at the same time


@dataclass(frozen=True, slots=True)
class S3Transport:
    """Objects into one bucket; `prefix` begins with a slash, or is ""."""

    bucket: str
    prefix: str
    options: TransportOptions

    @classmethod
    def at(cls, url: str, options: TransportOptions) -> S3Transport:
        """The transport of `s3://bucket/prefix`; `options.access.store` says where that is. Raises UsageError."""
        form = _URL.fullmatch(url)
        if form is None or ".." in url.split("/"):
            raise UsageError("an S3 bucket is s3://bucket or s3://bucket/prefix")
        return cls(form["bucket"], form["prefix"], options)

    @property
    def _base(self) -> str:
        """The bucket, by its path: every store takes that, whatever its certificate names."""
        return f"{self.options.access.store.url}/{self.bucket}"

    def send(self, items: Sequence[Outgoing], on_receipt: Callable[[Receipt], None]) -> None:
        tally = Tally(on_receipt)
        try:
            with open_pool(self._base, self.options) as pool:
                there = _Bucket(self, pool, s3_credentials.of(self.options.access))
                for item in items:
                    with open_verified(item) as file:
                        self._put(there, file, tally)
        except EnvironmentFault as error:
            raise Retry("archive_access", at=str(error)) from None
        except Retry as error:
            if not tally.later:
                tally.later.append((error.reason, error.at))
        tally.close()

    def probe(self) -> None:
        """Ask for the bucket, which takes the right to list it (s3:ListBucket). Raises Retry."""
        try:
            with open_pool(self._base, self.options) as pool:
                answer = _Bucket(self, pool, s3_credentials.of(self.options.access)).ask("HEAD", "")
        except EnvironmentFault as error:
            raise Retry("archive_access", at=str(error)) from None
        if answer.status >= 500 or answer.status in _LATER:
            raise Retry("archive_busy", at=f"{place_of(self._base)} ({_said(answer)})")
        if answer.status >= 300:
            raise Retry("archive_rejects_us", at=f"{place_of(self._base)} ({_said(answer)})")

    def _put(self, there: _Bucket, file: Verified, tally: Tally) -> None:
        """Offer one object and note what became of it. Raises Retry when the connection is lost."""
        one = file.item.cleared
        at = f"instance {one.name}"
        study_uid = study_uid_of(file)
        if not (is_uid(study_uid) and is_uid(one.sop_instance_uid)):
            tally.refused(one.name, "output_invalid", at)
            return
        if file.size > LARGEST_BYTES:
            tally.refused(one.name, "archive_refuses", f"{at} (more than 5 GiB)")
            return
        key = f"{self.prefix}/{study_uid}/{one.sop_instance_uid}.dcm"
        try:
            found = there.look(key)
            if found is None:
                answer = there.put(key, file)
                if answer.status != 200 and answer.status != 412:
                    _not_taken(one, answer, tally)
                    return
                told = _checksum(answer) if answer.status == 200 else None
                found = _Kept(told, self.is_encrypted(answer)) if told else there.look(key)
        except Retry as lost:
            tally.postponed(one.name, lost.reason, f"{at}, {lost.at}")
            raise
        tally.answered += 1
        if found is None:
            tally.postponed(one.name, "archive_aborted", f"{at} (it was taken, and is not there)")
        elif found.sha256 != one.sha256_file:
            tally.refused(one.name, "object_conflict", at)
        elif not found.is_encrypted:  # also when an earlier call stored it so
            tally.refused(one.name, "archive_refuses", f"{at} (stored without the encryption asked for)")
        else:
            tally.delivered(one.name)

    def is_encrypted(self, answer: Answer) -> bool:
        """As the destination asks for; always where it asks for nothing."""
        wanted = self.options.access.store.encryption
        return not wanted or answer.headers.get("x-amz-server-side-encryption") == wanted


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a store has under a key. `sha256` in hex."""

    sha256: str
    is_encrypted: bool


@dataclass(frozen=True, slots=True)
class _Bucket:
    """One bucket over open connections."""

    transport: S3Transport
    pool: urllib3.PoolManager
    credentials: Credentials

    def ask(
        self,
        method: str,
        key: str,
        headers: Mapping[str, str] | None = None,
        *,
        sha256: str = EMPTY_SHA256,
        body: Iterator[bytes] | None = None,
        sink: Callable[[bytes], None] | None = None,
    ) -> Answer:
        url = f"{self.transport._base}{key}"  # noqa: SLF001
        signed = signed_headers(
            method,
            url,
            headers or {},
            sha256=sha256,
            credentials=self.credentials,
            region=self.transport.options.access.store.region,
            now=datetime.now(UTC),
        )
        return ask(self.pool, method, url, signed, body, sink)

    def put(self, key: str, file: Verified) -> Answer:
        store, sha256 = self.transport.options.access.store, file.item.cleared.sha256_file
        headers = {
            "Content-Length": str(file.size),
            "Content-Type": "application/dicom",
            "If-None-Match": "*",
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(sha256)).decode(),
        }
        if store.encryption:
            headers["x-amz-server-side-encryption"] = store.encryption
        if store.kms_key_id:
            headers["x-amz-server-side-encryption-aws-kms-key-id"] = store.kms_key_id
        return self.ask("PUT", key, headers, sha256=sha256, body=map(bytes, file.everything()))

    def look(self, key: str) -> _Kept | None:
        """The object that is there; None when none is, or we may not know. Raises Retry."""
        answer = self.ask("HEAD", key, {"x-amz-checksum-mode": "ENABLED"})
        if answer.status in (403, 404):  # 403: also the answer about what is not there to who may not list
            return None
        self._require_well(answer)
        is_encrypted, known = self.transport.is_encrypted(answer), _checksum(answer)
        if known is not None:
            return _Kept(known, is_encrypted)
        digest = hashlib.sha256()
        answer = self.ask("GET", key, sink=digest.update)
        self._require_well(answer)
        return _Kept(digest.hexdigest(), is_encrypted)

    def _require_well(self, answer: Answer) -> None:
        if answer.status != 200:
            busy = answer.status >= 500 or answer.status in _LATER
            place = place_of(self.transport._base)  # noqa: SLF001
            raise Retry("archive_busy" if busy else "archive_rejects_us", at=f"{place} ({_said(answer)})")


def _not_taken(one: ClearedInstance, answer: Answer, tally: Tally) -> None:
    at = f"instance {one.name} ({_said(answer)})"
    if answer.status in _REJECTS_US:
        tally.postponed(one.name, "archive_rejects_us", at)
    elif answer.status in _LATER or (answer.status >= 500 and answer.status != 501):
        tally.postponed(one.name, "archive_busy", at)
    elif b"<Code>BadDigest<" in answer.body or b"<Code>XAmzContentSHA256Mismatch<" in answer.body:
        tally.postponed(one.name, "archive_aborted", at)  # other bytes arrived than were sent
    else:
        tally.refused(one.name, "archive_refuses", at)


def _said(answer: Answer) -> str:
    """Status, and S3's own word for the fault where it gives one."""
    code = _CODE.search(answer.body)
    return f"HTTP {answer.status}" + (f" {code[1].decode()}" if code else "")


def _checksum(answer: Answer) -> str | None:
    """The sha256 that the store computed over the whole object, in hex; None when it says none."""
    try:
        digest = base64.b64decode(answer.headers.get("x-amz-checksum-sha256", ""), validate=True)
    except binascii.Error:  # of an object in parts: "…-3", not of its bytes
        return None
    return digest.hex() if len(digest) == 32 else None
