"""Serves the pages: a thread beside a running gateway, or the whole process of `deid-gateway review`."""

from __future__ import annotations

import socket
import stat
import threading
import time
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from gateway.errors import EnvironmentFault

STARTING_S, STOPPING_S = 15.0, 10.0


class ReviewServer:
    """Listens on `host`:`port` (0: any free one). With a certificate and its key it speaks TLS itself."""

    def __init__(self, host: str, port: int, *, certificate: Path | None = None, key: Path | None = None) -> None:
        self._host, self._port = host, port
        self._tls = (certificate, key)
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

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
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            self._socket = socket.create_server((self._host, self._port), family=family, backlog=64)
        except OSError as error:
            raise EnvironmentFault(
                f"cannot listen on {self._host}:{self._port} for the review page ({error.strerror}); "
                "set DEID_REVIEW_PORT or DEID_REVIEW_HOST"
            ) from error

    def start(self, app: ASGIApp) -> None:
        """Answer on a thread of its own. Raises EnvironmentFault when it does not come up, as with bad TLS files, or a
        key that others can read.
        """
        if self._socket is None:
            self.bind()
        certificate, key = self._tls
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
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        try:
            mode = stat.S_IMODE(key.stat().st_mode) if key is not None else 0
            config.load()
        except (OSError, ValueError) as error:
            self.stop()
            raise EnvironmentFault(
                "the certificate of the review page or its key cannot be used; see DEID_REVIEW_TLS_CERTIFICATE and "
                "DEID_REVIEW_TLS_KEY"
            ) from error
        if mode & 0o037:  # as for the master key: Kubernetes mounts secrets 0440 to the pod's group
            self.stop()
            raise EnvironmentFault(
                f"DEID_REVIEW_TLS_KEY {key} is open to others (mode {mode:04o}); run chmod 600 on it"
            )
        self._server = uvicorn.Server(config)
        sockets = [self._socket] if self._socket is not None else []
        self._thread = threading.Thread(target=self._server.run, args=(sockets,), name="review", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + STARTING_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise EnvironmentFault("the review page did not start; see the log")
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
