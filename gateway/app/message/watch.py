"""The watch: reads the ledger for what people should know, looks at the machine, and sees that messages arrive.

One thread beside the engine. It decides nothing, and writes nothing but its own queue: a message that cannot be sent
never keeps a study back.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from sqlalchemy.exc import SQLAlchemyError

from gateway.app.message import conditions
from gateway.app.message.channels import Channel, Message, NotSent
from gateway.app.message.notices import (
    ARCHIVE,
    DISK,
    EVENTS,
    EXPIRING,
    LEDGER,
    OF_LEDGER,
    URGENT,
    Notice,
    identity,
    of_line,
)
from gateway.app.message.queue import Outbox, Seen
from gateway.app.parts import Parts
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin

POLL_S = 2.0
LOOK_S = 30.0  # between looks at the machine
REMIND_S = 24 * 3600.0  # a condition that still holds is told of again
GIVE_UP_S = 7 * 24 * 3600.0  # a message that nobody took for so long says nothing new any more
VERIFY_S, VERIFY_SHARE = 3600.0, 100.0  # the whole ledger is read once an hour, and at most 1 % of the time
_NEEDLES = tuple(f'"event":"{event}"'.encode() for event in sorted(OF_LEDGER))


class Watch:
    """Tells people, through `channels`. Without any it still reads the ledger for damage. Among several processes the
    one that `leads` does.
    """

    def __init__(self, parts: Parts, channels: Sequence[Channel], leads: Callable[[], bool] = lambda: True) -> None:
        self._parts = parts
        self._leads = leads
        self._channels = {channel.name: channel for channel in channels}
        self._outbox = Outbox(parts.home.root)
        self._told = frozenset(parts.settings.notify_events) or frozenset(EVENTS)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._looked = self._verified = float("-inf")
        self._verify_pause_s = VERIFY_S
        self._failed: dict[str, tuple[int, float]] = {}  # channel -> tries in a row that failed, when to try again

    def start(self) -> None:
        self._outbox.open()
        self._thread.start()

    def stop(self) -> None:
        """What is unsent stays on disk for the next start."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=20)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            try:
                if self._leads():
                    self.once(time.time())
                    self._verify(time.monotonic())
            except Exception as error:  # noqa: BLE001 - thread top: the next turn tries again
                log("watch_failed", level=logging.ERROR, exception=origin(error))

    def once(self, now: float) -> None:
        """One turn. `now` is in UTC seconds."""
        if self._channels:
            self._outbox.open()
            self._collect(now)
            self._bundle(now)
            self._send(now)

    # -- what there is to tell ----------------------------------------------------------------------------------------

    def _collect(self, now: float) -> None:
        seen = self._outbox.seen()
        if seen is None:  # nobody is told of what was before messages were set up
            seen = Seen(self._size())
        notices = [one for one in self._of_ledger(seen) if now - one.at < GIVE_UP_S]
        if now - self._looked >= LOOK_S:
            self._looked = now
            notices += self._of_machine(seen, now)
        self._outbox.add(one for one in notices if one.event in self._told)
        self._outbox.keep(seen)

    def _size(self) -> int:
        path = self._parts.home.ledger
        return path.stat().st_size if path.exists() else 0

    def _of_ledger(self, seen: Seen) -> Iterator[Notice]:
        """Lines that were added; `seen` goes on with them. A torn line is none yet."""
        if self._size() < seen.offset:  # cut, or restored from a backup: `ledger_broken` tells of the first
            seen.offset = self._size()
        if not self._parts.home.ledger.exists():
            return
        with open(self._parts.home.ledger, "rb") as file:
            file.seek(seen.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                seen.offset += len(line)
                if any(needle in line for needle in _NEEDLES):
                    try:
                        notice = of_line(json.loads(line))
                    except (ValueError, KeyError, TypeError):
                        continue  # not a line of ours: the chain says so
                    if notice is not None:
                        yield notice

    def _of_machine(self, seen: Seen, now: float) -> Iterator[Notice]:
        """A notice when a condition begins to hold, each day that it goes on, and when it is over."""
        known, holding = self._conditions(now)
        for key, reason in holding.items():
            if now - seen.raised.get(key, float("-inf")) >= REMIND_S:
                seen.raised[key] = now
                event, _, subject = key.partition("/")
                yield Notice(identity(key, now), event, now, subject, reason)
        for key in [key for key in seen.raised if key not in holding and key.partition("/")[0] in known]:
            event, _, subject = key.partition("/")
            yield Notice(identity(key, seen.raised.pop(key), "over"), event, now, subject, over=True)

    def _conditions(self, now: float) -> tuple[set[str], dict[str, str]]:
        """Events that could be looked at, and what holds of them: "event/subject" -> reason."""
        p, known, holding = self._parts, set[str](), dict[str, str]()
        try:
            for destination, (_, tries) in conditions.retrying(p).items():
                if tries >= conditions.TRIES:
                    holding[f"{ARCHIVE}/{destination}"] = ""
            known.add(ARCHIVE)
        except (SQLAlchemyError, OSError) as error:
            log("condition_unknown", level=logging.WARNING, kind=ARCHIVE, exception=origin(error))
        try:
            if conditions.disk(p).low:
                holding[f"{DISK}/"] = ""
            known.add(DISK)
            for what, end in conditions.expiries(p).items():
                if end - now < conditions.EXPIRING_S:
                    holding[f"{EXPIRING}/{what}"] = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d")
            known.add(EXPIRING)
        except (OSError, EnvironmentFault) as error:
            log("condition_unknown", level=logging.WARNING, kind="machine", exception=origin(error))
        if not conditions.ledger_holds(p):
            holding[f"{LEDGER}/"] = ""
        known.add(LEDGER)
        return known, holding

    # -- telling it ---------------------------------------------------------------------------------------------------

    def _bundle(self, now: float) -> None:
        """Urgent things at once; the others together, when the first of them has waited for long enough."""
        waiting = self._outbox.waiting()
        urgent = [one for one in waiting if one.event in URGENT]
        others = [one for one in waiting if one.event not in URGENT]
        pause_s = self._parts.settings.notify_digest_s
        if others and (not pause_s or now - others[0].at >= pause_s):
            urgent += others
        if urgent:
            self._outbox.bundle(urgent, self._channels, now)

    def _send(self, now: float) -> None:
        metrics = self._parts.metrics
        for due in self._outbox.due():
            if self._stopping.is_set():
                break
            channel = self._channels.get(due.channel)
            if channel is None or now - due.message.at > GIVE_UP_S:
                log("notification_given_up", level=logging.ERROR, kind=due.channel)
                metrics.notified.labels(due.channel, "given_up").inc()
                self._outbox.done(due)
            elif now >= self._failed.get(due.channel, (0, 0.0))[1] and self._sent(channel, due.message, now):
                self._outbox.done(due)
        left = self._outbox.due()
        metrics.notifications.set(len(left) + len(self._outbox.waiting()))
        metrics.notifications_seconds.set(max((now - one.message.at for one in left), default=0.0))

    def _sent(self, channel: Channel, message: Message, now: float) -> bool:
        """One that fails makes its channel wait: longer each time, so that a dead server is not hammered."""
        metrics, settings = self._parts.metrics, self._parts.settings
        try:
            said = channel.send(message)
        except (NotSent, EnvironmentFault) as error:
            tries = self._failed.get(channel.name, (0, 0.0))[0] + 1
            pause_s = min(settings.retry_max_s, settings.retry_base_s * 2.0 ** min(tries - 1, 30))
            self._failed[channel.name] = (tries, now + pause_s)
            metrics.notified.labels(channel.name, "failed").inc()
            reason = error.says if isinstance(error, NotSent) else "a file of ours cannot be used"
            log("notification_failed", level=logging.WARNING, kind=channel.name, reason=reason, attempt=tries)
            return False
        self._failed.pop(channel.name, None)
        metrics.notified.labels(channel.name, "sent").inc()
        log("notification_sent", kind=channel.name, status=said, count=len(message.notices))
        return True

    def _verify(self, now: float) -> None:
        """The whole ledger, at times: what stands before its end can be changed behind our back."""
        if now - self._verified < self._verify_pause_s:
            return
        began = time.monotonic()
        try:
            report = self._parts.ledger.verify()
        finally:
            took = time.monotonic() - began
            self._verified, self._verify_pause_s = time.monotonic(), max(VERIFY_S, took * VERIFY_SHARE)
        if not report.sound:
            log("ledger_broken", level=logging.ERROR, count=report.line)
