"""A PACS for tests of back-loads, by pynetdicom: what it has, what it answers, and the faults that a test asks for."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pydicom
from pydicom.dataset import Dataset
from pydicom.uid import ExplicitVRLittleEndian
from pynetdicom import AE, AllStoragePresentationContexts, evt
from pynetdicom.sop_class import (
    StudyRootQueryRetrieveInformationModelFind,
    StudyRootQueryRetrieveInformationModelMove,
)


@dataclass
class Pacs:
    """`asked` holds the queries of C-FIND, `moved` the Study Instance UIDs of C-MOVE, as often as they came."""

    port: int = 0
    studies: dict[str, list[pydicom.Dataset]] = field(default_factory=dict)
    asked: list[Dataset] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"dicom://PACS@127.0.0.1:{self.port}"


@contextlib.contextmanager
def pacs(
    datasets: Sequence[pydicom.Dataset],
    send_to: Callable[[], int],
    *,
    find: Callable[[Dataset], Iterator[Any]] | None = None,
    move: Callable[[str], Iterator[Any]] | None = None,
    keys: Sequence[str] = ("AccessionNumber", "PatientID", "StudyInstanceUID"),
    knows: Sequence[str] = ("DEID",),
    takes_s: float = 0.0,
    port: int = 0,
) -> Iterator[Pacs]:
    """`keys`: those that it matches by; `send_to`: the port it has for the AE titles that it `knows`; `find` and `move`
    take the place of its own answers.
    """
    here = Pacs()
    for ds in datasets:
        here.studies.setdefault(str(ds.StudyInstanceUID), []).append(ds)

    def do_find(event: Any) -> Iterator[Any]:
        query = event.identifier
        with here.lock:
            here.asked.append(query)
        if find is not None:
            yield from find(query)
            return
        for uid, objects in here.studies.items():
            first = objects[0]
            if all(not query.get(key) or str(query.get(key)) == str(first.get(key)) for key in keys):
                answer = Dataset()
                answer.QueryRetrieveLevel = "STUDY"
                if "SpecificCharacterSet" in query:
                    answer.SpecificCharacterSet = query.SpecificCharacterSet
                for key in ("AccessionNumber", "PatientID", "StudyDate"):
                    if key in query:
                        setattr(answer, key, first.get(key, ""))
                answer.StudyInstanceUID = uid
                answer.NumberOfStudyRelatedInstances = str(len(objects))
                yield 0xFF00, answer

    def do_move(event: Any) -> Iterator[Any]:
        uid = str(event.identifier.StudyInstanceUID)
        with here.lock:
            here.moved.append(uid)
            here.at_once += 1
            here.most_at_once = max(here.most_at_once, here.at_once)
        try:
            if move is not None:
                yield from move(uid)
                return
            if event.move_destination not in knows:
                yield None, None
                return
            time.sleep(takes_s)
            objects = here.studies.get(uid, [])
            yield "127.0.0.1", send_to(), {"ae_title": event.move_destination}
            yield len(objects)
            for ds in objects:
                yield 0xFF00, ds
        finally:
            with here.lock:
                here.at_once -= 1

    ae = AE(ae_title="PACS")
    ae.add_supported_context(StudyRootQueryRetrieveInformationModelFind)
    ae.add_supported_context(StudyRootQueryRetrieveInformationModelMove)
    for context in AllStoragePresentationContexts[:120]:
        ae.add_requested_context(str(context.abstract_syntax), ExplicitVRLittleEndian)
    handlers = [(evt.EVT_C_FIND, do_find), (evt.EVT_C_MOVE, do_move)]
    server = ae.start_server(("127.0.0.1", port), block=False, evt_handlers=handlers)
    assert server is not None
    here.port = server.server_address[1]
    try:
        yield here
    finally:
        server.shutdown()
