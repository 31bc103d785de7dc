"""What sends in the benchmark, each in processes of its own: this gateway, pynetdicom, DCMTK's tools."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import resource
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pydicom
import pydicom.data
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

from gateway.forward import TransportOptions, forward, open_transport
from gateway.study import Clearance, ClearedInstance, Receipt
from tests import peers

SEAL = b"b" * 32
NODELAY = {"TCP_NODELAY": "1"}


@dataclass(frozen=True)
class Run:
    """What one sender did: seconds of wall clock, CPU of the senders, files that it says were stored."""

    seconds: float
    cpu_s: float
    stored: int


def write_corpus(folder: Path, count: int) -> None:
    """`count` CT images of FILE_BYTES, each with pixels of its own, Explicit VR Little Endian."""
    folder.mkdir()
    image = pydicom.dcmread(pydicom.data.get_testdata_file("CT_small.dcm"))
    del image[0xFFFC, 0xFFFC]
    image.Rows = image.Columns = 416
    noise = random.Random(folder.name)
    for number in range(count):
        image.PixelData = noise.randbytes(2 * 416 * 416)
        image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = generate_uid(prefix="2.25.")
        image.save_as(folder / f"{number:04d}.dcm")


def sealed(paths: list[Path]) -> Clearance:
    """A clearance of the files as they lie."""

    def one(path: Path) -> ClearedInstance:
        file = path.read_bytes()
        meta = pydicom.filereader.read_file_meta_info(path)
        data_set = file[144 + meta.FileMetaInformationGroupLength :]
        return ClearedInstance(
            name=path.stem,
            sop_class_uid=str(meta.MediaStorageSOPClassUID),
            sop_instance_uid=str(meta.MediaStorageSOPInstanceUID),
            transfer_syntax_uid=str(meta.TransferSyntaxUID),
            sha256_dataset=hashlib.sha256(data_set).hexdigest(),
            sha256_file=hashlib.sha256(file).hexdigest(),
            size_bytes=len(file),
        )

    return Clearance("j" * 24, "0" * 64, "bench", "gate", (), (), tuple(map(one, paths))).sealed(SEAL)


def send_ours(url: str, paths: list[Path], start: Callable[[], None]) -> int:
    clearance = sealed(paths)
    transport = open_transport(url, TransportOptions())
    receipts: list[Receipt] = []
    start()
    forward(
        clearance,
        {path.stem: path for path in paths},
        seal_key=SEAL,
        transport=transport,
        done=frozenset(),
        on_receipt=receipts.append,
    )
    return sum(receipt.kind == "success" for receipt in receipts)


def _send_pynetdicom(url: str, paths: list[Path], start: Callable[[], None], *, chunked: bool) -> int:
    from pynetdicom import AE, _config, evt
    from pynetdicom.sop_class import CTImageStorage  # type: ignore[attr-defined]

    _config.STORE_SEND_CHUNKED_DATASET = chunked
    entity = AE()
    entity.add_requested_context(CTImageStorage, ExplicitVRLittleEndian)

    def no_delay(event: evt.Event) -> None:
        event.assoc.dul.socket.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    host, port = url.partition("@")[2].split(":")
    start()
    association = entity.associate(host, int(port), evt_handlers=[(evt.EVT_CONN_OPEN, no_delay)])
    stored = 0
    for path in paths:
        if association.is_established:  # its chunked sender loses associations under load
            status = association.send_c_store(path if chunked else pydicom.dcmread(path))
            stored += "Status" in status and status.Status == 0
    association.release()
    return stored


def send_pynetdicom_dataset(url: str, paths: list[Path], start: Callable[[], None]) -> int:
    return _send_pynetdicom(url, paths, start, chunked=False)


def send_pynetdicom_chunked(url: str, paths: list[Path], start: Callable[[], None]) -> int:
    return _send_pynetdicom(url, paths, start, chunked=True)


PYTHON = {
    "gateway": send_ours,
    "pynetdicom data set": send_pynetdicom_dataset,
    "pynetdicom chunked": send_pynetdicom_chunked,
}
DCMTK = {"storescu": ["storescu", "-pdu", "131072"], "dcmsend": ["dcmsend"]}


def _child(
    sender: str, url: str, paths: list[Path], barrier: Barrier, results: multiprocessing.Queue[tuple[float, ...]]
) -> None:
    began: list[float] = []

    def start() -> None:
        barrier.wait()
        began.extend((time.monotonic(), time.process_time()))

    stored = PYTHON[sender](url, paths, start)
    results.put((began[0], time.monotonic(), time.process_time() - began[1], stored))


def run_python(sender: str, url: str, folders: list[Path], count: int) -> Run:
    """One process for each association; timed from when all are ready until the last is done."""
    spawn = multiprocessing.get_context("spawn")
    barrier, results = spawn.Barrier(len(folders)), spawn.Queue()
    children = [
        spawn.Process(target=_child, args=(sender, url, sorted(folder.iterdir())[:count], barrier, results))
        for folder in folders
    ]
    for child in children:
        child.start()
    done = [results.get(timeout=300) for _ in children]
    for child in children:
        child.join()
    return Run(max(d[1] for d in done) - min(d[0] for d in done), sum(d[2] for d in done), sum(d[3] for d in done))


def run_dcmtk(sender: str, url: str, folders: list[Path], *, nodelay: bool) -> Run:
    """One process for each association, less what the same takes for one file each."""
    host, port = url.partition("@")[2].split(":")
    tool, *options = DCMTK[sender]

    def timed(what: list[list[str]]) -> tuple[float, float]:
        env = {**os.environ, **(NODELAY if nodelay else {})}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        running = [
            subprocess.Popen([peers.dcmtk(tool), *options, host, port, *w], env=env, stdout=subprocess.DEVNULL)
            for w in what
        ]
        assert [process.wait() for process in running] == [0] * len(what)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    one = timed([[str(min(folder.iterdir()))] for folder in folders])
    everything = timed([["+sd", str(folder)] for folder in folders])
    count = sum(len(list(folder.iterdir())) for folder in folders)
    return Run(everything[0] - one[0], everything[1] - one[1], count - len(folders))
