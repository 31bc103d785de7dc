"""What `bench.pipeline` is compared with: the same studies from sender to archive without this gateway."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.request import Request, urlopen

import pydicom

from bench.serving.arrival import clear
from bench.serving.studies import store
from tests import peers

SENDERS = 2
ANSWER_S = 120.0

Through = Callable[[Path], None]


@dataclass(frozen=True)
class Peer:
    """`through` takes a study from its folder to the archive, and returns when the archive has it."""

    name: str
    command: str
    through: Through


def send_all(send: Through, studies: Sequence[Path]) -> None:
    """By SENDERS at once. Raises what a sender raised."""
    with ThreadPoolExecutor(SENDERS) as senders:
        for one in [senders.submit(send, study) for study in studies]:
            one.result()


@contextlib.contextmanager
def forwarding(root: Path, archive: peers.Dicom) -> Iterator[list[Peer]]:
    """Those that are installed, running. DCMTK sends everything with TCP_NODELAY, as it does to the gateway."""
    with contextlib.ExitStack() as running:
        relays: SimpleQueue[tuple[Path, peers.Dicom]] = SimpleQueue()
        for number in range(SENDERS):
            folder = root / f"relay-{number}"
            relays.put((folder, running.enter_context(peers.storescp(folder, "--fork", "+B", ae_title="RELAY"))))
        found = [
            Peer("storescu", "storescu -> archive", lambda study: store(study, archive.port, archive.ae_title)),
            Peer("storescp+storescu", "storescu -> storescp, then storescu -> archive", _relay(relays, archive)),
        ]
        if peers.available("orthanc"):
            modalities = {"archive": {"AET": archive.ae_title, "Host": archive.host, "Port": archive.port}}
            server = running.enter_context(peers.Orthanc(root, DicomModalities=modalities))
            plain = "storescu -> Orthanc, then /modalities/archive/store"
            found += [
                Peer("orthanc", plain, _orthanc(server, anonymise=False)),
                Peer("orthanc anonymise", f"{plain} of /studies/ID/anonymize", _orthanc(server, anonymise=True)),
            ]
        yield found


def _relay(relays: SimpleQueue[tuple[Path, peers.Dicom]], archive: peers.Dicom) -> Through:
    """Each sender has a storescp to itself, whose folder is what goes on."""

    def through(study: Path) -> None:
        folder, relay = relays.get()
        store(study, relay.port, relay.ae_title)
        store(folder, archive.port, archive.ae_title)
        clear(folder)
        relays.put((folder, relay))

    return through


def _orthanc(server: peers.OrthancServer, *, anonymise: bool) -> Through:
    def through(study: Path) -> None:
        store(study, server.dicom.port, server.dicom.ae_title)
        (found,) = _ask(server, "/tools/lookup", _uid_of(study))
        leaves = _ask(server, f"/studies/{found['ID']}/anonymize", "{}")["ID"] if anonymise else found["ID"]
        _ask(server, "/modalities/archive/store", leaves)

    return through


def _ask(server: peers.OrthancServer, path: str, body: str) -> Any:
    """Orthanc's answer to a POST."""
    url = f"http://127.0.0.1:{server.http_port}{path}"
    with urlopen(Request(url, data=body.encode(), method="POST"), timeout=ANSWER_S) as answer:
        return json.loads(answer.read())


def _uid_of(study: Path) -> str:
    first = min(study.iterdir())
    return str(pydicom.dcmread(first, specific_tags=["StudyInstanceUID"], stop_before_pixels=True).StudyInstanceUID)
