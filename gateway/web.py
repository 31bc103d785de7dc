"""A web server on a thread of its own: pages for people, DICOMweb for machines. TLS as `gateway.tls` has it."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import uvicorn
from starlette.types import ASGIApp

from gateway.errors import EnvironmentFault
from gateway.tls import TlsFiles, server_context

STARTING_S, STOPPING_S = 15.0, 10.0


@dataclass(slots=True)
class WebServer:
    """Listens on `host`:`port` (0: any free one). `what` and `settings` name it in errors: "the review page" and the
    first word of its settings. With a certificate it speaks TLS itself; a renewed one is shown without a restart.
    """

    host: str
    wanted_port: int
    what: str
    settings: str
    tls: TlsFiles = field(default_factory=TlsFiles)
    _socket: socket.socket | None = None
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The bound port, 0 before `bind`."""
        return int(self._socket.getsockname()[1]) if self._socket is not None else 0

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def bind(self) -> None:
        """Take the port, before anybody is told an address. Raises EnvironmentFault."""
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            self._socket = socket.create_server((self.host, self.wanted_port), family=family, backlog=64)
        except OSError as error:
            raise EnvironmentFault(
                f"cannot listen on {self.host}:{self.wanted_port} for {self.what} ({error.strerror}); "
                f"set DEID_{self.settings}_PORT or DEID_{self.settings}_HOST"
            ) from error

    def start(self, app: ASGIApp) -> None:
        """Answer on a thread of its own. Raises EnvironmentFault when it does not come up, as with bad TLS files, or a
        key that others can read.
        """
        if self._socket is None:
            self.bind()
        secure = self.tls.certificate_file is not None
        try:
            context = _renewing(self.tls) if secure else None
        except EnvironmentFault as error:
            self.stop()
            raise EnvironmentFault(
                f"{self.what}: {error}; see DEID_{self.settings}_TLS_CERTIFICATE and DEID_{self.settings}_TLS_KEY"
            ) from None
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,  # our formatter has it: a text of uvicorn's may hold an address
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=5,
            limit_concurrency=128,
            h11_max_incomplete_event_size=16 * 1024,
            ssl_context_factory=_given(context) if context is not None else None,
        )
        self._server = uvicorn.Server(config)
        sockets = [self._socket] if self._socket is not None else []
        name = self.what.rpartition(" ")[2]
        self._thread = threading.Thread(target=self._server.run, args=(sockets,), name=name, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + STARTING_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise EnvironmentFault(f"{self.what} did not start; see the log")
            time.sleep(0.01)

    def stop(self) -> None:
        """End what runs and give the port back."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=STOPPING_S)
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _renewing(files: TlsFiles) -> ssl.SSLContext:
    """A context whose certificate is that of the files at every handshake. Raises EnvironmentFault."""
    context = server_context(files)

    def renew(connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> int | None:
        try:
            connection.context = server_context(files)
        except EnvironmentFault:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        return None

    context.sni_callback = renew  # called for every handshake, with a name or without
    return context


def _given(context: ssl.SSLContext) -> Callable[[uvicorn.Config, Callable[[], ssl.SSLContext]], ssl.SSLContext]:
    return lambda _config, _default: context
