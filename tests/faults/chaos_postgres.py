"""A PostgreSQL that can be restarted in the middle of work, and a link to it that can be cut.

Other than `peers.Postgres` it commits synchronously: what it said is written survives its own end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from peers import _has_user, _postgres_folder, need
from processes import end, free_port, spawn, wait_until


@dataclass
class PostgresServer:
    """`root` holds its data and its log; with a `namespace` it runs in there."""

    root: Path
    user: str | None
    namespace: Namespace | None = None
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return self.namespace.far if self.namespace else "127.0.0.1"

    @property
    def _programs(self) -> str:
        folder = _postgres_folder()
        assert folder is not None
        return folder

    def make(self) -> None:
        initdb = [f"{self._programs}/initdb", "-D", str(self.root / "data"), "-U", "gateway", "-A", "trust"]
        with open(self.root / "initdb.log", "wb") as output:
            assert spawn([*initdb, "-E", "UTF8", "--locale=C", "-N"], output=output, user=self.user).wait() == 0
        if self.namespace is not None:
            with open(self.root / "data" / "pg_hba.conf", "a") as file:
                file.write(f"host all all {self.namespace.near}/32 trust\n")

    def start(self) -> None:
        # Without fsync only a machine that dies loses anything, and no machine dies here.
        options = ["-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "max_connections=200"]
        where = ["-h", self.host, "-p", str(self.port), "-k", str(self.root)]
        command = [f"{self._programs}/postgres", "-D", str(self.root / "data"), *where, *options]
        with open(self.root / "postgres.log", "ab") as log:
            if self.namespace is None:
                self.process = spawn(command, output=log, user=self.user)
            else:  # only root may enter it
                self.process = spawn([*self.namespace.within(self.user), *command], output=log)
        wait_until(lambda: self._tool("pg_isready", "-q") == 0, seconds=60, what="PostgreSQL takes connections")

    def create(self) -> None:
        assert self._tool("createdb", "gateway") == 0

    def restart(self, pause_s: float) -> None:
        """As after a crash: SIGQUIT is its immediate shutdown."""
        assert self.process is not None
        end(self.process, how=signal.SIGQUIT)
        time.sleep(pause_s)
        self.start()

    def stop(self) -> None:
        if self.process is not None:
            end(self.process, how=signal.SIGINT)

    def _tool(self, name: str, *words: str) -> int:
        where = ["-h", self.host, "-p", str(self.port), "-U", "gateway"]
        return subprocess.run([f"{self._programs}/{name}", *where, *words], check=False).returncode


@dataclass(frozen=True)
class Namespace:
    """A network of its own with one cable to ours. While it is cut, answers are lost, and nobody is told."""

    name: str
    near: str
    far: str

    def within(self, user: str | None) -> list[str]:
        """What stands before a command that runs in there."""
        drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"] if user else []
        return ["ip", "netns", "exec", self.name, *drop]

    def cut(self) -> None:
        _ip("-n", self.name, "route", "add", "blackhole", f"{self.near}/32")

    def mend(self) -> None:
        _ip("-n", self.name, "route", "delete", "blackhole", f"{self.near}/32")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def namespace() -> Iterator[Namespace | None]:
    """None where we may not make one."""
    number = os.getpid() % 16384  # of the blocks of four addresses in 198.18.0.0/16, which is for tests (RFC 2544)
    net = f"198.18.{number // 64}.{4 * (number % 64)}".rpartition(".")
    made = Namespace(f"chaos{number}", f"{net[0]}.{int(net[2]) + 1}", f"{net[0]}.{int(net[2]) + 2}")
    near = f"chaos{number}"
    try:
        _ip("netns", "add", made.name)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    try:
        _ip("link", "add", near, "type", "veth", "peer", "name", "cable", "netns", made.name)
        _ip("addr", "add", f"{made.near}/30", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", made.name, "addr", "add", f"{made.far}/30", "dev", "cable")
        _ip("-n", made.name, "link", "set", "cable", "up")
        yield made
    finally:
        _ip("netns", "delete", made.name)


class Link:
    """A port of loopback that leads to another one until it is cut; while it is cut, connections are reset."""

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        threading.Thread(target=self._accept, name="link", daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            ends = list(self._open)
        for one in ends:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._target), 5) as far:
            far.settimeout(None)
            with self._lock:
                if self._is_cut:
                    return
                self._open |= {near, far}
            back = threading.Thread(target=_pour, args=(far, near), daemon=True)
            back.start()
            _pour(near, far)
            back.join()
            with self._lock:
                self._open -= {near, far}


def _pour(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def postgres_server(within: Namespace | None = None) -> Iterator[PostgresServer]:
    """With an empty database `gateway`."""
    need("postgres")
    user = "postgres" if _has_user("postgres") else None  # refuses to run as root
    root = Path(tempfile.mkdtemp(prefix="chaos-postgres-"))
    if user:
        shutil.chown(root, user)
    server = PostgresServer(root, user, within)
    try:
        server.make()
        server.start()
        server.create()
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def postgres_behind_link() -> Iterator[tuple[PostgresServer, Link, str]]:
    """The server, the link that leads to it, and the SQLAlchemy URL by way of the link."""
    with postgres_server() as server:
        link = Link(server.port)
        try:
            yield server, link, f"postgresql+psycopg://gateway@127.0.0.1:{link.port}/gateway"
        finally:
            link.close()
