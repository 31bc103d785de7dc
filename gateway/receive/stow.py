"""DICOMweb in: STOW-RS (PS3.18 10.5) into the same spool as C-STORE, by the same rules: 200 means on disk.

`POST /studies` and `POST /studies/{study}`, multipart/related of application/dicom. Who sends says so by a token that
stands for an AE title, so that routes see no difference. Nobody is let in without one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive import commands
from gateway.receive.arrival import Arrivals
from gateway.receive.contexts import Contexts
from gateway.receive.pdus import Caller
from gateway.receive.peers import addresses_of, plain_address
from gateway.receive.stow_parts import Malformed, Outcome, Parts
from gateway.settings import Settings
from gateway.spool import Spool
from gateway.tls import TlsFiles
from gateway.web import WebServer

ROOT = "/dicom-web"
JSON = "application/dicom+json"
RETRY_AFTER_S = 60
LONGEST_TOKEN = 4096
CLASS_UID, INSTANCE_UID, REASON = "00081150", "00081155", "00081197"
STORED, FAILED = "00081199", "00081198"


class StowReceiver:
    """The DICOMweb door. `start` and `stop` from one thread; `port` is the bound port once started."""

    def __init__(self, *, settings: Settings, spool: Spool, database: Database, keys: Keys, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._arrivals = Arrivals(settings=settings, spool=spool, database=database, keys=keys)
        self._contexts = Contexts(settings.private_sop_classes)
        self._clients = [_client(client) for client in settings.stow_clients]
        self._lock = threading.Lock()
        self._requests = 0
        tls = TlsFiles(settings.stow_tls_ca, settings.stow_tls_certificate, settings.stow_tls_key)
        self._server = WebServer(settings.stow_host, settings.stow_port or 0, "DICOMweb", "STOW", tls)
        self.app = Starlette(
            routes=[
                Route(f"{ROOT}/studies", self._post, methods=["POST"]),
                Route(f"{ROOT}/studies/{{study}}", self._post, methods=["POST"]),
            ],
            exception_handlers={Exception: self._failed},
        )

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def alive(self) -> bool:
        return self._server.alive

    def start(self) -> None:
        """Raises EnvironmentFault when the port cannot be had, TLS files not be used, or tokens would travel openly."""
        host = self._settings.stow_host
        if self._settings.stow_tls_certificate is None and plain_address(host) not in ("127.0.0.1", "::1", "localhost"):
            raise EnvironmentFault(
                f"DICOMweb on {host} without TLS would show tokens and patients to the network; set "
                "DEID_STOW_TLS_CERTIFICATE and DEID_STOW_TLS_KEY, or DEID_STOW_HOST=127.0.0.1 behind a proxy with TLS"
            )
        self._server.bind()
        self._server.start(self.app)
        log("receiver_started", host=host, port=self.port, kind="dicomweb")

    def stop(self) -> None:
        """Stop accepting; requests under way have some seconds to end, what is not whole by then is dropped."""
        self._server.stop()

    async def _post(self, request: Request) -> Response:
        calling = await run_in_threadpool(self._calling, request)
        if calling is None:
            self._metrics.associations.labels(result="rejected_token").inc()
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        boundary = _boundary(request.headers.get("content-type", ""))
        if boundary is None:
            return Response('multipart/related; type="application/dicom" is taken', 415)
        study = request.path_params.get("study", "")
        if len(study) > commands.LONGEST_UID:
            return Response(status_code=400)
        if not await run_in_threadpool(self._arrivals.has_room) or await run_in_threadpool(self._arrivals.is_behind):
            return _later()
        with self._place() as there_is_room:
            if not there_is_room:
                return _later()
            caller = Caller(calling, self._settings.ae_title, speaks_version_1=True)
            try:
                parts = Parts(
                    boundary,
                    caller=caller,
                    study_uid=study,
                    arrivals=self._arrivals,
                    contexts=self._contexts,
                    metrics=self._metrics,
                )
            except Malformed:
                return Response(status_code=400)
            return await self._take(request, parts)

    async def _take(self, request: Request, parts: Parts) -> Response:
        """The body into the spool, and what became of its parts."""
        malformed = False
        body = request.stream()
        try:
            while True:
                chunk = await asyncio.wait_for(anext(body), self._settings.network_timeout_s)
                await run_in_threadpool(parts.feed, chunk)
        except StopAsyncIteration:
            malformed = not parts.ended
        except Malformed:
            malformed = True
        except TimeoutError:
            return Response(status_code=408, headers={"Connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            await run_in_threadpool(parts.close)
        return _answer(parts.outcomes, malformed=malformed)

    def _calling(self, request: Request) -> str | None:
        """The AE title behind the token of a request, None for a stranger."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        shown = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")[:LONGEST_TOKEN]).hexdigest()
        host = plain_address(request.client.host if request.client else "")
        found = None
        for title, where, digest in self._clients:  # all of them, so that time tells nothing
            if hmac.compare_digest(shown, digest) and scheme.lower() == "bearer":
                found = title if where == "*" or host in addresses_of(where) else None
        return found

    @contextlib.contextmanager
    def _place(self) -> Iterator[bool]:
        with self._lock:
            has = self._requests < self._settings.max_associations
            self._requests += has
        try:
            yield has
        finally:
            with self._lock:
                self._requests -= has

    async def _failed(self, _request: Request, error: Exception) -> Response:
        """What nobody foresaw: the sender hears that nothing is sure, and the log where it was."""
        self._metrics.library_failures.labels(stage="receive").inc()
        log("receive_failed", level=logging.ERROR, origin=origin(error))
        return Response(status_code=500)


