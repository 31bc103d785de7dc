"""DCMTK as sender, as shipped; and what one large object costs in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from pydicom import dcmread
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset
from pydicom.filereader import read_file_meta_info

from tests.peers import dcmtk
from tests.receive.raw_peer import dataset

AS_SHIPPED = {name: value for name, value in os.environ.items() if name != "TCP_NODELAY"}
FILES = ("CT_small.dcm", "MR_small.dcm", "JPEG2000.dcm", "MR_small_RLE.dcm", "JPEG-lossy.dcm", "rtplan.dcm")


def send(tool: str, port: int, *what: str) -> subprocess.CompletedProcess[bytes]:
    command = [dcmtk(tool), "-aet", "PACS", "-aec", "DEID", "127.0.0.1", str(port), *what]
    return subprocess.run(command, env=AS_SHIPPED, capture_output=True, check=False)


@pytest.mark.peer
@pytest.mark.parametrize("tool", ["storescu", "dcmsend"])
def test_objects_of_six_kinds_arrive(door, tool, tmp_path):
    paths = [str(get_testdata_file(name)) for name in FILES]
    options = ["-xf", str(profile(tmp_path / "storescu.cfg")), "All"] if tool == "storescu" else []
    ran = send(tool, door.port, *options, *paths)
    assert ran.returncode == 0, ran.stderr
    assert len(door.kept()) == len(FILES)
    received = {named(image): image for image in map(dcmread, door.kept())}
    for image in map(dcmread, paths):  # DCMTK writes group lengths of its own; values are as they were
        assert received[named(image)].get("PixelData") == image.get("PixelData")


def named(image: Dataset) -> tuple[str, str]:
    """SOP Instance UID and transfer syntax; dcmsend itself turns Implicit into Explicit VR when a peer takes both."""
    syntax = image.file_meta.TransferSyntaxUID
    return image.SOPInstanceUID, str(syntax) if syntax.is_compressed else "uncompressed"


def profile(path: Path) -> Path:
    """A storescu profile that proposes every syntax of FILES in a context of its own."""
    pairs = []
    for name in FILES:
        meta = read_file_meta_info(get_testdata_file(name))
        pairs.append((meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID))
    syntaxes = sorted({syntax for _, syntax in pairs})
    lines = ["[[TransferSyntaxes]]"]
    for index, syntax in enumerate(syntaxes):
        lines += [f"[Syntax{index}]", f"TransferSyntax1 = {syntax}"]
    lines += ["[[PresentationContexts]]", "[Contexts]"]
    for number, (sop_class, syntax) in enumerate(sorted(set(pairs)), 1):
        lines.append(f"PresentationContext{number} = {sop_class}\\Syntax{syntaxes.index(syntax)}")
    lines += ["[[Profiles]]", "[All]", "PresentationContexts = Contexts"]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.peer
def test_echoscu_is_answered(door):
    assert send("echoscu", door.port).returncode == 0


@pytest.mark.peer
@pytest.mark.parametrize("tool", ["storescu", "dcmsend"])
def test_a_sender_with_nagle_on_does_not_wait_for_delayed_acks(door, tool, tmp_path, monkeypatch):
    """performance.md: 50 ms a file against a receiver that leaves its ACKs to the kernel. Best of three runs."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a busy disk is not what is measured here
    image = dcmread(get_testdata_file("CT_small.dcm"))
    for number in range(40):
        image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{number}"
        image.save_as(tmp_path / f"{number}.dcm")
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        assert send(tool, door.port, "+sd", str(tmp_path)).returncode == 0
        seconds.append(time.monotonic() - began)
    assert min(seconds) < 40 * 0.025
    assert len(door.kept()) >= 120


def test_a_300_mb_object_costs_little_memory(tmp_path):
    """cases.md 72: streamed to the spool. In a process of its own, so that its peak is its own."""
    program = textwrap.dedent(
        """
        import os, resource, sys, threading
        from pathlib import Path
        from gateway.database import Database
        from gateway.observe.metrics import Metrics
        from gateway.pseudonyms import Keys
        from gateway.receive import Receiver
        from gateway.settings import Home, load_settings
        from gateway.spool import Spool
        home = Home(Path(sys.argv[1])); home.create()
        settings = load_settings(home.root, dicom_port=0, allowed_peers="PACS@127.0.0.1", min_free_bytes=0)
        receiver = Receiver(settings=settings, spool=Spool(home.spool), database=Database.in_home(home.database),
                            keys=Keys(os.urandom(32)), metrics=Metrics())
        receiver.start()
        print(receiver.port, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
        sys.stdin.readline()
        receiver.stop()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
        """
    )
    from tests.receive.raw_peer import RawPeer, p_data, pdv, store_command

    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "home")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port, before_kib = map(int, server.stdout.readline().split())
        with RawPeer(port) as peer:
            peer.associate()
            peer.send(p_data(pdv(1, store_command(), command=True)))
            peer.send(p_data(pdv(1, dataset() + b"\xe0\x7f\x10\x00" + (300 << 20).to_bytes(4, "little"), last=False)))
            piece = p_data(pdv(1, b"\0" * (1 << 16), last=False)) * 16
            for _ in range(300):
                peer.send(piece)
            peer.send(p_data(pdv(1, b"")))
            assert peer.status() == 0x0000
            peer.release()
        server.stdin.write(b"\n")
        server.stdin.flush()
        after_kib = int(server.stdout.readline())
    (kept,) = (tmp_path / "home" / "spool").rglob("*.dcm")
    assert kept.stat().st_size > 300 << 20
    kept.unlink()
    assert after_kib - before_kib < 16 << 10
