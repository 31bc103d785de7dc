"""What one process at a time does beside the work: after a start or a restore, and now and then.

On the embedded database `serve` does it before the doors open. Among several processes the one that leads does it when
it begins to lead, while the others are at work: nothing here may take away what somebody is about to use.
"""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path

from gateway.app.parts import Parts
from gateway.app.person.retention import Retention
from gateway.app.person.subjects import Subjects
from gateway.app.person.wishes import Rights
from gateway.app.release.releases import Releasing
from gateway.errors import Hold
from gateway.observe import log
from gateway.study import FINAL_STATES, State

LEFTOVER_S = 3600.0


def take_over(parts: Parts) -> None:
    """What people asked for and what was removed holds also in a restored home; what an earlier version left waiting
    joins a release.
    """
    Releasing(parts).take_in()
    Rights(parts.database, parts.ledger, parts.keys).restore_from_ledger()
    Retention(parts).forget_restored()
    try:
        Subjects(parts).enforce(everything=True)
    except Hold as error:  # a merge table cannot be read: intake holds for that as well
        log("not_enforced", level=logging.WARNING, reason=error.reason, at=error.at)


def remove_candidates(parts: Parts) -> None:
    """Candidates of jobs that will never need them again; originals, key and policy make them anew."""
    gone = FINAL_STATES - {State.HELD}
    for folder in parts.home.work.iterdir():
        job = parts.database.job(folder.name)
        if job is None or job.state in gone:
            shutil.rmtree(folder)


class Leftovers:
    """Files in the spool that no row names, beside receivers that are at work: a killed one left them.

    One goes when it was there, unnamed and unchanged, at two looks an hour apart: nobody is about to name it. Clocks
    have no part in that.
    """

    def __init__(self) -> None:
        self._unnamed: dict[Path, int] = {}
        self._looked_at: float | None = None

    def look(self, parts: Parts) -> int:
        """How many files went."""
        if self._looked_at is not None and time.monotonic() - self._looked_at < LEFTOVER_S:
            return 0
        self._looked_at = time.monotonic()
        found = parts.spool.files()
        known = parts.database.spooled_names()  # after the look: what was named meanwhile stays
        unnamed = {path: at for path, at in found.items() if (path.parent.name, path.name) not in known}
        gone = [path for path, at in unnamed.items() if self._unnamed.get(path) == at]
        for path in gone:
            path.unlink(missing_ok=True)
        self._unnamed = unnamed
        return len(gone)