def _client(client: str) -> tuple[str, str, str]:
    title, _, place = client.partition("@")
    host, _, digest = place.partition("#")
    return title, host, digest


def _boundary(content_type: str) -> bytes | None:
    """The boundary of multipart/related of DICOM files (RFC 2387); None for anything else."""
    message = Message()
    message["Content-Type"] = content_type
    kind, boundary = message.get_param("type"), message.get_param("boundary")
    if message.get_content_type() != "multipart/related" or not isinstance(boundary, str) or not boundary.isascii():
        return None
    if kind is not None and str(kind).lower() != "application/dicom":
        return None
    return boundary.encode("ascii")


def _later() -> Response:
    return Response(status_code=503, headers={"Retry-After": str(RETRY_AFTER_S)})


def _answer(outcomes: Sequence[Outcome], *, malformed: bool) -> Response:
    """PS3.18 Table 10.5.3-1 and I.2: 200 all stored, 202 some, 409 none, 400 for what is no such body."""
    stored = [outcome for outcome in outcomes if outcome.status == commands.SUCCESS]
    failed = [outcome for outcome in outcomes if outcome.status != commands.SUCCESS]
    status = 400 if malformed or not outcomes else 409
    if stored:
        status = 202 if failed or malformed else 200
    body: dict[str, Any] = {}
    if stored:
        body[STORED] = {"vr": "SQ", "Value": [_entry(outcome) for outcome in stored]}
    if failed:
        body[FAILED] = {"vr": "SQ", "Value": [_entry(outcome) for outcome in failed]}
    return JSONResponse(body, status, media_type=JSON)


def _entry(outcome: Outcome) -> Mapping[str, Any]:
    entry: dict[str, Any] = {}
    if outcome.class_uid:
        entry[CLASS_UID] = {"vr": "UI", "Value": [outcome.class_uid]}
    if outcome.instance_uid:
        entry[INSTANCE_UID] = {"vr": "UI", "Value": [outcome.instance_uid]}
    if outcome.status != commands.SUCCESS:
        entry[REASON] = {"vr": "US", "Value": [outcome.status]}
    return entry
