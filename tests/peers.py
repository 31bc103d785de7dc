"""Real peers for tests: DCMTK's tools, Orthanc, PostgreSQL, Prometheus; on loopback, on free ports, in temporary
folders.

A missing peer skips its test with a reason that is seen (`need`); in CI it fails. Whatever is started here ends with
its `with` block, and with the process that started it, even when that one is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.processes import end, free_port, listening, spawn, starting, wait_until

__all__ = [
    "Dicom",
    "Orthanc",
    "OrthancServer",
    "Postgres",
    "available",
    "dcmtk",
    "end",
    "free_port",
    "listening",
    "need",
    "orthanc_dicomweb",
    "prometheus",
    "spawn",
    "starting",
    "storescp",
    "wait_until",
]

PACKAGES = {
    "dcmtk": "dcmtk",
    "orthanc": "orthanc",
    "orthanc-dicomweb": "orthanc-dicomweb",
    "postgres": "postgresql",
    "prometheus": "prometheus",
}
DICOMWEB_PLUGIN = Path("/usr/share/orthanc/plugins/libOrthancDicomWeb.so")


def _program(name: str, *folders: str) -> str | None:
    """Full path of a program. The folder of our own virtual environment is left out: pynetdicom installs a storescu."""
    own = Path(sys.prefix).resolve()
    path = [f for f in os.environ.get("PATH", "").split(os.pathsep) if f and own not in Path(f).resolve().parents]
    return shutil.which(name, path=os.pathsep.join([*folders, *path, "/usr/bin", "/usr/sbin", "/usr/local/bin"]))


def _postgres_folder() -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3].split(".")[0]))
    if found:
        return str(found[-1].parent)
    initdb = _program("initdb")
    return str(Path(initdb).resolve().parent) if initdb else None


def available(peer: str) -> bool:
    """Whether `peer` ("dcmtk", "orthanc", "postgres", "prometheus") is installed."""
    found = {
        "dcmtk": lambda: all(_program(tool) for tool in ("storescu", "dcmsend", "storescp", "echoscu", "dcmdump")),
        "orthanc": lambda: _program("Orthanc") is not None,
        "orthanc-dicomweb": DICOMWEB_PLUGIN.exists,
        "postgres": lambda: _postgres_folder() is not None,
        "prometheus": lambda: all(_program(tool) for tool in ("prometheus", "promtool")),
    }
    return bool(found[peer]())


def need(peer: str) -> None:
    """Skip the test, visibly, when `peer` is missing; in CI, where it must be there, fail."""
    if available(peer):
        return
    text = f"{peer} is not installed: apt-get install {PACKAGES[peer]}"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def dcmtk(name: str) -> str:
    """Path of one of DCMTK's tools: storescu, dcmsend, storescp, echoscu, dcmdump … Skips when missing."""
    need("dcmtk")
    path = _program(name)
    assert path is not None, f"dcmtk is there, {name} is not"
    return path


def prometheus(name: str) -> str:
    """Path of `prometheus` or `promtool`. Skips when missing."""
    need("prometheus")
    path = _program(name)
    assert path is not None, f"Prometheus is there, {name} is not"
    return path


class Dicom(NamedTuple):
    """Where a storage SCP listens."""

    host: str
    port: int
    ae_title: str

    @property
    def url(self) -> str:
        return f"dicom://{self.ae_title}@{self.host}:{self.port}"


@contextlib.contextmanager
def storescp(folder: Path, *options: str, ae_title: str = "STORESCP", nodelay: bool = True) -> Iterator[Dicom]:
    """DCMTK's storage SCP writing to `folder`; "+B" among `options` keeps data sets byte for byte. Without `nodelay` it
    runs as shipped, with Nagle's algorithm on."""
    tool = dcmtk("storescp")
    folder.mkdir(parents=True, exist_ok=True)

    def command(ports: Sequence[int]) -> list[str]:
        return [tool, "-aet", ae_title, "-od", str(folder), *options, str(ports[0])]

    log = folder.parent / f"{folder.name}.storescp.log"
    env = {"TCP_NODELAY": "1"} if nodelay else {}
    with starting(1, command, lambda ports: listening(ports[0]), log, env=env) as (port,):
        yield Dicom("127.0.0.1", port, ae_title)


