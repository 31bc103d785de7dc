"""A command holds the lock for a moment: a gateway that starts meanwhile waits, and no second gateway does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gateway.errors import EnvironmentFault
from gateway.flow.lock import StoreLock


def test_a_gateway_waits_for_a_command_and_not_for_another_gateway(tmp_path: Path) -> None:
    path, url = tmp_path / "engine.lock", f"sqlite:///{tmp_path}/engine.sqlite"
    command, gateway = StoreLock(path, url, brief=True), StoreLock(path, url)
    command.take()
    timer = threading.Timer(0.5, command.release)
    timer.start()
    gateway.take()
    timer.join()
    assert gateway.held
    for other in (StoreLock(path, url), StoreLock(path, url, brief=True)):
        with pytest.raises(EnvironmentFault, match="another gateway runs"):
            other.take()
    gateway.release()
    command.take()
    with pytest.raises(EnvironmentFault, match="another gateway runs"):
        StoreLock(path, url, brief=True).take()  # one command after the other
    command.release()
