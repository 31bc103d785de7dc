"""Runs one stage on one group of instances, with what it estimates stored before it is used.

An estimate is named by everything it follows from: bytes of the originals and of the candidates that it saw, stage,
version, parameters, level and seed. A folder of two files, published whole: readers see all of it or nothing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np

from gateway.durable import PART, make_folder, sync_file, sync_folder
from gateway.pixels.stage import Estimate, Instance, Stage, Work
from gateway.policy.model import plain
from gateway.study import Step, canonical_json

FACTS, ARRAYS = "facts.json", "arrays.npz"
CHUNK_BYTES = 1 << 20


def run_stage(name: str, stage: Stage, group: Sequence[Instance], work: Work, store: Path) -> list[Step]:
    """Estimate (or take what was estimated before), then apply. `store` is the folder of all estimates of a study.

    Raises Hold, and OSError from the file system.
    """
    folder = store / _digest(name, stage, group, work)
    if not folder.is_dir():
        _write(folder, stage.estimate(group, work))
    return stage.apply(group, work, _read(folder))


def _digest(name: str, stage: Stage, group: Sequence[Instance], work: Work) -> str:
    head = {
        "stage": name,
        "version": stage.VERSION,
        "parameters": plain(stage),
        "policy": work.policy.digest,
        "seed": hashlib.sha256(work.seed).hexdigest(),
    }
    if work.level is not None:  # what one level estimated is nothing to another
        head["level"] = work.level
    if work.follow_up:
        head["follow_up"] = True
    digest = hashlib.sha256(canonical_json(head))
    for instance in group:
        for path in (instance.original, instance.candidate):
            digest.update(_sha256(path))
    return digest.hexdigest()


def _sha256(path: Path) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _write(folder: Path, estimate: Estimate) -> None:
    part = make_folder(folder.with_name(f"{folder.name}.{uuid4().hex}{PART}"))
    (part / FACTS).write_bytes(canonical_json(dict(estimate.facts)))
    with open(part / ARRAYS, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{f"a_{name}": array for name, array in estimate.arrays.items()})
    for name in (FACTS, ARRAYS):
        sync_file(part / name)
    try:
        part.rename(folder)
    except OSError:  # another worker was first: what it stored is what counts
        if not folder.is_dir():
            raise
        shutil.rmtree(part)
    sync_folder(folder.parent)


def _read(folder: Path) -> Estimate:
    facts = json.loads((folder / FACTS).read_bytes())
    with np.load(folder / ARRAYS, allow_pickle=False) as arrays:
        return Estimate(facts, {name.removeprefix("a_"): arrays[name] for name in arrays.files})
