"""What `demo` says to type next."""

from __future__ import annotations

import sys

import pytest

from gateway.cli.demo import program


@pytest.mark.parametrize(
    ("started", "path", "typed"),
    [
        (".venv/bin/deid-gateway", "/nowhere", ".venv/bin/deid-gateway"),  # as `make demo` does
        ("/x/gateway/__main__.py", "/nowhere", "deid-gateway"),
    ],
)
def test_the_next_command_is_one_that_can_be_copied(
    monkeypatch: pytest.MonkeyPatch, started: str, path: str, typed: str
) -> None:
    monkeypatch.setattr(sys, "argv", [started, "demo"])
    monkeypatch.setenv("PATH", path)
    assert program() == typed
