"""What `scrub` has already decided, so that an interrupted run goes on where it stopped.

One file for each target folder in HOME/journal. A line holds decisions that were made together: a release is closed for
all its studies or for none. Lines name no input file: only keyed hashes, states, codes and new UIDs.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway.app.batch.inputs import path_text
from gateway.durable import make_folder, sync_folder
from gateway.errors import EnvironmentFault
from gateway.header import STAGE_VERSION
from gateway.pseudonyms import Keys

VERSION = f"2.{STAGE_VERSION}"  # of what decides: a study that an older version held is done again
# Ends that do not follow from input and policy alone, so the next run tries again.
PASSING = frozenset(
    {"file_unreadable", "folder_conflict", "clearance_broken", "stage_failed", "gate_failed", "policy_withdrawn"}
    # the tables that the policy names, and what has left meanwhile
    | {"patient_unlisted", "lookup_unusable", "lookup_unreachable", "mixed_patients"}
    | {"pseudonym_changed", "pseudonym_taken", "mapping_changed", "opted_out"}
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The end of one piece of work. `places` are keyed hashes of where its input files lie; `written` holds paths below
    the target folder, new names only. The state `cleared`: its release was closed, and it is being sent.
    """

    key: str
    places: tuple[str, ...]
    state: str
    reason: str = ""
    at: str = ""
    written: tuple[str, ...] = ()
    version: str = VERSION


def work_key(keys: Keys, contents: Iterable[str], policy_digest: str, project: str, target: Path) -> str:
    """Names one piece of work: the same files under the same policy and project into the same folder."""
    return keys.opaque("journal", policy_digest, project, path_text(target.resolve()), *sorted(contents))


class Journal:
    """Append-only; the last line about a key stands. A torn or damaged line is dropped: its work is done again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._decisions: dict[str, Decision] = {}
        self._keys: dict[str, set[str]] = defaultdict(set)  # by place
        data = path.read_bytes() if path.exists() else b""
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].split(b"\n"):
            self._take(_parse(line))
        if whole < len(data):
            os.truncate(path, whole)

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, keys: Keys, target: Path) -> Iterator[Journal]:
        """The journal of a target folder, for this process alone. Raises EnvironmentFault when another has it."""
        name = keys.opaque("scrub-target", path_text(target.resolve()))
        handle = os.open(make_folder(folder) / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise EnvironmentFault(f"another `scrub` is writing into {target}; wait until it has ended") from None
            yield cls(folder / f"{name}.jsonl")
        finally:
            os.close(handle)

    def find(self, key: str) -> Decision | None:
        return self._decisions.get(key)

    def same_places(self, decision: Decision) -> set[str]:
        """Keys of earlier work on any of the same input files: under another policy, or before they were mended."""
        with self._lock:
            return set().union(*(self._keys[place] for place in decision.places)) - {decision.key}

    def record(self, *decisions: Decision) -> None:
        """Write and sync one line."""
        line = json.dumps([asdict(decision) for decision in decisions]).encode() + b"\n"
        with self._lock:
            new = not self._path.exists()
            with open(self._path, "ab") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if new:
                sync_folder(self._path.parent)
            self._take(decisions)

    def _take(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self._decisions[decision.key] = decision
            for place in decision.places:
                self._keys[place].add(decision.key)


def _parse(line: bytes) -> list[Decision]:
    try:
        return [
            Decision(**{**body, **{name: tuple(map(str, body[name])) for name in ("places", "written")}})
            for body in json.loads(line)
        ]
    except (ValueError, KeyError, TypeError):
        return []
