"""Programs that tests start: on free ports of loopback, waited for, and ended whatever happens."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

START_S = 30.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    """A TCP port of loopback that nobody listens on now. Somebody else may take it: `starting` tries again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listening(port: int) -> bool:
    """True when something accepts connections on this port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def spawn(
    args: Sequence[str], *, output: IO[bytes] | None = None, user: str | None = None, env: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program that dies with us. `user` only when we are root."""
    who = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
    return subprocess.Popen(
        list(args),
        stdin=subprocess.DEVNULL,
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(env or {})},
        preexec_fn=_die_with_parent,
        **who,  # type: ignore[arg-type]
    )


def alive_in_group(group: int) -> list[int]:
    """Process ids of a process group that still run; the dead that nobody has waited for do not count."""
    alive = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name in brackets: state, parent, group (proc(5)).
                state, _, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(its_group) == group and state not in "ZX":
                    alive.append(int(folder.name))
    return alive


def end(process: subprocess.Popen[bytes], *, how: signal.Signals = signal.SIGTERM, patience_s: float = 10.0) -> None:
    """Ask it to end, wait, then kill it."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def wait_until(true: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Return when `true()`; AssertionError naming `what` after `seconds`."""
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, f"not within {seconds} s: {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def starting(
    ports: int,
    command: Callable[[Sequence[int]], Sequence[str]],
    ready: Callable[[Sequence[int]], bool],
    log: Path,
    *,
    user: str | None = None,
    env: dict[str, str] | None = None,
    how: signal.Signals = signal.SIGTERM,
) -> Iterator[list[int]]:
    """Run `command(ports)` on free ports until it is `ready`; with other ports when it ended before that."""
    for _ in range(3):
        chosen = [free_port() for _ in range(ports)]
        with open(log, "wb") as output:
            process = spawn(command(chosen), output=output, user=user, env=env)
        try:
            give_up = time.monotonic() + START_S
            while process.poll() is None and time.monotonic() < give_up:
                if ready(chosen):
                    yield chosen
                    return
                time.sleep(0.05)
        finally:
            end(process, how=how)
    raise AssertionError(f"did not start; its output ends: {log.read_text(errors='replace')[-600:]}")
