"""Peak memory of defacing and of the gate check on one enhanced MR object of more than 1 GB.

    python -m bench.deface_memory [--folder /var/tmp] [--finer 7]

The object is the template head in voxels of 2 mm / `finer`, 16 bits, uncompressed (`synthetic`). Stage and check run in
a process each. `private_mb` is the highest private memory (RssAnon, sampled), `idle_mb` the same before the work
began; files are mapped, and their pages, which the system takes back when it needs them, are in `resident_mb` (VmHWM)
only. The bound: `BOUND_MB` of private memory above idle, whatever the size. Results go to
bench/results/deface_memory.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
from rich.console import Console
from rich.table import Table

from bench.deface_series import write_enhanced
from gateway.gate.reading import Pair
from gateway.gate.residual_face import ResidualFace
from gateway.pixels.deface import Deface
from gateway.pixels.head_template import head_template
from gateway.pixels.stage import Instance
from gateway.volumes import Volume

RESULT = Path(__file__).parent / "results" / "deface_memory.json"
BOUND_MB = 600.0
SAMPLE_S = 0.05
NOISE = 12  # stored values
SEED = 20261130


def write_large(path: Path, finer: int) -> int:
    """The object, frame by frame; its bytes of pixels."""
    template = head_template()
    slices, rows, columns = (count * finer for count in template.t1.shape)
    affine = template.affine.copy()
    affine[:3, :3] /= finer
    affine[:3, 3] -= template.spacing_mm * (finer - 1) / (2 * finer)
    shape = slices, rows, columns
    write_enhanced(Volume(np.broadcast_to(np.zeros((1, 1, 1), np.float32), shape), affine), path, "MR", pixels=False)
    size, random = 2 * slices * rows * columns, np.random.default_rng(SEED)
    with open(path, "ab") as file:
        file.write(struct.pack("<HH2s2xI", 0x7FE0, 0x0010, b"OW", size))
        for number in range(slices):
            frame = 4 * template.t1[number // finer].astype(np.int16).repeat(finer, 0).repeat(finer, 1)
            frame += random.integers(0, NOISE, frame.shape, np.int16)
            file.write(frame.astype("<u2").tobytes())
    return size


def _status(name: str) -> float:
    """MB of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _watched(work: Callable[[], dict[str, Any]], answer: Any) -> None:
    """In a process of its own."""
    idle, peak, done = _status("RssAnon"), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE_S):
            peak[0] = max(peak[0], _status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.process_time()
    try:
        found = work()
    finally:
        done.set()
        watcher.join()
    memory = {"idle_mb": idle, "private_mb": peak[0], "resident_mb": _status("VmHWM")}
    answer.send(found | memory | {"cpu_seconds": time.process_time() - begin})


def _deface(original: Path, candidate: Path) -> dict[str, Any]:
    stage, group = Deface(), [Instance("0001", original, candidate)]
    work: Any = SimpleNamespace()
    (step,) = stage.apply(group, work, stage.estimate(group, work))
    return dict(step.counts)


def _judge(original: Path, candidate: Path) -> dict[str, Any]:
    policy: Any = SimpleNamespace()
    verdict = ResidualFace().judge([Pair("0001", original, candidate)], policy)
    return {"outcome": str(verdict.outcome)}


def _apart(what: Callable[[Path, Path], dict[str, Any]], original: Path, candidate: Path) -> dict[str, Any]:
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_watched, args=(lambda: what(original, candidate), theirs))
    process.start()
    theirs.close()
    try:
        return dict(mine.recv())
    except EOFError:
        raise SystemExit("the work failed; its own message stands above") from None
    finally:
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="needs three times the object")
    parser.add_argument("--finer", type=int, default=7, help="voxels of the object to one of the template, each way")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        original, candidate = Path(folder) / "original", Path(folder) / "candidate"
        with console.status("writing the object"):
            size = write_large(original, arguments.finer)
            frames = int(pydicom.dcmread(original, stop_before_pixels=True).NumberOfFrames)
            with open(original, "rb") as source, open(candidate, "wb") as target:
                while block := source.read(1 << 24):
                    target.write(block)
        parts = {}
        for name, what in (("deface", _deface), ("residual_face", _judge)):
            with console.status(name):
                parts[name] = _apart(what, original, candidate)
    above = max(part["private_mb"] - part["idle_mb"] for part in parts.values())
    result = {"command": "python -m bench.deface_memory", "pixel_bytes": size, "frames": frames, **parts}
    result |= {"private_mb_above_idle": above, "bound_mb": BOUND_MB, "within_bound": above <= BOUND_MB, "seed": SEED}
    table = Table(title=f"{size / 1e9:.2f} GB in {frames} frames")
    for column in ("part", "idle MB", "private MB", "resident MB, with mapped files", "CPU s"):
        table.add_column(column, justify="left" if column == "part" else "right")
    for name, part in parts.items():
        values = (part[one] for one in ("idle_mb", "private_mb", "resident_mb", "cpu_seconds"))
        table.add_row(name, *(f"{value:.0f}" for value in values))
    console.print(table, result)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
