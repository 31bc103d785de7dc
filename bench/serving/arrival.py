"""Waits for studies to be in the archive, and says which are not and why, instead of waiting for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from bench.serving.gateway import Serving

PATIENCE_S = 240.0  # without any change; a small head takes seconds, on a busy machine half a minute
LOOK_S, ASK_S = 0.02, 0.5
GRACE_S = 5.0  # between the gateway's last "sent" and the archive's file
MOST_TOLD, LOG_BYTES = 8, 1200

Tick = Callable[[int], None]


class NotFinished(Exception):
    """Something did not arrive; the text names it."""


def objects_in(archive: Path) -> int:
    with os.scandir(archive) as entries:
        return sum(1 for _ in entries)


def clear(archive: Path) -> None:
    for path in archive.iterdir():
        path.unlink()


def wait_for_objects(archive: Path, count: int, tick: Tick = lambda _there: None) -> None:
    """Until so many objects are in the archive. Raises NotFinished when nothing more comes."""
    seen, moved_at = -1, time.monotonic()
    while (there := objects_in(archive)) < count:
        if there != seen:
            seen, moved_at = there, time.monotonic()
            tick(there)
        if time.monotonic() - moved_at > PATIENCE_S:
            raise NotFinished(f"{there} of {count} objects are in the archive, and no more came for {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)
    tick(there)


class Arrival:
    """Of studies that are sent through a gateway from now on. All that it was given before has left."""

    def __init__(self, gateway: Serving, archive: Path) -> None:
        self._gateway = gateway
        self._archive = archive
        self._sent_before = sum(gateway.states().values())

    def wait(self, studies: int, objects: int, tick: Tick = lambda _there: None) -> None:
        """Until so many objects of so many studies are in the archive. Raises NotFinished as soon as they cannot be
        any more, or when nothing changed for PATIENCE_S.
        """
        seen, moved_at, asked_at, sent_at = None, time.monotonic(), 0.0, None
        while (there := objects_in(self._archive)) < objects:
            now = time.monotonic()
            if now - asked_at < ASK_S:
                time.sleep(LOOK_S)
                continue
            asked_at, states = now, self._gateway.states()
            tick(there)
            ended = {state for state, _ in states} & {"held", "refused", "rejected", "awaiting_release"}
            if ended or self._gateway.held_before_routing():
                raise NotFinished(self._tell("a study does not go on", there, objects))
            if (there, states) != seen:
                seen, moved_at = (there, states), now
            elif now - moved_at > PATIENCE_S:
                raise NotFinished(self._tell(f"nothing changed for {PATIENCE_S:.0f} s", there, objects))
            if states == {("sent", ""): self._sent_before + studies}:
                sent_at = sent_at or now
                if now - sent_at > GRACE_S:
                    why = "every study was sent, and objects are missing: one has overwritten the other"
                    raise NotFinished(self._tell(why, there, objects))
        tick(there)

    def settle(self, studies: int) -> None:
        """Until the gateway has taken down that all were sent. Raises NotFinished."""
        give_up = time.monotonic() + PATIENCE_S
        while self._gateway.states() != {("sent", ""): self._sent_before + studies}:
            if time.monotonic() > give_up:
                raise NotFinished(self._tell("the archive has everything, the gateway does not say so", -1, -1))
            time.sleep(0.1)

    def _tell(self, what: str, there: int, objects: int) -> str:
        unfinished = self._gateway.unfinished()
        lines = [f"{what}; {there} of {objects} objects are in the archive", *unfinished[:MOST_TOLD]]
        if len(unfinished) > MOST_TOLD:
            lines.append(f"and {len(unfinished) - MOST_TOLD} more")
        log = self._gateway.log.read_text(errors="replace")[-LOG_BYTES:]
        return "\n".join([*lines, f"the log of serve ends:\n{log}"])
