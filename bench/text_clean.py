"""Frames without plants for `bench.text`: distinct ones, of every real series that one half of its people has.

Who is drawn on in one half has clean frames in that half alone; of the retinas, one half of the people belongs to
each. Films that show writing of their own are left out, unless `text_frames.csv` says where.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from bench.gate_frames import WITH_TEXT
from bench.text_frames import SHARED, Frame, frames
from bench.text_words import DEVELOPMENT, HELD_OUT

SLICES_EACH, MIDDLE = 18, (0.15, 0.85)  # of a volume; of its height, where a head is
FOLDERS = ("cxr", "brain_mri", "heads", "fundus")
LEAST_PX = 128  # thumbnails are no frames of a series
RETINAS_DEVELOPED_ON = 10  # of twenty people


@cache
def clean_frames(half: str) -> tuple[Frame, ...]:
    """All of them, in an order of their own. Raises FileNotFoundError where there is no shared data."""
    known = {frame.file: frame for which in (DEVELOPMENT, HELD_OUT) for frame in frames(which)}
    people = {name: subject for name, subject, _ in _files()}
    drawn_on = [frame.file.partition(":")[0] for frame in frames(HELD_OUT)]
    held_out = {people[name] for name in drawn_on if name in people}
    found = []
    for name, subject, volume in _files():
        retina = name.startswith("fundus/") and int(subject.rpartition("P")[2]) > RETINAS_DEVELOPED_ON
        if (HELD_OUT if retina or subject in held_out else DEVELOPMENT) != half:
            continue
        if volume:
            found += [Frame(f"{name}:{at}", half, ()) for at in _slices(SHARED / name)]
        elif name in known or name.removeprefix("cxr/") not in WITH_TEXT:
            found.append(known.get(name, Frame(name, half, ())))
    Random(half).shuffle(found)
    return tuple(found)


@cache
def _files() -> tuple[tuple[str, str, bool], ...]:
    """(file, person, whether it is a volume) of everything that a manifest gives a person to."""
    return tuple(entry for folder in FOLDERS for entry in _listed(folder))


def _listed(folder: str) -> Iterator[tuple[str, str, bool]]:
    with open(SHARED / folder / "manifest.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name, what = row["file"], row.get("sequence") or ""
            if "MASK" in what.upper() or "LABEL" in what.upper() or not (SHARED / folder / name).is_file():
                continue
            volume = name.endswith(".nii.gz")
            if volume or int(row.get("width") or 0) >= LEAST_PX:
                yield f"{folder}/{name}", row["subject"], volume


def _slices(path: Path) -> list[int]:
    import nibabel as nib

    height = nib.as_closest_canonical(nib.load(path)).shape[2]
    return sorted({round(at) for at in np.linspace(MIDDLE[0] * height, MIDDLE[1] * height, SLICES_EACH)})
