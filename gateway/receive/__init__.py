"""The door: a storage SCP that keeps what allowed peers send, exactly as sent; success is answered when it is on disk.

    prefork      several receiver processes on one port, each a `process`; places: the limits that they share
    listening    the ports
    receiver     receiving in one process: threads, and a stop that lets a C-STORE finish
    peers        who may associate (PS3.8 9.3.4 reasons for who may not)
    contexts     which SOP classes and transfer syntaxes are accepted
    pdus         association PDUs, by pynetdicom; answers, by struct
    wire         socket to reused buffer: timeouts, TCP_NODELAY, TCP_QUICKACK
    association  one connection, from A-ASSOCIATE-RQ to its end
    messages     requests and answers within an association
    commands     command sets (PS3.7 Annex E)
    arrival      one object: .part, fsync, kept, and only then success
    keeping      folder sync and commit shared by what arrives together
    identity     Study and SOP Instance UID out of a received data set
    stow         the same by DICOMweb: who may, which requests, answers; stow_parts, part10: what is in them

Nothing here decodes pixels, and nothing a peer writes becomes a path.
"""

from __future__ import annotations

from gateway.database import Database
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive.prefork import Receivers
from gateway.receive.receiver import Receiver
from gateway.settings import Settings
from gateway.spool import Spool

__all__ = ["Receiver", "Receivers", "receiver_of"]


def receiver_of(
    *, settings: Settings, spool: Spool, database: Database, keys: Keys, metrics: Metrics
) -> Receiver | Receivers:
    """Receiving in this process, or in as many as the settings ask for."""
    kind = Receiver if settings.receivers == 1 else Receivers
    return kind(settings=settings, spool=spool, database=database, keys=keys, metrics=metrics)
