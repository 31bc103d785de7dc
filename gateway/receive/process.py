"""One receiver process of several: it accepts from ports that its parent has bound, and dies with it.

No engine, no policies, no models in here. It answers its parent's questions until it is told to stop.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin, start_logging
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive.listening import Listeners
from gateway.receive.places import Places
from gateway.receive.receiver import Receiver
from gateway.settings import Settings
from gateway.spool import Spool

PR_SET_PDEATHSIG = 1
TOTALS, STOP = "totals", "stop"


@dataclass(frozen=True, slots=True)
class Post:
    """What a receiver process is given, through the pipe it is started by: nothing of it is in arguments or the
    environment, where other users could read it.
    """

    parent: int
    settings: Settings
    spool: Path
    database_url: str
    keys: Keys
    listeners: Listeners
    places: Places


def run(post: Post, parent: Connection) -> None:
    """The top of a receiver process: it ends with code 0 when it was told to, else with 1."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != post.parent:  # the parent died before prctl
        os._exit(1)
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever stops the group of processes means the parent
        signal.signal(number, signal.SIG_IGN)
    start_logging()
    try:
        _receive(post, parent)
    except EnvironmentFault as fault:
        log("receiver_failed", level=logging.ERROR, at=str(fault))
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - multiprocessing would print the exception's text
        log("receiver_failed", level=logging.ERROR, origin=origin(error))
        os._exit(1)


def _receive(post: Post, parent: Connection) -> None:
    metrics, database = Metrics(), Database(post.database_url)
    receiver = Receiver(
        settings=post.settings,
        spool=Spool(post.spool),
        database=database,
        keys=post.keys,
        metrics=metrics,
        places=post.places,
    )
    receiver.accept_from(post.listeners)
    parent.send(metrics.totals())  # the first says that it receives
    while parent.recv() == TOTALS:
        parent.send(metrics.totals())
    receiver.stop()
    parent.send(metrics.totals())
    database.close()
