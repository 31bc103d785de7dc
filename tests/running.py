"""A whole gateway for tests: in this process or as a process of its own, on loopback, with policies of the test."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.request import urlopen

import pydicom
import yaml
from peers import free_port
from pydicom.uid import AllTransferSyntaxes
from pynetdicom import AE, AllStoragePresentationContexts, evt

from gateway.app.intake import dataset_offset
from gateway.app.serve import Gateway
from gateway.database import Database, JobRow
from gateway.gate import ASPECTS
from gateway.settings import SHIPPED_POLICIES, Home, load_settings

PACS = "PACS"
MODALITIES = [
    "CT",
    "MR",
    "PT",
    "US",
    "XA",
    "RF",
    "CR",
    "DX",
    "MG",
    "NM",
    "OT",
    "SC",
    "ES",
    "XC",
    "GM",
    "SM",
    "SEG",
    "ECG",
    "RTPLAN",
    "RTSTRUCT",
    "RTDOSE",
    "RTIMAGE",
    "KO",
    "PR",
    "REG",
]
QUICK = {"quiet_s": 1.0, "poll_s": 0.2, "retry_base_s": 0.2, "retry_max_s": 1.0, "min_free_bytes": 0, "workers": 2}


def dataset_sha256(path: Path) -> str:
    """Of the bytes after group 0002: what an archive keeps when it writes a file meta of its own."""
    data = path.read_bytes()
    with open(path, "rb") as file:
        return hashlib.sha256(data[dataset_offset(file) :]).hexdigest()


@dataclass
class Archive:
    """A storage SCP that keeps the sha256 of every data set it was sent, as often as it was sent."""

    port: int = 0
    received: dict[str, list[str]] = field(default_factory=dict)  # SOP Instance UID -> sha256 of each arrival
    lock: Lock = field(default_factory=Lock)

    @property
    def url(self) -> str:
        return f"dicom://ARCHIVE@127.0.0.1:{self.port}"


@contextmanager
def archive(folder: Path | None = None, answer: Callable[[str], int] = lambda _uid: 0x0000) -> Iterator[Archive]:
    """A well-behaved archive; `answer` gives the status for a SOP Instance UID."""
    kept = Archive()

    def store(event: Any) -> int:
        uid = str(event.request.AffectedSOPInstanceUID)
        raw = event.request.DataSet.getvalue()
        status = answer(uid)
        if status in {0x0000, 0xB000, 0xB006, 0xB007}:
            with kept.lock:
                kept.received.setdefault(uid, []).append(hashlib.sha256(raw).hexdigest())
            if folder is not None:
                (folder / f"{uid}.dcm").write_bytes(event.encoded_dataset())
        return status

    ae = AE(ae_title="ARCHIVE")
    for context in AllStoragePresentationContexts:
        ae.add_supported_context(str(context.abstract_syntax), AllTransferSyntaxes)
    server = ae.start_server(("127.0.0.1", 0), block=False, evt_handlers=[(evt.EVT_C_STORE, store)])
    assert server is not None
    kept.port = server.server_address[1]
    try:
        yield kept
    finally:
        server.shutdown()


def policies_for(folder: Path, archive_url: str, *, change: Callable[[Path], None] = lambda _folder: None) -> Path:
    """The shipped policies with another archive, and what `change` does to them."""
    shutil.copytree(SHIPPED_POLICIES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    destinations = yaml.safe_load((folder / "destinations.yaml").read_text())
    destinations["research-archive"] = archive_url
    (folder / "destinations.yaml").write_text(yaml.safe_dump(destinations))
    change(folder)
    return folder


def accept_everything(folder: Path) -> None:
    """Every modality is accepted as not assessed and routed: for tests of what the header and the gate's bytes do."""
    policy = yaml.safe_load((folder / "research-basic.yaml").read_text())
    policy["gate"]["not_assessed"] = [
        {
            "aspects": sorted(ASPECTS - {"header"}),
            "modality": MODALITIES,
            "reason": "a test of headers",
            "approver": "tests",
        }
    ]
    (folder / "research-basic.yaml").write_text(yaml.safe_dump(policy))
    routes = yaml.safe_load((folder / "routes.yaml").read_text())
    routes["routes"] = [
        {
            "name": "everything",
            "when": {"calling_ae": PACS},
            "targets": [{"project": "demo", "policy": "research-basic", "destination": "research-archive"}],
        }
    ]
    (folder / "routes.yaml").write_text(yaml.safe_dump(routes))


@contextmanager
def running(home: Home, policies: Path, **settings: object) -> Iterator[Gateway]:
    """A gateway in this process."""
    values = load_settings(
        home.root,
        **{
            "policies": policies,
            "dicom_port": 0,
            "http_port": 0,
            "allowed_peers": (f"{PACS}@127.0.0.1",),
            **QUICK,
            **settings,
        },
    )
    gateway = Gateway(home, values)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def wait_idle(gateway: Gateway, *, seconds: float = 60.0) -> None:
    """Until nothing waits for the machine. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not gateway.idle():
        assert time.monotonic() < deadline, f"not idle after {seconds} s: {gateway.parts.database.count_states()}"
        time.sleep(0.05)


def the_job(gateway: Gateway, dataset: pydicom.Dataset, generation: int = 1) -> JobRow:
    """The only job of a study generation."""
    key = gateway.parts.keys.opaque("study", str(dataset.StudyInstanceUID))
    (job,) = gateway.parts.database.jobs_of(key, generation)
    return job


def send(dataset: pydicom.Dataset | Path, port: int, *, calling: str = PACS, called: str = "DEID") -> int:
    """C-STORE one object as a PACS would; -1 when the association or the answer did not come."""
    if isinstance(dataset, Path):
        dataset = pydicom.dcmread(dataset)
    scu = AE(ae_title=calling)
    scu.add_requested_context(dataset.SOPClassUID, dataset.file_meta.TransferSyntaxUID)
    association = scu.associate("127.0.0.1", port, ae_title=called)
    if not association.is_established:
        return -1
    try:
        status = association.send_c_store(dataset)
        return int(status.Status) if "Status" in status else -1
    finally:
        association.release()


@dataclass
class GatewayProcess:
    """`deid-gateway serve` as a process of its own, for kills and restarts on the same ports."""

    home: Home
    policies: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    dicom_port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    folder: Path | None = None  # where its code lies; None = here
    process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> None:
        settings = {
            "DEID_HOME": str(self.home.root),
            "DEID_POLICIES": str(self.policies),
            "DEID_DICOM_PORT": str(self.dicom_port),
            "DEID_HTTP_PORT": str(self.http_port),
            "DEID_ALLOWED_PEERS": f"{PACS}@127.0.0.1",
            **{f"DEID_{name.upper()}": str(value) for name, value in QUICK.items()},
            **self.environment,
        }
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DEID_")}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gateway", "serve"],
                env={**clean, **settings},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if wait:
            self.wait_ready()

    @property
    def log(self) -> Path:
        return self.home.root / "serve.log"

    def ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.http_port}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def wait_ready(self, *, seconds: float = 120.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.ready():
            assert self.process is not None
            assert self.process.poll() is None, f"serve ended: {self.log.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"not ready after {seconds} s"
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9 of the gateway process alone; its workers must notice by themselves."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=60)

    def database(self) -> Database:
        return Database.in_home(self.home.database, self.environment.get("DEID_DATABASE_URL", ""))
