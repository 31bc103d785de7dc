"""The thread that carries back-loads out: asks the PACS which studies an entry means, and has each sent here.

At most so many studies at a time and an hour as `sources:` says, and only in its hours. A PACS that is not reached is
left alone for a while, and no entry is to blame; one that says no is asked three times. What was under way when the
process ended is asked for again: the door knows what it has already.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gateway.app.backload.lists import opened, sealed
from gateway.app.parts import Parts
from gateway.database.backloads import (
    ASKED,
    DONE,
    ENTRY,
    FAILED,
    MOVED,
    PAUSED,
    RUNNING,
    STUDY,
    WAITING,
    Backload,
    BackloadItem,
)
from gateway.observe import log, origin
from gateway.policy.sources import ASSOCIATIONS_MAX, Source
from gateway.receive.arrival import Arrivals
from gateway.receive.query_retrieve import NotGiven, NotReached, Pacs

POLL_S = 1.0
TRIES = 3
AGAIN_S = 60.0  # after a no, times the tries
FIRST_REST_S, LONGEST_REST_S = 5.0, 900.0


@dataclass(frozen=True, slots=True)
class _Doing:
    """An item that a thread is at."""

    item: BackloadItem
    source: str


class Backloading:
    """`start` and `stop` from one thread. Among several processes the one that leads does it."""

    def __init__(self, parts: Parts, leads: Callable[[], bool] = lambda: True) -> None:
        self._parts = parts
        self._leads = leads
        self._arrivals = Arrivals(settings=parts.settings, spool=parts.spool, database=parts.database, keys=parts.keys)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backload", daemon=True)
        self._pool = ThreadPoolExecutor(max_workers=4 * ASSOCIATIONS_MAX, thread_name_prefix="backload")
        self._under_way: dict[Future[None], _Doing] = {}
        self._asked: set[Pacs] = set()  # by threads of the pool, now
        self._next_at: dict[str, float] = {}  # source -> when the next study may begin
        self._rests: dict[str, tuple[float, float]] = {}  # source -> pause, until when it is left alone
        self._took_over = False

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Break off what is under way; the next start asks for it again."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._pool.shutdown(wait=False, cancel_futures=True)
        for pacs in list(self._asked):
            pacs.abort()

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            try:
                if self._leads():
                    self.once(time.time())
                else:
                    self._took_over = False
            except Exception as error:  # noqa: BLE001 - thread top: the next turn tries again
                log("backload_failed", level=logging.ERROR, exception=origin(error))

    def once(self, now: float) -> None:
        """One turn; `now` in UTC seconds. Raises what the database raises."""
        database = self._parts.database
        for future in [one for one in self._under_way if one.done()]:
            self._settle(future, now)
        if not self._took_over:
            if self._under_way:
                return
            database.reopen_items()
            self._took_over = True
        if not self._arrivals.has_room() or self._arrivals.is_behind():
            return  # the door would refuse, and no study is to blame for that
        for backload in database.backloads(RUNNING):
            source = self._parts.policies.current.sources.get(backload.source)
            if source is not None and source.hours.open_at(now) and now >= self._rests.get(source.name, (0, 0.0))[1]:
                self._begin(backload, source, now)

    def _begin(self, backload: Backload, source: Source, now: float) -> None:
        database, pause_s = self._parts.database, 3600.0 / source.studies_per_hour
        while sum(doing.source == source.name for doing in self._under_way.values()) < source.associations:
            next_at = self._next_at.get(source.name, now)
            if next_at > now:
                return
            item = database.next_item(backload.serial, now)
            if item is None:
                self._end(backload)
                return
            if item.kind == STUDY:
                self._next_at[source.name] = max(next_at, now - POLL_S) + pause_s
            self._under_way[self._pool.submit(self._do, source, item)] = _Doing(item, source.name)

    def _end(self, backload: Backload) -> None:
        """When nothing is left of it."""
        counts = self._parts.database.count_items(backload.serial)
        if any(state in (WAITING, ASKED) for _, state, _ in counts):
            return
        facts = {f"{kind}_{state}": 0 for kind, state, _ in counts}
        for (kind, state, _), count in counts.items():
            facts[f"{kind}_{state}"] += count
        name = f"backload/{backload.serial}/done"
        self._parts.ledger.append("backload_done", name, backload=backload.serial, source=backload.source, counts=facts)
        if self._parts.database.set_backload(backload.serial, DONE, still=(RUNNING,)):
            log("backload_done", count=sum(counts.values()))

    def _settle(self, future: Future[None], now: float) -> None:
        """What became of one. Whatever its thread raised is told here, and never its text."""
        database, doing = self._parts.database, self._under_way[future]
        item, error = doing.item, future.exception()
        tries = item.tries + 1
        if error is None:
            self._rests.pop(doing.source, None)
        elif isinstance(error, NotReached):
            pause_s = self._rests.get(doing.source, (FIRST_REST_S, 0.0))[0]
            self._rests[doing.source] = (min(2 * pause_s, LONGEST_REST_S), now + pause_s)
            why = {"peer": doing.source, "reason": str(error), "seconds": pause_s}
            log("source_unreachable", level=logging.WARNING, **why)
            database.postpone_item(item.serial, due_at=now, tries=item.tries, reason="unreachable")
        elif isinstance(error, NotGiven) and error.reason == "destination_unknown":  # of all of them
            log("backload_paused", level=logging.WARNING, peer=doing.source, reason=error.reason, status=error.status)
            database.postpone_item(item.serial, due_at=now, tries=item.tries, reason=error.reason)
            database.set_backload(item.backload, PAUSED, still=(RUNNING,), reason=error.reason)
        elif isinstance(error, NotGiven):
            log("not_given", level=logging.WARNING, peer=doing.source, reason=error.reason, status=error.status)
            if tries < TRIES:
                database.postpone_item(item.serial, due_at=now + AGAIN_S * tries, tries=tries, reason=error.reason)
            else:
                database.end_item(item.serial, FAILED, reason=error.reason)
        else:
            log("backload_failed", level=logging.ERROR, exception=origin(error))
            if tries < TRIES:
                database.postpone_item(item.serial, due_at=now + AGAIN_S * tries, tries=tries, reason="unforeseen")
            else:
                database.end_item(item.serial, FAILED, reason="unforeseen")
        del self._under_way[future]

    # -- in threads of the pool -----------------------------------------------------------------------------------

    def _do(self, source: Source, item: BackloadItem) -> None:
        settings = self._parts.settings
        pacs = Pacs(
            source,
            ae_title=settings.ae_title,
            timeout_s=settings.network_timeout_s,
            arrivals=self._arrivals,
        )
        query = opened(self._parts.keys, item.ciphertext)
        self._asked.add(pacs)
        try:
            if item.kind == ENTRY:
                self._resolve(pacs, item, query)
            else:
                self._fetch(pacs, item, query["StudyInstanceUID"])
        finally:
            self._asked.discard(pacs)

    def _resolve(self, pacs: Pacs, item: BackloadItem, query: Mapping[str, str]) -> None:
        keys, found = self._parts.keys, pacs.find(query)
        studies = [
            sealed(keys, STUDY, item.line, {"StudyInstanceUID": one.study_instance_uid}, one.instances) for one in found
        ]
        self._parts.database.found_studies(item, studies)

    def _fetch(self, pacs: Pacs, item: BackloadItem, study_instance_uid: str) -> None:
        database = self._parts.database
        study_key = self._parts.keys.opaque("study", study_instance_uid)
        if item.expected and database.count_arrived(study_key) >= item.expected:
            database.end_item(item.serial, MOVED, reason="here_already")
            return
        result = pacs.retrieve(study_instance_uid)
        if result.failed:
            raise NotGiven("partial")
        if database.count_arrived(study_key) < (result.done or item.expected or 1):
            raise NotGiven("not_arrived")
        database.end_item(item.serial, MOVED)
