"""Reports of storage commitment (PS3.4 J.3.3), on associations of our own: N-EVENT-REPORT, with us in the SCP's role.

One thread; among several processes, of the one that leads. A request stays on disk until its sender took the report,
at the longest for a week.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pynetdicom import AE, build_role
from pynetdicom.sop_class import StorageCommitmentPushModel  # type: ignore[attr-defined]
from sqlalchemy.exc import SQLAlchemyError

from gateway.app.parts import Parts
from gateway.observe import log, origin
from gateway.receive import commitment
from gateway.receive.commitment import Asked
from gateway.receive.commitments import Commitments

POLL_S = 1.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 900.0
GIVE_UP_S = 7 * 24 * 3600.0


class CommitmentReports:
    """`start` and `stop` from one thread."""

    def __init__(self, parts: Parts, leads: Callable[[], bool] = lambda: True) -> None:
        self._parts = parts
        self._leads = leads
        self._commitments = Commitments(
            settings=parts.settings, spool=parts.spool, database=parts.database, keys=parts.keys
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commitments", daemon=True)
        self._pauses: dict[Path, tuple[float, float]] = {}  # file -> pause, when to try again

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """What is not reported stays on disk for the next start."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._parts.settings.network_timeout_s + 5)

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            try:
                if self._leads():
                    self.once(time.time())
            except Exception as error:  # noqa: BLE001 - thread top: the next turn tries again
                log("commitments_failed", level=logging.ERROR, origin=origin(error))

    def once(self, now: float) -> None:
        """One turn; `now` in UTC seconds. Raises what the disk raises."""
        for path, peer, asked in self._commitments.waiting():
            if self._stopping.is_set():
                return
            pause_s, again = self._pauses.get(path, (FIRST_PAUSE_S, 0.0))
            if now < again:
                continue
            over = now > path.stat().st_mtime + GIVE_UP_S
            try:
                failures = self._commitments.failures(asked)
            except SQLAlchemyError as error:
                log("commitments_failed", level=logging.WARNING, origin=origin(error))
                return
            if failures is None and over:  # nobody decided in all that time: not committed
                failures = {uid: commitment.PROCESSING_FAILURE for _, uid in asked.instances}
            if failures is None:
                continue
            if self._told(peer, asked, failures) or over:
                path.unlink()
                self._pauses.pop(path, None)
            else:
                self._pauses[path] = (min(2 * pause_s, LONGEST_PAUSE_S), now + pause_s)

    def _told(self, peer: str, asked: Asked, failures: Mapping[str, int]) -> bool:
        """Whether the sender took the report."""
        address = self._commitments.address_of(peer)
        if address is None:  # taken out of the settings since
            log("commitment_unreported", level=logging.WARNING, peer=peer, at="no address")
            return True
        values = self._parts.settings
        entity = AE(values.ae_title)
        entity.acse_timeout = entity.dimse_timeout = entity.network_timeout = values.network_timeout_s
        entity.connection_timeout = values.network_timeout_s
        entity.add_requested_context(StorageCommitmentPushModel)
        role = build_role(StorageCommitmentPushModel, scp_role=True)
        association = entity.associate(*address, ae_title=peer, ext_neg=[role])
        if not association.is_established:
            log("commitment_unreported", level=logging.WARNING, peer=peer, at="no association")
            return False
        try:
            event, dataset = commitment.report(asked, failures)
            status, _ = association.send_n_event_report(dataset, event, commitment.CLASS_UID, commitment.INSTANCE_UID)
            taken = "Status" in status and status.Status == 0
        except ValueError:  # it takes no reports: no context, or not in this role
            taken = False
        finally:
            association.release()
        counts = {"count": len(asked.instances) - len(failures), "instances": len(asked.instances)}
        log("commitment_reported" if taken else "commitment_unreported", peer=peer, **counts)
        return taken
