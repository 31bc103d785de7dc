"""Commands run in this process, blind to the tester's own settings."""

from __future__ import annotations

import os

import pytest
from commands import Command, in_process

from gateway.cli.output import PIPED_WIDTH, console


@pytest.fixture(autouse=True)
def without_the_testers_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("DEID_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(console, "width", PIPED_WIDTH)  # whatever COLUMNS says here


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys)
