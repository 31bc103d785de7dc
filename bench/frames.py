"""Pixels in, pixels out: memory and speed of `gateway.frames`, each step in a process of its own.

    make bench NAME=frames

Synthetic objects: a colour ultrasound cine of 300 frames of 640 x 480 (native, run lengths, baseline JPEG), and an
enhanced MR of 1 GB. Memory is the peak of anonymous memory above that of the imported program, in MB (10^6 bytes):
pages of a mapped file are the kernel's to drop. Speed is MB of decoded pixels a second, and its ratio to a file copy of
the input holds between machines. pydicom reads, blanks a box and writes the same native file for comparison.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pydicom
from rich.console import Console
from rich.table import Table

from gateway.frames import KEYWORDS, Box, Changes, EncodedImage, change_header, redact, transcode
from gateway.frames.syntaxes import JPEG_BASELINE
from gateway.frames.tidying import survey, tidy
from tests.encoded_images import compressed, native

RESULT = Path(__file__).parent / "results" / "frames.json"
CINE, MR = (300, 480, 640, 3), (2000, 512, 512)
MEGABYTE = 10**6
BOX = Box(-1, 10, 20, 40, 300)


def anonymous_bytes() -> int:
    """Memory of this process that is no file's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no RssAnon in /proc/self/status")


def measured(step: Callable[[Path, Path], None], source: Path, target: Path, answer: Any) -> None:
    """Run in a fresh process: puts (peak of anonymous memory above the start in bytes, seconds)."""
    start, peak, done = anonymous_bytes(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, anonymous_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    step(source, target)
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    answer.put((max(peak - start, 0), seconds))


def read_all(source: Path, _target: Path) -> None:
    with EncodedImage.open(source) as image:
        for frame in range(image.frames):
            image.stored(frame)


def redact_all(source: Path, target: Path) -> None:
    redact(source, target, [BOX], Changes())


def set_header(source: Path, target: Path) -> None:
    change_header(source, target, Changes({0x00280301: ("CS", "NO")}))


def tidy_all(source: Path, target: Path) -> None:
    with EncodedImage.open(source) as image:
        found = survey(image, None)
    tidy(source, target, found, None, Changes())


def to_jpeg_ls(source: Path, target: Path) -> None:
    transcode(source, target, KEYWORDS["jpeg-ls-lossless"], Changes())


def to_native(source: Path, target: Path) -> None:
    transcode(source, target, KEYWORDS["explicit-little"], Changes())


def by_pydicom(source: Path, target: Path) -> None:
    dataset = pydicom.dcmread(source)
    array = dataset.pixel_array.copy()
    array[:, BOX.top : BOX.bottom, BOX.left : BOX.right] = 0
    dataset.PixelData = array.tobytes()
    dataset.save_as(target)


def copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


def cine(rng: np.random.Generator) -> np.ndarray:
    """A sector of speckle that moves, on black."""
    frames, rows, columns, _ = CINE
    speckle = rng.integers(0, 200, (rows, columns), dtype=np.uint8)
    down, across = np.mgrid[:rows, :columns]
    sector = (np.hypot(down, across - columns / 2) < rows * 0.95) & (np.abs(across - columns / 2) < down * 0.7)
    shades = np.stack([np.where(sector, np.roll(speckle, frame, 0), 0).astype(np.uint8) for frame in range(frames)])
    return np.repeat(shades[..., None], 3, axis=-1)


def objects(folder: Path) -> dict[str, Path]:
    rng = np.random.default_rng(1)
    moving = cine(rng)
    found = {"us native": native(folder / "us.dcm", moving)}
    transcode(found["us native"], folder / "us_rle.dcm", KEYWORDS["rle"], Changes())
    found["us rle"] = folder / "us_rle.dcm"
    streams = [
        bytes(imagecodecs.jpeg8_encode(frame, level=90, colorspace="RGB", outcolorspace="YCBCR", subsampling="422"))
        for frame in moving
    ]
    label = {"PhotometricInterpretation": "YBR_FULL_422"}
    found["us jpeg"] = compressed(folder / "us_jpeg.dcm", streams, moving, JPEG_BASELINE, **label)
    del moving, streams
    slab = (rng.normal(600, 200, (100, *MR[1:])).clip(0, 4095)).astype(np.uint16)
    found["mr native"] = native(folder / "mr.dcm", np.concatenate([slab] * (MR[0] // 100)), BitsStored=12)
    return found


STEPS: dict[str, list[Callable[[Path, Path], None]]] = {
    "us native": [copy, set_header, redact_all, tidy_all, to_jpeg_ls, by_pydicom],
    "us rle": [copy, read_all, redact_all, tidy_all, to_native],
    "us jpeg": [copy, read_all, redact_all, tidy_all, to_native],
    "mr native": [copy, set_header, redact_all, tidy_all, to_jpeg_ls, by_pydicom],
}


def main() -> int:
    context = multiprocessing.get_context("spawn")
    rows = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        found = objects(Path(folder))
        for name, steps in STEPS.items():
            size = np.prod(CINE if name.startswith("us") else MR) * (1 if name.startswith("us") else 2)
            copied_s = 0.0
            for step in steps:
                answer = context.Queue()
                process = context.Process(target=measured, args=(step, found[name], Path(folder) / "out.dcm", answer))
                process.start()
                peak, seconds = answer.get()
                process.join()
                copied_s = seconds if step is copy else copied_s
                rows.append(
                    {
                        "object": name,
                        "step": step.__name__,
                        "peak_mb": round(peak / MEGABYTE, 1),
                        "mb_per_s": round(size / MEGABYTE / seconds, 1),
                        "times_of_a_copy": round(seconds / copied_s, 1),
                    }
                )
    ours = [row["peak_mb"] for row in rows if row["step"] not in ("by_pydicom", "copy")]
    result = {"machine": platform.machine(), "python": platform.python_version(), "peak_mb": max(ours), "rows": rows}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    table = Table(title=f"make bench NAME=frames: peak of ours {max(ours)} MB")
    for column in ("object", "step", "peak_mb", "mb_per_s", "times_of_a_copy"):
        table.add_column(column, justify="left" if column in ("object", "step") else "right")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
