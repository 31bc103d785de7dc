"""The senders: DCMTK's as it comes, and one that costs next to nothing."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pydicom import dcmread
from pydicom.data import get_testdata_file
from pydicom.filereader import read_file_meta_info
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

from bench.receiving.receivers import Server
from tests import peers
from tests.receive.raw_peer import RawPeer, p_data, pdv, store_command, uid

SOP = "1.2.826.0.1.3680043.10.999.1{:08d}"
CALLED = "DEID"  # the gateway answers to this one only, the others to any
WAIT_S = 60.0


def write_files(folder: Path, data: bytes, at: int, count: int) -> None:
    meta = b"".join(
        struct.pack("<HH2sH", 2, number, b"UI", len(value)) + value
        for number, value in (
            (0x02, uid(CTImageStorage)),
            (0x03, uid(SOP.format(0))),
            (0x10, uid(ExplicitVRLittleEndian)),
        )
    )
    for number in range(count):
        body, name = bytearray(data), SOP.format(number).encode()
        body[at : at + len(name)] = name
        own = meta.replace(SOP.format(0).encode(), name)
        head = b"\0" * 128 + b"DICM" + struct.pack("<HH2sHI", 2, 0, b"UL", 4, len(own)) + own
        (folder / f"{number:05d}.dcm").write_bytes(head + bytes(body))


def template(size: int) -> tuple[bytes, int]:
    """The elements of pydicom's CT_small with `size` bytes of pixels, and where the SOP Instance UID is."""
    path = Path(str(get_testdata_file("CT_small.dcm")))
    image = dcmread(path)
    image.SOPInstanceUID = SOP.format(0)
    image.Rows = image.Columns = 1
    image.PixelData = os.urandom(size // 2 * 2)
    target = Path(tempfile.mkdtemp()) / "x.dcm"
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    image.save_as(target)
    data = target.read_bytes()[144 + read_file_meta_info(target).FileMetaInformationGroupLength :]
    shutil.rmtree(target.parent)
    return data, data.index(SOP.format(0).encode())


def light_sender(port: int, data: bytes, at: int, first: int, count: int, gate: object) -> None:
    """One association of `count` objects from number `first`; exits non-zero when one was not taken."""
    command = store_command(SOP.format(0), sop_class=CTImageStorage)
    uid_at = command.index(uid(SOP.format(0)))
    gate.wait(WAIT_S)  # type: ignore[attr-defined]
    with RawPeer(port) as peer:
        accepted = peer.associate([(CTImageStorage, [ExplicitVRLittleEndian])], called=CALLED)
        limits = [i for i in accepted.user_information.user_data if type(i).__name__ == "MaximumLengthSubItem"]
        piece = min(limits[0].maximum_length_received or 131072, 131072) - 6
        pdus = [p_data(pdv(1, command, command=True))]
        starts = range(0, len(data), piece)
        pdus += [p_data(pdv(1, data[s : s + piece], last=s + piece >= len(data))) for s in starts]
        message = bytearray(b"".join(pdus))
        places = (12 + uid_at, len(pdus[0]) + 12 + at)
        for number in range(first, first + count):
            name = SOP.format(number).encode()
            for place in places:
                message[place : place + len(name)] = name
            peer.send(message)
            if peer.status() != 0:
                sys.exit(1)
        peer.release()


def light(server: Server, data: bytes, at: int, *, associations: int, first: int, count: int) -> float:
    """Objects a second over all associations, their negotiation included. Numbers from `first` on."""
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(associations + 1)
    each = count // associations
    senders = [
        context.Process(target=light_sender, args=(server.port, data, at, first + i * each, each, gate))
        for i in range(associations)
    ]
    for sender in senders:
        sender.start()
    gate.wait(WAIT_S)
    began = time.perf_counter()
    for sender in senders:
        sender.join()
        assert sender.exitcode == 0, f"{server.name} did not take everything"
    return each * associations / (time.perf_counter() - began)


def as_shipped(server: Server, files: Path, count: int) -> float:
    """Objects a second by storescu as it comes, one association, its start included."""
    chosen = [str(path) for path in sorted(files.iterdir())[:count]]
    environment = {name: value for name, value in os.environ.items() if name != "TCP_NODELAY"}
    command = [peers.dcmtk("storescu"), "-aet", "PACS", "-aec", CALLED, "127.0.0.1", str(server.port), *chosen]
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return count / (time.perf_counter() - began)


def idle_cpu_percent(server: Server, associations: int = 40, seconds: float = 3.0) -> float:
    """CPU of one core that open, silent associations cost."""
    opened = [RawPeer(server.port) for _ in range(associations)]
    for peer in opened:
        peer.associate(called=CALLED)
    before = server.cpu_s()
    time.sleep(seconds)
    used = server.cpu_s() - before
    for peer in opened:
        peer.socket.close()
    return 100 * used / seconds
