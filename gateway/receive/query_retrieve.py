"""Query and retrieve as SCU (PS3.4 Annex C): which studies a PACS has, and that it sends one of them here.

C-MOVE has it send to our own port; C-GET brings the objects over the same connection, into the spool like all others
(one object of it is in memory at a time; the SOP classes in common use, no video). By pynetdicom: a few messages a
study, so that its pace does not matter here. What a PACS may leave open has an end: a silence, a C-MOVE that tells
of no progress, a C-FIND that never stops.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydicom import uid
from pydicom.dataset import Dataset
from pynetdicom import AE, StoragePresentationContexts, _config, build_role, evt
from pynetdicom.association import Association
from pynetdicom.sop_class import (  # type: ignore[attr-defined]
    StudyRootQueryRetrieveInformationModelFind,
    StudyRootQueryRetrieveInformationModelGet,
    StudyRootQueryRetrieveInformationModelMove,
)

from gateway.errors import EnvironmentFault, GatewayError
from gateway.policy.sources import GET, Source
from gateway.receive import commands
from gateway.receive.arrival import Arrival, Arrivals
from gateway.receive.commands import Command
from gateway.receive.pdus import Caller
from gateway.tls import client_context

MATCHES_MAX = 10_000  # of one C-FIND: a list asks for people and accessions, not for an archive
STALLED_PAUSES = 5.0  # silences of the longest kind without progress, after which a C-MOVE is given up
CONTEXTS_MAX = 127  # beside that of C-GET itself
# Of a C-GET, where each is offered for each SOP class: more of them make a request that archives do not read.
GET_SYNTAXES = (
    uid.ExplicitVRLittleEndian,
    uid.ImplicitVRLittleEndian,
    uid.JPEGLosslessSV1,
    uid.JPEGLSLossless,
    uid.JPEG2000Lossless,
    uid.RLELossless,
    uid.JPEGBaseline8Bit,
    uid.JPEGExtended12Bit,
    uid.JPEGLSNearLossless,
    uid.JPEG2000,
    uid.HTJ2KLossless,
)
GET_CLASSES = tuple(str(one.abstract_syntax) for one in StoragePresentationContexts[:CONTEXTS_MAX])
PENDING = frozenset({0xFF00, 0xFF01})
DESTINATION_UNKNOWN = 0xA801
_URL = re.compile(r"dicom(?P<tls>-tls)?://(?P<title>.{1,16})@(?P<host>\[[^\]]+\]|[^@:]+):(?P<port>[0-9]+)")
_READ = ("StudyInstanceUID", "NumberOfStudyRelatedInstances")
_UID = re.compile(r"[0-9]+(\.[0-9]+)*")


class NotReached(GatewayError):
    """There was no association, or it was lost before there was an answer: the PACS's trouble, the network's, or that
    of our TLS files. Its text is ours.
    """


class NotGiven(GatewayError):
    """The PACS answered, and the answer is no. `reason` is a code of ours, `status` that of DIMSE, -1 without one."""

    def __init__(self, reason: str, status: int = -1) -> None:
        self.reason = reason
        self.status = status
        super().__init__(f"{reason} (status {status:04X})" if status >= 0 else reason)


@dataclass(frozen=True, slots=True)
class Match:
    """A study that a PACS has. `instances`: how many, 0 when it does not say."""

    study_instance_uid: str
    instances: int


@dataclass(frozen=True, slots=True)
class Retrieved:
    """How a retrieval ended: sub-operations that were done (with or without a warning), and that failed."""

    done: int
    failed: int


class Pacs:
    """One PACS, one call at a time. Every call is an association of its own. Raises NotReached or NotGiven."""

    def __init__(self, source: Source, *, ae_title: str, timeout_s: float, arrivals: Arrivals) -> None:
        form = _URL.fullmatch(source.url)
        assert form is not None, "the policies folder was checked"  # noqa: S101
        self._source, self._ae_title, self._timeout_s = source, ae_title, timeout_s
        self._arrivals = arrivals
        self._title, self._host, self._port = form["title"], form["host"].strip("[]"), int(form["port"])
        self._secure = bool(form["tls"])
        self._association_open: Association | None = None
        # By default it would hand identifiers of queries to the log.
        _config.LOG_REQUEST_IDENTIFIERS = _config.LOG_RESPONSE_IDENTIFIERS = False

    def find(self, keys: Mapping[str, str]) -> list[Match]:
        """Studies that match all of `keys` (keyword -> value), each once."""
        query = Dataset()
        query.QueryRetrieveLevel = "STUDY"
        for keyword in (*_READ, *keys):
            setattr(query, keyword, keys.get(keyword, ""))
        if not all(value.isascii() for value in keys.values()):
            query.SpecificCharacterSet = "ISO_IR 192"  # without it such signs would be sent as "?", which matches any
        model, found = StudyRootQueryRetrieveInformationModelFind, dict[str, Match]()
        with self._association([model]) as association:
            for status, answer in association.send_c_find(query, model):
                code = _status_of(status)
                if code in PENDING:
                    match = _match_of(answer, keys)
                    found[match.study_instance_uid] = match
                    if len(found) > MATCHES_MAX:
                        association.abort()
                        raise NotGiven("too_many_matches")
                elif code != commands.SUCCESS:
                    raise NotGiven("find_refused", code)
        return list(found.values())

    def retrieve(self, study_instance_uid: str) -> Retrieved:
        """Have a study sent here; the PACS's own count of it. A warning (B000) tells that something failed."""
        query = Dataset()
        query.QueryRetrieveLevel, query.StudyInstanceUID = "STUDY", study_instance_uid
        if self._source.retrieve == GET:
            model = StudyRootQueryRetrieveInformationModelGet
            with self._association([model], storage=True) as association:
                return self._followed(association, association.send_c_get(query, model))
        model = StudyRootQueryRetrieveInformationModelMove
        with self._association([model]) as association:
            to = self._source.move_to or self._ae_title
            return self._followed(association, association.send_c_move(query, to, model))

    def _followed(self, association: Association, answers: Iterable[tuple[Dataset, Any]]) -> Retrieved:
        """The end of a retrieval whose answers come one by one, the last with the counts."""
        before, moved_at = (-1, -1), time.monotonic()
        for status, _ in answers:
            code, counts = _status_of(status), _counts_of(status)
            if code not in PENDING:
                if code in (commands.SUCCESS, 0xB000):
                    return Retrieved(*counts)
                raise NotGiven("destination_unknown" if code == DESTINATION_UNKNOWN else "retrieve_refused", code)
            if counts != before:
                before, moved_at = counts, time.monotonic()
            if time.monotonic() - moved_at > STALLED_PAUSES * self._timeout_s:
                association.abort()
                raise NotGiven("stalled")
        raise NotReached("no answer")

    def abort(self) -> None:
        """From another thread: break off what is under way."""
        association = self._association_open
        if association is not None and association.is_established:
            association.abort()

    @contextmanager
    def _association(self, models: list[str], *, storage: bool = False) -> Iterator[Association]:
        entity = AE(self._ae_title)
        entity.acse_timeout = entity.dimse_timeout = entity.network_timeout = self._timeout_s
        entity.connection_timeout = self._timeout_s
        for model in models:
            entity.add_requested_context(model)
        classes = GET_CLASSES if storage else ()
        for one in classes:
            entity.add_requested_context(one, list(GET_SYNTAXES))
        tls_args = None
        if self._secure:
            try:
                context = client_context(self._source.access.tls)
            except EnvironmentFault as error:  # ours to mend, and no entry is to blame
                raise NotReached(str(error)) from None
            tls_args = (context, self._source.access.server_name or self._host)
        association = entity.associate(
            self._host,
            self._port,
            ae_title=self._title,
            ext_neg=[build_role(one, scp_role=True) for one in classes],
            evt_handlers=[(evt.EVT_C_STORE, self._store)] if storage else [],
            tls_args=tls_args,
        )
        if not association.is_established:
            raise NotReached("no association")
        self._association_open = association
        try:
            yield association
        except ValueError:  # no context for it: it speaks no such model
            raise NotGiven("model_refused") from None
        finally:
            self._association_open = None
            if association.is_established:
                association.release()

    def _store(self, event: Any) -> int:
        """A C-STORE of a C-GET, kept like one that a PACS sends by itself."""
        request = event.request
        command = Command(
            commands.C_STORE_RQ,
            int(request.MessageID),
            has_data_set=True,
            class_uid=str(request.AffectedSOPClassUID),
            instance_uid=str(request.AffectedSOPInstanceUID),
        )
        caller = Caller(self._title, self._source.move_to or self._ae_title, speaks_version_1=True)
        arrival = Arrival(self._arrivals, command=command, caller=caller, syntax=str(event.context.transfer_syntax))
        arrival.write(request.DataSet.getbuffer())
        return arrival.finish()


