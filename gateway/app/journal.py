"""What `scrub` has already decided, so that an interrupted run goes on where it stopped.

One JSON line per decided study in HOME/journal, keyed by the study's contents, the policy digest, the project and the
target folder. It names no input file: only keyed hashes, states, and the new UIDs.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway.pseudonyms import Keys
from gateway.study import State

VERSION = "1"


@dataclass(frozen=True, slots=True)
class Decision:
    """The end of one study in one run. `written` holds paths below the target folder, new names only."""

    key: str
    state: str
    reason: str = ""
    at: str = ""
    written: tuple[str, ...] = ()


def journal_key(keys: Keys, sha256: Sequence[str], policy_digest: str, project: str, target: Path) -> str:
    """Names one piece of work: the same files under the same policy into the same folder."""
    return keys.opaque("journal", VERSION, policy_digest, project, str(target.resolve()), *sorted(sha256))


class Journal:
    """Append-only; the last line about a key stands. A torn last line is dropped."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "scrub.jsonl"
        self._lock = threading.Lock()
        self._decisions: dict[str, Decision] = {}
        if self._path.exists():
            for line in self._path.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n"):
                    body = json.loads(line)
                    body["written"] = tuple(body["written"])
                    self._decisions[body["key"]] = Decision(**body)

    def finished(self, key: str, target: Path) -> Decision | None:
        """The decision about this work, when it is final and, for sent studies, its files are still there."""
        found = self._decisions.get(key)
        if found is None or found.state == State.AWAITING_RELEASE:
            return None
        return found if all((target / name).is_file() for name in found.written) else None

    def record(self, decision: Decision) -> None:
        """Write and sync one line."""
        line = json.dumps(asdict(decision)).encode() + b"\n"
        with self._lock:
            if self._path.exists() and (data := self._path.read_bytes()) and not data.endswith(b"\n"):
                self._path.write_bytes(data[: data.rfind(b"\n") + 1])
            with open(self._path, "ab") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            self._decisions[decision.key] = decision
