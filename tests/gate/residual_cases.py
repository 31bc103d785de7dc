"""Pictures with and without text, and what `residual_text` says of them. All synthetic."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from gate_cases import encode, files, identified_ct, plain_scrub, policy
from pydicom.dataset import Dataset

from gateway.gate import Pair
from gateway.gate.residual_text import ResidualText
from gateway.study import Verdict

NAME_IN_PIXELS = "QUASTENFLOSSER EGON"  # in no element of the object: nothing but reading finds it


def background(rows: int = 160, columns: int = 256, *, seed: int = 0) -> np.ndarray:
    """A soft synthetic picture, 12 bits: blobs and noise, no text."""
    random = np.random.default_rng(seed)
    blobs = cv2.GaussianBlur(random.normal(0, 1, (rows, columns)).astype(np.float32), (0, 0), 14)
    return (900 + 3500 * blobs + random.normal(0, 12, (rows, columns))).clip(0, 2000).astype(np.uint16)


def written(picture: np.ndarray, text: str, *, value: int, at: tuple[int, int] = (20, 60)) -> np.ndarray:
    """The picture with a line of text in it; `at` is column and row of its start."""
    ink = np.zeros(picture.shape, np.uint8)
    cv2.putText(ink, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.55, 255, 1, cv2.LINE_AA)
    share = ink / 255 if value > 1 else (ink > 127).astype(float)
    return np.round(picture * (1 - share) + value * share).astype(picture.dtype)


def with_pixels(samples: np.ndarray, *, stored: int | None = None) -> Dataset:
    """A scrubbed CT with these samples: (rows, columns), or (frames, rows, columns)."""
    ds = plain_scrub(identified_ct())
    frames = samples if samples.ndim == 3 else samples[None]
    ds.NumberOfFrames = len(frames)
    ds.Rows, ds.Columns = frames.shape[1:]
    bits = samples.dtype.itemsize * 8
    ds.BitsAllocated, ds.BitsStored = bits, stored or bits
    ds.HighBit = ds.BitsStored - 1
    raw = np.ascontiguousarray(samples).tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    return ds


def judged(folder: Path, *candidates: bytes, check: ResidualText | None = None) -> Verdict:
    original = encode(identified_ct())
    pairs: list[Pair] = [files(folder, original, one, f"{index:04}") for index, one in enumerate(candidates, 1)]
    return (check or ResidualText()).judge(pairs, policy())


def box_of(where: str) -> tuple[int, int, int, int]:
    """Top, bottom, left, right of a finding's place."""
    words = where.split()
    rows, columns = words[words.index("rows") + 1], words[words.index("columns") + 1]
    return (*map(int, rows.split("-")), *map(int, columns.split("-")))