def _status_of(status: Dataset) -> int:
    """Raises NotReached for the empty answer that stands for a lost association."""
    if "Status" not in status:
        raise NotReached("no answer")
    return int(status.Status)


def _counts_of(status: Dataset) -> tuple[int, int]:
    numbers = [int(status.get(f"NumberOf{kind}Suboperations", 0) or 0) for kind in ("Completed", "Warning", "Failed")]
    return numbers[0] + numbers[1], numbers[2]


def _match_of(answer: Dataset | None, keys: Mapping[str, str]) -> Match:
    """Raises NotGiven for an answer that names no study, or one that was not asked for: a PACS that does not know a key
    passes over it (PS3.4 C.2.2.1.3), and then gives all it has.
    """
    dataset = answer if answer is not None else Dataset()
    told = {keyword: str(dataset.get(keyword) or "").strip(" \0") for keyword in (*_READ, *keys)}
    study, number = told["StudyInstanceUID"], told["NumberOfStudyRelatedInstances"]
    if (
        not _UID.fullmatch(study)
        or len(study) > 64
        or not all(_fits(word, told[word], asked) for word, asked in keys.items())
    ):
        raise NotGiven("find_unusable")
    return Match(study, int(number) if number.isdigit() and len(number) < 10 else 0)


def _fits(keyword: str, told: str, asked: str) -> bool:
    """Whether a value is the one that was asked for, or a date in the range (PS3.4 C.2.2.2.5)."""
    if keyword != "StudyDate":  # "20200101-20201231" may be a number of a patient, too
        return told == asked
    first, _, last = asked.partition("-")
    return (first or "0") <= told <= (last or "9")
