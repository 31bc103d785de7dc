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
    """A receiver under test. `pid` is the process whose CPU and memory are counted, with all that descend from it."""

    name: str
    port: int
    pid: int
    store: Path
    command: str

    def cpu_s(self) -> float:
        """Of those that run, and of those that have ended and were waited for."""
        fields = [stat_of(pid) for pid in tree_of(self.pid)]
        return sum(int(ticks) for stat in fields for ticks in stat[11:15]) / os.sysconf("SC_CLK_TCK")

    def peak_rss_mb(self) -> float:
        """Of those that run. Pages that processes share count for each of them."""
        return (
            sum(int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) for pid in tree_of(self.pid))
            / 1024
        )

    def clear(self) -> int:
        """Remove what arrived; how many objects it was. Orthanc keeps an index of its files: it keeps them."""
        if self.name == "orthanc":
            return 0
        files = [path for path in self.store.rglob("*") if path.is_file() and not path.name.endswith(".part")]
        for path in files:
            path.unlink()
        return len(files)


def serve(kind: str, folder: Path, receivers: int) -> None:
    """The server process for `gateway` and `pynetdicom`: prints its port, serves until its input ends."""
    if kind == "gateway":
        from gateway.database import Database
        from gateway.observe.metrics import Metrics
        from gateway.pseudonyms import Keys
        from gateway.receive import receiver_of
        from gateway.settings import Home, load_settings
        from gateway.spool import Spool

        home = Home(folder)
        home.create()
        settings = load_settings(
            folder, dicom_port=0, allowed_peers="PACS@127.0.0.1", min_free_bytes=0, receivers=receivers
        )
        database = Database.in_home(home.database)
        spool, keys = Spool(home.spool), Keys(os.urandom(32))
        receiver = receiver_of(settings=settings, spool=spool, database=database, keys=keys, metrics=Metrics())
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


def stat_of(pid: int) -> list[str]:
    """The fields of proc_pid_stat(5) from the third on; nothing when the process has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return []


def tree_of(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents = {int(path.name): stat_of(int(path.name))[1:2] for path in Path("/proc").glob("[0-9]*")}
    tree = [pid]
    for parent in tree:
        tree += [child for child, of in parents.items() if of == [str(parent)]]
    return tree


@contextlib.contextmanager
def python_server(name: str, root: Path, *, receivers: int = 1) -> Iterator[Server]:
    """`gateway`, with so many receiver processes, or `pynetdicom`."""
    kind, folder = name.partition(" ")[0], root / name.replace(" ", "_")
    folder.mkdir()
    command = [sys.executable, "-m", "bench.receive", "serve", kind, str(folder), str(receivers)]
    with (
        open(root / f"{folder.name}.log", "wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        shown = f"serve, DEID_RECEIVERS={receivers}" if kind == "gateway" else "AE.start_server, decode and save_as"
        yield Server(name, port, process.pid, folder / "spool" if kind == "gateway" else folder, shown)
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


def listening_pids(port: int) -> list[int]:
    """All processes that hold the socket which listens on `port`."""
    wanted = {
        line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if f":{port:04X} " in line[:24]
    }
    found = set()
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if str(entry.readlink()) in {f"socket:[{inode}]" for inode in wanted}:
                found.add(int(entry.parts[2]))
    return sorted(found)


def listening_pid(port: int) -> int:
    """Our child that listens on `port`."""
    found = listening_pids(port)
    assert found, f"nobody listens on {port}"
    return found[0]
