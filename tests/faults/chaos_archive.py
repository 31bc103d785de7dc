"""An archive with moods, which remembers every data set that it was sent, whatever it answered."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chaos_studies import UID_ROOT, Mark, mark_of
from planting import found_in
from pydicom.uid import AllTransferSyntaxes
from pynetdicom import AE, AllStoragePresentationContexts, evt

SUCCESS, WARNING, BUSY, REFUSED = 0x0000, 0xB000, 0xA700, 0xC000
MOODS = ("well", "refusing", "cutting", "busy", "aborting", "losing", "hanging", "late", "warning")
# How often a well archive is otherwise for one object.
WHIMS = {"busy": 0.02, "aborting": 0.02, "losing": 0.03, "late": 0.03, "warning": 0.05, "unwilling": 0.004}
STORES = frozenset({"well", "losing", "hanging", "late", "warning"})
STATUS = {"busy": BUSY, "unwilling": REFUSED, "warning": WARNING}


@dataclass(frozen=True)
class Arrival:
    """One data set, with what was found in it of the planted identity. `stored`: the archive has it."""

    sop_uid: str
    sha256: str
    mark: Mark | None
    found: tuple[str, ...]
    stored: bool


@dataclass
class MoodyArchive:
    """`turn` changes its mood at any time. `silence_s` is longer than a sender waits."""

    seed: int
    silence_s: float
    port: int = 0
    mood: str = "well"
    entity: AE = field(default_factory=lambda: AE(ae_title="ARCHIVE"))
    arrivals: list[Arrival] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._dice = random.Random(f"archive {self.seed}")

    @property
    def url(self) -> str:
        return f"dicom://ARCHIVE@127.0.0.1:{self.port}"

    def turn(self, mood: str) -> None:
        self.mood = mood
        self.entity.require_calling_aet = ["NOBODY"] if mood == "refusing" else []

    def _now(self) -> tuple[str, float]:
        """The mood for one object, and how long it dithers."""
        with self._lock:
            mood = self.mood
            if mood == "well":
                whims = list(WHIMS)
                mood = self._dice.choices([*whims, "well"], [*WHIMS.values(), 1 - sum(WHIMS.values())])[0]
            dithers = {"hanging": self.silence_s, "late": self._dice.uniform(0.2, 1.0)}
            return mood, dithers.get(mood, 0.0)

    def on_requested(self, event: Any) -> None:
        if self.mood == "cutting":
            event.assoc.abort()

    def on_store(self, event: Any) -> int:
        raw = event.request.DataSet.getvalue()
        uid = str(event.request.AffectedSOPInstanceUID)
        mood, dithers_s = self._now()
        words = found_in(raw) + ([UID_ROOT] if UID_ROOT.encode() in raw or uid.startswith(UID_ROOT) else [])
        with self._lock:
            self.arrivals.append(
                Arrival(uid, hashlib.sha256(raw).hexdigest(), mark_of(raw), tuple(words), mood in STORES)
            )
        time.sleep(dithers_s)
        if mood in {"aborting", "losing"}:
            event.assoc.abort()
        return STATUS.get(mood, SUCCESS)


@contextmanager
def moody_archive(seed: int, silence_s: float) -> Iterator[MoodyArchive]:
    kept = MoodyArchive(seed, silence_s)
    ae = kept.entity
    ae.maximum_associations = 100
    for context in AllStoragePresentationContexts:
        ae.add_supported_context(str(context.abstract_syntax), AllTransferSyntaxes)
    handlers = [(evt.EVT_C_STORE, kept.on_store), (evt.EVT_REQUESTED, kept.on_requested)]
    server = ae.start_server(("127.0.0.1", 0), block=False, evt_handlers=handlers)
    assert server is not None
    kept.port = server.server_address[1]
    try:
        yield kept
    finally:
        server.shutdown()
