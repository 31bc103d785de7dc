"""Synthetic studies with a planted identity, and a PACS that sends each object until it is told that it is safe.

Every instance bears a mark in its pixels, which a gateway that keeps what it need not change hands on to the archive:
what arrives there is known without asking the gateway.
"""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from planting import base
from pydicom.dataset import FileDataset
from pydicom.uid import generate_uid
from pynetdicom import AE
from running import PACS

UID_ROOT = "1.2.826.0.1.3680043.10.9999."  # of every original UID, and of nothing else
_REST = struct.pack("<61H", *range(3, 64))
_BYTES = 128  # of PixelData: 8 x 8, 16 bits


class Mark(NamedTuple):
    """Which instance this is. `edition` tells apart what bears one SOP Instance UID and differs."""

    study: int
    instance: int
    edition: int


def mark_of(data_set: bytes) -> Mark | None:
    """The mark in an encoded data set whose last element is PixelData; None when its pixels are not as they were."""
    pixels = data_set[-_BYTES:]
    return Mark(*struct.unpack_from("<3H", pixels)) if pixels[6:] == _REST else None


def instance(seed: int, mark: Mark) -> FileDataset:
    """The same bytes for the same seed and mark."""

    def uid(*what: object) -> str:
        return generate_uid(prefix=UID_ROOT, entropy_srcs=["chaos", *map(str, (seed, *what))])

    ds = base()
    ds.PatientID = f"LEAK{mark.study:04d}"
    ds.StudyInstanceUID, ds.SeriesInstanceUID = uid(mark.study), uid(mark.study, "series")
    ds.FrameOfReferenceUID = uid(mark.study, "frame")
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = uid(mark.study, "instance", mark.instance)
    ds.InstanceNumber = mark.instance
    ds.PixelData = struct.pack("<3H", *mark) + _REST
    return ds


class Errand(NamedTuple):
    """One object to send, after a pause."""

    mark: Mark
    pause_s: float = 0.0


def errands(dice: random.Random, study: int) -> list[Errand]:
    """One to three instances in any order; some again, some late, now and then one with other pixels."""
    order = [Errand(Mark(study, number, 0)) for number in range(1, dice.randint(1, 3) + 1)]
    dice.shuffle(order)
    if dice.random() < 0.3:
        order.append(dice.choice(order))
    if dice.random() < 0.25:
        order.append(Errand(Mark(study, 9, 0), dice.uniform(0.5, 3.0)))
    if dice.random() < 0.15:
        order.append(Errand(dice.choice(order).mark, dice.uniform(0.5, 4.0)))
    if dice.random() < 0.06:
        order.append(Errand(order[0].mark._replace(edition=1), dice.uniform(0.0, 3.0)))
    return order


class Acknowledged(NamedTuple):
    """An object that the gateway said it has."""

    study_uid: str
    sop_uid: str
    mark: Mark


@dataclass
class Pacs:
    """`senders` threads that send one study for each `allow`. `ports` gives where the gateway listens now."""

    seed: int
    studies: int
    ports: Callable[[], Sequence[int]]
    senders: int = 2
    acknowledged: list[Acknowledged] = field(default_factory=list)
    refused: int = 0  # attempts that were not acknowledged
    _allowed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _stopping: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for lane in range(self.senders):
            thread = threading.Thread(target=self._send_all, args=(lane,), name=f"pacs-{lane}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def allow(self, studies: int) -> None:
        self._allowed.release(studies)

    def finish(self, seconds: float) -> bool:
        """Send all that is left; True when every object was acknowledged within `seconds`."""
        self.allow(self.studies)
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        self._stopping.set()
        self.allow(self.studies)
        for thread in self._threads:
            thread.join(30)

    def _send_all(self, lane: int) -> None:
        for study in range(lane, self.studies, self.senders):
            self._allowed.acquire()
            dice = random.Random(f"errands {self.seed} {study}")
            for errand in errands(dice, study):
                self._stopping.wait(errand.pause_s)
                self._deliver(errand.mark, dice)
                if self._stopping.is_set():
                    return

    def _deliver(self, mark: Mark, dice: random.Random) -> None:
        ds = instance(self.seed, mark)
        while not self._stopping.is_set():
            if _store(ds, dice.choice(self.ports())) == 0x0000:
                with self._lock:
                    self.acknowledged.append(Acknowledged(ds.StudyInstanceUID, ds.SOPInstanceUID, mark))
                return
            with self._lock:
                self.refused += 1
            self._stopping.wait(dice.uniform(0.02, 0.3))


def _store(ds: FileDataset, port: int) -> int:
    """C-STORE; -1 when the association or the answer did not come."""
    scu = AE(ae_title=PACS)
    scu.connection_timeout = scu.acse_timeout = scu.dimse_timeout = scu.network_timeout = 8.0
    scu.add_requested_context(ds.SOPClassUID, ds.file_meta.TransferSyntaxUID)
    association = scu.associate("127.0.0.1", port, ae_title="DEID")
    if not association.is_established:
        return -1
    try:
        status = association.send_c_store(ds)
    except RuntimeError:  # the association was aborted before the request went out
        return -1
    finally:
        association.release()
    return int(status.Status) if "Status" in status else -1
