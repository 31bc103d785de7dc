"""Scrubbing that a study can turn against its worker; imported by the workers of a test."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from gateway.app.tasks import scrub_instance
from gateway.study import Step

DEADLY, SLOW = b"POISON-FOR-WORKERS", b"SLOW-FOR-WORKERS"


def scrub(source: Path, target: Path, snapshot: str, project_key: bytes) -> Step:
    data = source.read_bytes()
    if DEADLY in data:
        with open(source.parent.parent.parent / "deaths", "ab") as deaths:
            deaths.write(b"x")
        os.kill(os.getpid(), signal.SIGKILL)
    if SLOW in data:
        time.sleep(1.5)
    return scrub_instance(source, target, snapshot, project_key)