@dataclass(frozen=True)
class OrthancServer:
    """A running Orthanc."""

    dicom: Dicom
    http_port: int

    def get(self, path: str) -> bytes:
        """Body of GET `path`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=30) as answer:
            return bytes(answer.read())

    def post(self, path: str, body: bytes) -> dict[str, object]:
        """The answer to POST `path`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", data=body, timeout=60) as answer:
            return dict(json.loads(answer.read()))

    def put(self, path: str, body: object) -> None:
        """PUT `body` as JSON."""
        url = f"http://127.0.0.1:{self.http_port}{path}"
        request = urllib.request.Request(url, data=json.dumps(body).encode(), method="PUT")
        urllib.request.urlopen(request, timeout=30).close()

    def instances(self) -> list[str]:
        """Orthanc's ids of all stored instances."""
        return list(json.loads(self.get("/instances")))

    def file(self, instance: str) -> bytes:
        """The DICOM file of one instance as Orthanc stored it; its file meta is Orthanc's own."""
        return self.get(f"/instances/{instance}/file")

    def files_by_sop_uid(self) -> dict[str, bytes]:
        """Every stored file by its SOP Instance UID."""
        tags = {i: json.loads(self.get(f"/instances/{i}"))["MainDicomTags"] for i in self.instances()}
        return {tag["SOPInstanceUID"]: self.file(instance) for instance, tag in tags.items()}

    def ready(self) -> bool:
        try:
            self.get("/system")
        except (OSError, urllib.error.URLError):
            return False
        return listening(self.dicom.port)


def orthanc_dicomweb() -> str:
    """Path of Orthanc's DICOMweb plugin. Skips when missing."""
    need("orthanc-dicomweb")
    return str(DICOMWEB_PLUGIN)


@contextlib.contextmanager
def Orthanc(folder: Path | None = None, *, nodelay: bool = True, **options: object) -> Iterator[OrthancServer]:
    """Orthanc with an empty store that takes every peer, SOP class and syntax. `options` override its config.

    `nodelay` False leaves Nagle on, as it is shipped.
    """
    need("orthanc")
    program = _program("Orthanc")
    assert program is not None
    root = Path(tempfile.mkdtemp(prefix="orthanc-", dir=folder))
    config = root / "orthanc.json"

    def command(ports: Sequence[int]) -> list[str]:
        settings: dict[str, object] = {
            "Name": "test archive",
            "StorageDirectory": str(root / "store"),
            "IndexDirectory": str(root / "index"),
            "StorageCompression": False,
            "Plugins": [],
            "HttpPort": ports[1],
            "RemoteAccessAllowed": False,
            "AuthenticationEnabled": False,
            "HttpThreadsCount": 4,
            "DicomServerEnabled": True,
            "DicomAet": "ORTHANC",
            "DicomPort": ports[0],
            "DicomCheckCalledAet": False,
            "DicomCheckModalityHost": False,
            "DicomAlwaysAllowEcho": True,
            "DicomAlwaysAllowStore": True,
            "AcceptedTransferSyntaxes": ["*"],
            "UnknownSopClassAccepted": True,
            "OverwriteInstances": True,
            "StoreMD5ForAttachments": False,
        }
        config.write_text(json.dumps({**settings, **options}))
        return [program, str(config)]

    def server(ports: Sequence[int]) -> OrthancServer:
        return OrthancServer(Dicom("127.0.0.1", ports[0], "ORTHANC"), ports[1])

    try:
        env = {"TCP_NODELAY": "1"} if nodelay else {}
        with starting(2, command, lambda ports: server(ports).ready(), root / "orthanc.log", env=env) as ports:
            yield server(ports)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def Postgres() -> Iterator[str]:
    """A fresh PostgreSQL on loopback; gives the SQLAlchemy URL of its empty database `gateway`."""
    need("postgres")
    programs = _postgres_folder()
    assert programs is not None
    user = ("postgres" if _has_user("postgres") else "nobody") if os.geteuid() == 0 else None  # refuses to run as root
    root = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        if user:
            shutil.chown(root, user)
        data = str(root / "data")
        make = [f"{programs}/initdb", "-D", data, "-U", "gateway", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        with open(root / "initdb.log", "wb") as output:
            assert spawn(make, output=output, user=user).wait() == 0, (root / "initdb.log").read_text(errors="replace")

        def command(ports: Sequence[int]) -> list[str]:
            fast = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "shared_buffers=32MB"]
            where = ["-h", "127.0.0.1", "-p", str(ports[0]), "-k", str(root)]
            return [f"{programs}/postgres", "-D", data, *where, *fast]

        def ready(ports: Sequence[int]) -> bool:
            ask = [f"{programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(ports[0]), "-U", "gateway"]
            return subprocess.run(ask, check=False).returncode == 0

        # SIGINT is PostgreSQL's fast shutdown: it does not wait for clients to leave.
        with starting(1, command, ready, root / "postgres.log", user=user, how=signal.SIGINT) as (port,):
            create = [f"{programs}/createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "gateway", "gateway"]
            subprocess.run(create, check=True)
            yield f"postgresql+psycopg://gateway@127.0.0.1:{port}/gateway"
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
