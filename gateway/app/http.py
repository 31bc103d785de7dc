"""/metrics, /healthz and /readyz. Plain text, no identifiers, nothing else: pages are the review server's."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gateway.errors import EnvironmentFault
from gateway.observe import Metrics, log, origin


class StatusServer:
    """Answers on its own threads. `checks` tells whether each part is well; ready when all are."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        metrics: Metrics,
        refresh: Callable[[], None],
        checks: Callable[[], Mapping[str, bool]],
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            server_version = "deid-gateway"
            sys_version = ""
            timeout = 10

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    refresh()
                    self._answer(200, CONTENT_TYPE_LATEST, generate_latest(metrics.registry))
                elif self.path == "/healthz":
                    alive = checks().get("poller", False)
                    self._answer(200 if alive else 503, "text/plain", b"ok\n" if alive else b"stalled\n")
                elif self.path == "/readyz":
                    parts = dict(checks())
                    status = 200 if all(parts.values()) else 503
                    self._answer(status, "application/json", json.dumps(parts).encode() + b"\n")
                else:
                    self._answer(404, "text/plain", b"one of /metrics, /healthz, /readyz\n")

            def _answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                """Requests are not logged: a path can hold anything."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_arguments: object) -> None:
                """A client that hangs up is no news, and a traceback on stderr would carry texts."""
                log("http_failed", level=logging.WARNING, exception=origin(sys.exception() or RuntimeError()))

        try:
            self._server = Server((host, port), Handler)
        except OSError as error:
            raise EnvironmentFault(
                f"cannot listen on {host}:{port} for HTTP ({error.strerror}); set DEID_HTTP_PORT or DEID_HTTP_HOST"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
