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
from gateway.observe import log, origin
from gateway.observe.metrics import Metrics


class StatusServer:
    """Answers on its own threads. `healthy`: need not be restarted; `checks`: whether each part is well."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        metrics: Metrics,
        refresh: Callable[[], None],
        healthy: Callable[[], bool],
        checks: Callable[[], Mapping[str, bool]],
    ) -> None:
        self._address = (host, port)
        self._metrics = metrics
        self._refresh = refresh
        self._healthy = healthy
        self._checks = checks
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._scrape = threading.Lock()  # gauges are emptied and filled: one reader at a time

    @property
    def port(self) -> int:
        """The bound port, 0 before the start."""
        return int(self._server.server_address[1]) if self._server is not None else 0

    def start(self) -> None:
        """Raises EnvironmentFault when the port is taken."""
        try:
            self._server = _server(self._address, self._answer)
        except OSError as error:
            host, port = self._address
            raise EnvironmentFault(
                f"cannot listen on {host}:{port} for HTTP ({error.strerror}); set DEID_HTTP_PORT or DEID_HTTP_HOST"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        match path:
            case "/metrics":
                with self._scrape:
                    self._refresh()
                    return 200, CONTENT_TYPE_LATEST, generate_latest(self._metrics)
            case "/healthz":
                return (200, "text/plain", b"ok\n") if self._healthy() else (503, "text/plain", b"stalled\n")
            case "/readyz":
                parts = dict(self._checks())
                return (200 if all(parts.values()) else 503), "application/json", json.dumps(parts).encode() + b"\n"
        return 404, "text/plain", b"one of /metrics, /healthz, /readyz\n"


def _server(address: tuple[str, int], answer: Callable[[str], tuple[int, str, bytes]]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        server_version = "deid-gateway"
        sys_version = ""
        timeout = 10

        def do_GET(self) -> None:
            status, kind, body = answer(self.path)
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

    return Server(address, Handler)
