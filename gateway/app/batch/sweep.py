"""Half-written files that a killed run left in the target folder."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.durable import PART

_OURS = re.compile(
    r"[0-9.]{1,64}\.dcm\.[0-9a-f]{8}" + re.escape(PART)
)  # durable.writing on the folder transport's names


def sweep_parts(target: Path) -> int:
    """Remove them, and study folders that held nothing else; how many files. Only for whoever writes there alone."""
    gone = 0
    for part in target.glob(f"*/*{PART}"):
        if _OURS.fullmatch(part.name):
            part.unlink()
            gone += 1
            if not any(part.parent.iterdir()):
                part.parent.rmdir()
    return gone
