"""The receivers that are compared, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import peers


@dataclass
class Server:
    """A receiver under test. `pid` is the process whose CPU and memory are counted, children included."""

    name: str
    port: int
    pid: int
    store: Path
    command: str

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def peak_rss_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def clear(self) -> int:
        """Remove what arrived; how many objects it was. Orthanc keeps an index of its files: it keeps them."""
        if self.name == "orthanc":
            return 0
        files = [path for path in self.store.rglob("*") if path.is_file() and not path.name.endswith(".part")]
        for path in files:
            path.unlink()
        return len(files)


def serve(kind: str, folder: Path) -> None:
    """The server process for `gateway` and `pynetdicom`: prints its port, serves until its input ends."""
    if kind == "gateway":
        from gateway.database import Database
        from gateway.observe import Metrics
        from gateway.pseudonyms import Keys
        from gateway.receive import Receiver
        from gateway.settings import Home, load_settings
        from gateway.spool import Spool

        home = Home(folder)
        home.create()
        settings = load_settings(folder, dicom_port=0, allowed_peers="PACS@127.0.0.1", min_free_bytes=0)
        database = Database.in_home(home.database)
        spool, keys = Spool(home.spool), Keys(os.urandom(32))
        receiver = Receiver(settings=settings, spool=spool, database=database, keys=keys, metrics=Metrics())
        receiver.start()
        print(receiver.port, flush=True)
        sys.stdin.read()
        receiver.stop()
        return
    from pynetdicom import AE, AllStoragePresentationContexts, evt

    def keep(event: evt.Event) -> int:
        image = event.dataset
        image.file_meta = event.file_meta
        image.save_as(folder / f"{image.SOPInstanceUID}.dcm", enforce_file_format=True)
        return 0x0000

    entity = AE("DEID")
    entity.maximum_associations = 50
    entity.supported_contexts = AllStoragePresentationContexts
    running = entity.start_server(("127.0.0.1", 0), block=False, evt_handlers=[(evt.EVT_C_STORE, keep)])
    print(running.server_address[1], flush=True)
    sys.stdin.read()
    running.shutdown()


@contextlib.contextmanager
def python_server(kind: str, root: Path) -> Iterator[Server]:
    folder = root / kind
    folder.mkdir()
    command = [sys.executable, "-m", "bench.receive", "serve", kind, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield Server(kind, port, process.pid, folder / "spool" if kind == "gateway" else folder, f"serve {kind}")
        process.stdin.close()


@contextlib.contextmanager
def storescp(name: str, root: Path, *options: str, nodelay: bool) -> Iterator[Server]:
    folder = root / f"{name.replace(' ', '_')}{'' if nodelay else '_shipped'}"
    folder.mkdir()
    chosen: list[int] = []

    def command(ports: list[int]) -> list[str]:
        chosen[:] = ports
        return [peers.dcmtk("storescp"), *options, "-od", str(folder), str(ports[0])]

    env = {"TCP_NODELAY": "1"} if nodelay else {}
    with peers.starting(1, command, lambda ports: peers.listening(ports[0]), root / f"{folder.name}.log", env=env):
        yield Server(name, chosen[0], listening_pid(chosen[0]), folder, " ".join(["storescp", *options]))


@contextlib.contextmanager
def orthanc(root: Path, *, nodelay: bool) -> Iterator[Server]:
    """Orthanc with the settings of tests/peers.py."""
    with peers.Orthanc(root, nodelay=nodelay) as running:
        port = running.dicom.port
        yield Server("orthanc", port, listening_pid(port), root, "Orthanc (tests/peers.py)")


def listening_pid(port: int) -> int:
    """Our child that listens on `port`."""
    wanted = {
        line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if f":{port:04X} " in line[:24]
    }
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if str(entry.readlink()) in {f"socket:[{inode}]" for inode in wanted}:
                return int(entry.parts[2])
    raise AssertionError(f"nobody listens on {port}")
