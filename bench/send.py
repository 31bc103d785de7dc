"""Sending: this gateway's forward() against DCMTK's storescu and dcmsend, and pynetdicom's own senders.

    make bench NAME=send

All send to DCMTK's `storescp --fork +B`, in two regimes: `nodelay` (TCP_NODELAY=1 on both sides, the harder yardstick)
and `shipped` (an archive as it comes, with Nagle's algorithm on). Ours checks the seal, and sha256 of every file and of
its data set, within the measured time; the others check nothing. DCMTK's start-up is taken off by a run with one file.
Figures are medians of interleaved rounds: ratios and CPU a file hold between machines, files/s do not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import platform
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pydicom
import pydicom.data
from pydicom.uid import ExplicitVRLittleEndian, generate_uid
from rich.console import Console
from rich.table import Table

from gateway.forward import TransportOptions, forward, open_transport
from gateway.study import Clearance, ClearedInstance, Receipt
from tests import peers

ROUNDS = 5
FILES = 400  # for each association
SLOW_FILES = 80  # of pynetdicom's own senders
ASSOCIATIONS = (1, 4)
FILE_BYTES = 348_000  # the mean of performance.md's corpus
SEAL = b"b" * 32
RESULT = Path(__file__).parent / "results" / "send.json"
NODELAY = {"TCP_NODELAY": "1"}
MEMORY = Path("/dev/shm")  # so that the archive's disk is not what is measured


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


@contextlib.contextmanager
def archive(root: Path, *, nodelay: bool) -> Iterator[tuple[str, Path]]:
    folder = root / f"archive-{nodelay}"
    with peers.storescp(folder, "--fork", "+B", "-pdu", "131072", nodelay=nodelay) as scp:
        yield scp.url, folder


def measure(root: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Medians over ROUNDS interleaved rounds: sender -> regime -> figure."""
    folders = [root / f"corpus-{number}" for number in range(max(ASSOCIATIONS))]
    for folder in folders:
        write_corpus(folder, FILES)
    few = [root / f"few-{number}" for number in range(max(ASSOCIATIONS))]
    for folder, source in zip(few, folders, strict=True):
        folder.mkdir()
        for path in sorted(source.iterdir())[:24]:
            shutil.copy(path, folder)
    rows: dict[str, dict[str, dict[str, list[float]]]] = {}

    def note(sender: str, regime: str, run: Run, sent: int, arrived: Path) -> None:
        row = rows.setdefault(sender, {}).setdefault(regime, {"files_per_s": [], "cpu_ms_per_file": [], "lost": []})
        row["files_per_s"].append(run.stored / run.seconds)
        row["cpu_ms_per_file"].append(1000 * run.cpu_s / max(1, run.stored))
        there = list(arrived.iterdir())
        row["lost"].append(sent - len(there))
        for path in there:
            path.unlink()

    with archive(root, nodelay=True) as (fast_url, fast), archive(root, nodelay=False) as (shipped_url, shipped):
        for _ in range(ROUNDS):
            for associations in ASSOCIATIONS:
                some, regime = folders[:associations], f"nodelay_{associations}"
                for sender in DCMTK:
                    note(sender, regime, run_dcmtk(sender, fast_url, some, nodelay=True), FILES * associations, fast)
                for sender in PYTHON:
                    count = FILES if sender == "gateway" else SLOW_FILES
                    note(sender, regime, run_python(sender, fast_url, some, count), count * associations, fast)
            for associations in ASSOCIATIONS:
                some, regime = few[:associations], f"shipped_{associations}"
                for sender in DCMTK:
                    note(
                        sender, regime, run_dcmtk(sender, shipped_url, some, nodelay=False), 24 * associations, shipped
                    )
                some = folders[:associations]
                note("gateway", regime, run_python("gateway", shipped_url, some, 200), 200 * associations, shipped)
    return {
        sender: {
            regime: {
                name: float(sum(values)) if name == "lost" else round(statistics.median(values), 3)
                for name, values in figures.items()
            }
            for regime, figures in row.items()
        }
        for sender, row in rows.items()
    }


def main() -> None:
    if not peers.available("dcmtk"):
        sys.exit("this benchmark needs DCMTK: apt-get install dcmtk")
    with tempfile.TemporaryDirectory(prefix="bench-send-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        result = measure(Path(folder))
    regimes = list(result["gateway"])
    table = Table(title=f"files/s (CPU ms each, lost in all), medians of {ROUNDS}; {FILE_BYTES} bytes each")
    for column in ("sender", *regimes):
        table.add_column(column, justify="left" if column == "sender" else "right")
    for sender, row in result.items():
        cells = [
            f"{row[r]['files_per_s']:,.0f} ({row[r]['cpu_ms_per_file']:.2f}, {row[r]['lost']:.0f})" if r in row else ""
            for r in regimes
        ]
        table.add_row(sender, *cells)
    ratios = {
        sender: {
            r: round(result["gateway"][r]["files_per_s"] / row[r]["files_per_s"], 2) for r in row if sender != "gateway"
        }
        for sender, row in result.items()
        if sender != "gateway"
    }
    Console(width=140).print(table)
    Console(width=140).print("gateway over", ratios)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    report = {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "load_average_at_end": os.getloadavg(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip() if commit.returncode == 0 else "",
        "commands": {
            "bench": "make bench NAME=send",
            "archive": "storescp --fork +B -pdu 131072",
            **{sender: " ".join(args) for sender, args in DCMTK.items()},
        },
        "figures": result,
        "gateway_over": ratios,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
