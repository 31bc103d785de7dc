"""Peak memory of the header stage on very large files: native pixels of 3.9 GB, compressed frames of 4.5 GB in all.

    python -m bench.header_memory [--folder /var/tmp]

The files are sparse (synthetic, zeros for pixels), each is scrubbed in a process of its own, and what it writes is
checked and deleted. `peak_mb` is the process's highest resident memory (`ru_maxrss`, mapped files included), `idle_mb`
that of the same process before. The folder needs 10 GB. Results go to bench/results/header_memory.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pydicom
from rich.console import Console
from rich.table import Table

from bench.deid_peers.ours import KEY, header_policy
from bench.header_corpus import write_large
from gateway.header import scrub_file
from gateway.pseudonyms import Pseudonyms

RESULT = Path(__file__).parent / "results" / "header_memory.json"
POLICY = Path(__file__).with_name("midib.yaml")
NATIVE, JPEG = "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.4.90"
GB = 1 << 30
NEEDED_BYTES = 5 * GB


def header_of(folder: Path, syntax: str) -> bytes:
    """A usual header up to Pixel Data."""
    write_large(folder / "one", 1)
    (path,) = (folder / "one").iterdir()
    ds = pydicom.dcmread(path, stop_before_pixels=True)
    ds.file_meta.TransferSyntaxUID = pydicom.uid.UID(syntax)
    ds.save_as(folder / "header", enforce_file_format=True)
    return (folder / "header").read_bytes()


def native(header: bytes, path: Path, size: int) -> None:
    with open(path, "wb") as file:
        file.write(header + b"\xe0\x7f\x10\x00OW\0\0" + struct.pack("<I", size))
        file.truncate(file.tell() + size)


def compressed(header: bytes, path: Path, frames: int, frame_bytes: int) -> None:
    """Encapsulated fragments (PS3.5 A.4) with an empty offset table."""
    with open(path, "wb") as file:
        file.write(header + b"\xe0\x7f\x10\x00OB\0\0\xff\xff\xff\xff" + b"\xfe\xff\x00\xe0\0\0\0\0")
        for _ in range(frames):
            file.write(b"\xfe\xff\x00\xe0" + struct.pack("<I", frame_bytes))
            file.seek(frame_bytes, os.SEEK_CUR)
        file.write(b"\xfe\xff\xdd\xe0\0\0\0\0")


def scrubbing(source: Path, target: Path, answer: object) -> None:
    """In a process of its own: idle and peak resident memory, seconds, CPU seconds."""
    policy, _ = header_policy(POLICY)
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    scrub_file(source, target, policy=policy, pseudonyms=Pseudonyms.of_project(KEY, "bench"))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer.send((idle / 1024, peak / 1024, seconds, cpu))  # type: ignore[attr-defined]


def measured(source: Path, target: Path) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")  # nothing of this process counts
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=scrubbing, args=(source, target, theirs))
    process.start()
    theirs.close()
    idle, peak, seconds, cpu = ours.recv()
    process.join()
    if abs(target.stat().st_size - source.stat().st_size) > 65536:
        raise RuntimeError("the output is not whole")
    with open(source, "rb") as before, open(target, "rb") as after:
        before.seek(-64, os.SEEK_END)
        after.seek(-64, os.SEEK_END)
        if before.read() != after.read():
            raise RuntimeError("the pixels are not those of the source")
    return {
        "bytes": source.stat().st_size,
        "idle_mb": round(idle, 1),
        "peak_mb": round(peak, 1),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
    }


CASES: tuple[tuple[str, str, Callable[[bytes, Path], None]], ...] = (
    ("native, 3.9 GB", NATIVE, partial(native, size=0xFFFFFFFE - (8 << 20))),
    ("compressed, 4.5 GB, 9,000 frames", JPEG, partial(compressed, frames=9_000, frame_bytes=500_000)),
    ("compressed, 4.5 GB, 2,200,000 fragments", JPEG, partial(compressed, frames=2_200_000, frame_bytes=2_046)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="where 5 GB are free")
    asked = parser.parse_args()
    if shutil.disk_usage(asked.folder).free < 2 * NEEDED_BYTES:
        raise SystemExit(f"{asked.folder} has not enough room")
    results = {}
    with tempfile.TemporaryDirectory(prefix="bench-memory-", dir=asked.folder) as name:
        folder = Path(name)
        for number, (title, syntax, make) in enumerate(CASES):
            work = folder / str(number)
            work.mkdir()
            make(header_of(work, syntax), work / "source")
            results[title] = measured(work / "source", work / "target")
            shutil.rmtree(work)
    table = Table("file", "GB", "idle MB", "peak MB", "s", "CPU s")
    for title, row in results.items():
        table.add_row(title, f"{row['bytes'] / GB:.2f}", *(f"{row[key]:,.1f}" for key in list(row)[1:]))
    Console(width=110).print(table)
    report = {"command": "python -m bench.header_memory", "synthetic": True, "figures": results}
    RESULT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
