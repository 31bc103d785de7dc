"""Running the command line in tests: in this process, or as the process that a user starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import run


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ran]


def in_process(capsys: pytest.CaptureFixture[str]) -> Command:
    """`command("held", "list", "--home", home)`: no traceback may ever come out."""

    def command(*arguments: object) -> Ran:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return Ran(code, said.out, said.err)

    return command


def clean_environment(**more: str) -> dict[str, str]:
    """Ours, without the tester's own DEID_*."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DEID_", "COLUMNS"))}
    return {**kept, **more}


def as_process(
    *arguments: object,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    seconds: float = 120,
    preexec_fn: Callable[[], None] | None = None,
) -> Ran:
    """`python -m gateway ...` to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=clean_environment(**(env or {})),
        cwd=cwd,
        timeout=seconds,
        preexec_fn=preexec_fn,
        check=False,
    )
    ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ran.out + ran.err, ran.err[-2000:]
    return ran
