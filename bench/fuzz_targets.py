"""What is fuzzed: readers of bytes that strangers send, or that a person wrote. Each is the code that the gateway runs.

A target takes bytes and may raise only what it says it raises for bytes that are not good; everything else is a
finding. `INSTRUMENTED` are the modules whose branches lead the fuzzer.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench.fuzz_corpus import (
    FILES,
    MOST_BYTES,
    ROOT,
    dicom_seeds,
    dimse_seeds,
    frame_seeds,
    policy_seeds,
    stow_seeds,
)

Run = Callable[[bytes], None]
INSTRUMENTED = ["gateway", "pynetdicom.pdu", "pynetdicom.pdu_items", "python_multipart"]
PICTURES = 8  # of one file


class LeftBehind(Exception):
    """Something half-written stayed in the spool."""


@dataclass(frozen=True)
class Target:
    """`opened` gives the function under test, over a folder of its own; `seeds` good inputs to begin with."""

    opened: Callable[[Path], Run]
    seeds: Callable[[], list[bytes]]
    most_bytes: int = MOST_BYTES


def _door(folder: Path) -> object:
    """A receiver with all that it writes to, not listening."""
    from gateway.database import Database
    from gateway.observe.metrics import Metrics
    from gateway.pseudonyms import Keys
    from gateway.receive import Receiver
    from gateway.settings import Home, load_settings
    from gateway.spool import Spool

    home = Home(folder / "home")
    home.create()
    spool = Spool(home.spool)
    spool.incoming.mkdir()
    settings = load_settings(
        home.root, allowed_peers=("PACS@*",), min_free_bytes=0, network_timeout_s=5.0, commitment="intake"
    )
    database = Database.in_home(home.database)
    return Receiver(settings=settings, spool=spool, database=database, keys=Keys(bytes(range(32))), metrics=Metrics())


def _require_swept(folder: Path) -> None:
    if any((folder / "home" / "spool" / "incoming").iterdir()):
        raise LeftBehind


def dimse(folder: Path) -> Run:
    """A whole conversation of a sender that hangs up: PDUs, DIMSE messages, data sets (PS3.8 9.3, PS3.7 9)."""
    from gateway.receive.association import Association

    house = _door(folder)._house  # type: ignore[attr-defined]  # noqa: SLF001

    def run(data: bytes) -> None:
        ours, theirs = socket.socketpair()
        with theirs, suppress(BrokenPipeError):
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            theirs.settimeout(5)
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            Association(_Near(fileno=ours.detach()), host="127.0.0.1", house=house).run()
        _require_swept(folder)

    return run


class _Near(socket.socket):
    """One of a pair, which knows nothing of TCP's options."""

    def setsockopt(self, level: int, *rest: object) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *rest)  # type: ignore[call-overload]


def stow(folder: Path) -> Run:
    """A multipart body after its content type, up to the first line end, in chunks of 97 bytes (PS3.18 10.5)."""
    from gateway.receive.pdus import Caller
    from gateway.receive.stow import _boundary
    from gateway.receive.stow_parts import Malformed, Parts

    house = _door(folder)._house  # type: ignore[attr-defined]  # noqa: SLF001

    def run(data: bytes) -> None:
        kind, _, body = data.partition(b"\n")
        boundary = _boundary(kind.decode("latin-1").replace("\r", ""))
        if boundary is None:
            return
        caller = Caller("PACS", "DEID", speaks_version_1=True)
        try:
            parts = Parts(
                boundary,
                caller=caller,
                study_uid="",
                arrivals=house.arrivals,
                contexts=house.contexts,
                metrics=house.metrics,
            )
        except Malformed:
            return
        try:
            for at in range(0, len(body), 97):
                parts.feed(body[at : at + 97])
        except Malformed:
            pass
        finally:
            parts.close()
        _require_swept(folder)

    return run


def dicom(folder: Path) -> Run:
    """Intake's look at an object, the header stage, and the gate's own reading of both."""
    from gateway.app.intake import examine
    from gateway.errors import StudyError
    from gateway.gate.bytescan import scan_file
    from gateway.gate.reading import judging
    from gateway.header import scrub_file
    from gateway.header.repeats import REPEATS
    from gateway.policy import HeaderPolicy
    from gateway.pseudonyms import Pseudonyms

    policy = HeaderPolicy.model_validate({"options": frozenset({"clean-descriptors", "clean-structured-content"})})
    pseudonyms = Pseudonyms(bytes(range(32)))
    source, target = folder / "in", folder / "out"

    def run(data: bytes) -> None:
        source.write_bytes(data)
        target.unlink(missing_ok=True)
        examine(source, "in", bytes(range(32)))
        with suppress(StudyError):
            scrub_file(source, target, policy=policy, pseudonyms=pseudonyms)
        for path in (source, target):
            if path.exists():
                with suppress(StudyError), judging("00001"):
                    scan_file(path, original=path == source)
        REPEATS.clear()

    return run


def frames(folder: Path) -> Run:
    """Pixels of an object as the stages and as the gate decode them, each with its own decoders."""
    from gateway.errors import StudyError
    from gateway.frames.image import EncodedImage
    from gateway.gate.bytescan import scan_file
    from gateway.gate.pixel_places import pictures
    from gateway.gate.reading import judging

    path = folder / "in"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(StudyError), EncodedImage.open(path) as image:
            for frame in range(min(image.frames, PICTURES)):
                image.stored(frame)
                image.shown(frame)
        with suppress(StudyError), judging("00001"):
            for _ in islice(pictures(scan_file(path)), PICTURES):
                pass

    return run


def policy(folder: Path) -> Run:
    """A folder of policies in which one file was changed: the first byte says which."""
    from gateway.app.policy.registry import registry_of
    from gateway.errors import UsageError
    from gateway.policy import load_policies

    registry = registry_of(folder)
    place = folder / "policies"
    place.mkdir()
    originals = {name: (ROOT / "policies" / name).read_bytes() for name in FILES}
    for name, data in originals.items():
        (place / name).write_bytes(data)

    def run(data: bytes) -> None:
        name = FILES[data[0] % len(FILES)] if data else FILES[0]
        (place / name).write_bytes(data[1:])
        try:
            with suppress(UsageError):
                load_policies(place, registry)
        finally:
            (place / name).write_bytes(originals[name])

    return run


TARGETS = {
    "dimse": Target(dimse, dimse_seeds, 4000),
    "dicom": Target(dicom, dicom_seeds),
    "frames": Target(frames, frame_seeds),
    "policy": Target(policy, policy_seeds, 8000),
    "stow": Target(stow, stow_seeds, 8000),
}


@contextmanager
def opened(name: str) -> Iterator[Run]:
    """The function under test, over a folder in memory where there is one."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory if memory.is_dir() else None) as folder:
        yield TARGETS[name].opened(Path(folder))
