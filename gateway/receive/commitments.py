"""What becomes of a request for storage commitment: kept until it is answered, then answered once.

When it is answered is the site's choice (DEID_COMMITMENT): `intake`, once an instance is on our disk, or `decision`,
once its study was sent, or a person decided otherwise. Requests hold the sender's UIDs, so they lie in the spool.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gateway.database import Database
from gateway.durable import make_folder, writing
from gateway.observe import log
from gateway.pseudonyms import Keys
from gateway.receive import commands, commitment
from gateway.receive.commitment import Asked, NoRequest
from gateway.settings import Settings
from gateway.spool import Spool
from gateway.study import FINAL_STATES, State

INVALID_ARGUMENT = 0x0115
OFF, INTAKE = "off", "intake"


class Commitments:
    """Shared by all associations, and by the thread that reports."""

    def __init__(self, *, settings: Settings, spool: Spool, database: Database, keys: Keys) -> None:
        self.when = settings.commitment
        self._folder = spool.commitments
        self._database = database
        self._keys = keys
        self._addresses = dict(_address(peer) for peer in settings.commitment_peers)

    def address_of(self, title: str) -> tuple[str, int] | None:
        """Host and port where reports for an AE title go."""
        return self._addresses.get(title)

    def take(self, calling: str, data: bytes, syntax: str) -> tuple[int, Asked | None]:
        """The status of an N-ACTION and, when it must be reported on this very association, the request.

        With an address for the sender the request is kept, on disk before its success. Raises OSError.
        """
        try:
            asked = commitment.read_asked(data, syntax)
        except NoRequest:
            return INVALID_ARGUMENT, None
        if self.address_of(calling) is None:
            return (commands.SUCCESS, asked) if self.when == INTAKE else (commands.PROCESSING_FAILURE, None)
        name = hashlib.sha256(json.dumps([calling, asked.transaction_uid]).encode()).hexdigest()
        body = {"peer": calling, "transaction": asked.transaction_uid, "instances": asked.instances}
        with writing(make_folder(self._folder) / f"{name}.json") as out:
            out.write(json.dumps(body).encode())
        return commands.SUCCESS, None

    def heard(self, data: bytes, syntax: str) -> int:
        """The status of an archive's N-EVENT-REPORT about what we sent it. Raises SQLAlchemyError: not noted."""
        try:
            transaction_uid, committed = commitment.read_report(data, syntax)
        except NoRequest:
            return INVALID_ARGUMENT
        return commands.SUCCESS if self._database.answer_promise(transaction_uid, committed) else INVALID_ARGUMENT

    def waiting(self) -> Iterator[tuple[Path, str, Asked]]:
        """Kept requests, the oldest first: the file, whose it is, what it asks."""
        found = self._folder.glob("*.json") if self._folder.is_dir() else ()
        for path in sorted(found, key=lambda one: one.stat().st_mtime_ns):
            try:
                body = json.loads(path.read_bytes())
                instances = tuple((class_uid, instance_uid) for class_uid, instance_uid in body["instances"])
                asked = Asked(body["transaction"], instances)
                peer = str(body["peer"])
            except (ValueError, KeyError, TypeError):  # a damaged one must not keep those behind it from an answer
                log("commitment_damaged", level=logging.ERROR, at=path.name)
                continue
            yield path, peer, asked

    def failures(self, asked: Asked) -> Mapping[str, int] | None:
        """SOP Instance UID -> reason of what is not committed; None while it is not decided."""
        keys = {self._keys.opaque("sop", uid): uid for _, uid in asked.instances}
        taken_in = self._database.taken_in(keys)
        found = {uid: commitment.NO_SUCH_OBJECT for key, uid in keys.items() if key not in taken_in}
        if self.when == INTAKE:  # what was refused, or is past its time, is not here any more
            gone = [keys[key] for key, places in taken_in.items() if not any(here for _, _, here in places)]
            return found | dict.fromkeys(gone, commitment.NO_SUCH_OBJECT)
        fates = {place: self._fate(*place) for places in taken_in.values() for place in _studies(places)}
        for key, places in taken_in.items():
            fate = {fates[place] for place in _studies(places)}
            if None in fate:
                return None
            if True not in fate:
                found[keys[key]] = commitment.PROCESSING_FAILURE
        return found

    def _fate(self, study_key: str, generation: int) -> bool | None:
        """Whether all of a study's targets have it; None while that is open."""
        study = self._database.study(study_key, generation)
        jobs = self._database.jobs_of(study_key, generation)
        if study is None or (not jobs and study.state not in (State.HELD, State.REJECTED, State.REFUSED)):
            return None
        if any(job.state not in FINAL_STATES for job in jobs):
            return None
        return bool(jobs) and all(job.state == State.SENT for job in jobs)


def _studies(places: Iterable[tuple[str, int, bool]]) -> set[tuple[str, int]]:
    return {(study_key, generation) for study_key, generation, _ in places}


def _address(peer: str) -> tuple[str, tuple[str, int]]:
    title, _, place = peer.partition("@")
    host, _, port = place.rpartition(":")
    return title, (host.strip("[]"), int(port))
