"""Defacing: what is removed, what is spared, and whether a face is left, on heads whose tissues are known.

    make bench NAME=deface

Label maps of real heads (`shared/data/heads`, full faces only) are rendered as T1, T2, CT and PET (`synthetic`
intensities, seeded; each contrast is a session with another pose), written as enhanced DICOM objects, and go through
the stage and the gate check as in the gateway. Brain and facial skin are known from the labels: the stage never sees
those. Real heads have no labels: what the stage finds and what the gate sees is told. Peers are masks on the same heads
(`deface_peers`). Each case is kept in the user's cache under a digest of the code: a run that was stopped goes on; the
result file says how many of the cases it holds. About 20 s a head on a free core.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.deface_face_frame import face_map
from bench.deface_heads import Head, read_head, read_nifti
from bench.deface_peers import laid_on, pydeface_mask, quickshear
from bench.deface_series import stored, write_enhanced
from bench.deface_sessions import session
from bench.deface_sheet import contact_sheet, portrait
from bench.deface_summary import SHOWN, summary, table
from bench.deid_peers.environments import CACHE
from gateway.errors import Hold
from gateway.gate.face_surface import compressed, uptake_scale
from gateway.gate.reading import Pair
from gateway.gate.residual_face import ResidualFace
from gateway.pixels.deface import Deface
from gateway.pixels.deface_find import READ_MM
from gateway.pixels.head_alignment import align
from gateway.pixels.head_tissue import lifted
from gateway.pixels.stage import Instance
from gateway.volumes import Volume

ROOT = Path(__file__).resolve().parents[1]
HEADS = ROOT.parent / "shared" / "data" / "heads"
RESULT = ROOT / "bench" / "results" / "deface.json"
SHEET = CACHE / "deface" / "sheet.png"  # faces: never in the repository
MODALITIES = ("T1", "CT", "T2", "PET")  # the first is the gallery of the attack
FIRST = ("S16", "S12", "S15", "S17", "S19")  # these were never looked at while the stage was made
CODE = (
    "gateway/pixels/deface*.py",
    "gateway/pixels/head_*",
    "gateway/gate/face_[acdrs]*",
    "gateway/gate/residual_face.py",
    "gateway/volumes/*.py",
    "bench/deface_[fhp]*.py",
    "bench/deface_se*.py",
)
SEED = 20261130


@dataclass(frozen=True)
class Case:
    """One volume: a rendered label map, or a real file."""

    name: str
    modality: str
    real: bool = False

    @property
    def label(self) -> str:
        return f"{self.name}-{self.modality}"


def cases(*, quick: bool) -> list[Case]:
    """All volumes with a full face, and the real heads."""
    with open(HEADS / "manifest.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    full = [Path(row["file"]).name.split("_")[0] for row in rows if row["face"] == "full face"]
    real = [
        Case(Path(row["file"]).name, "CT" if "CT" in row["file"] else "T1", real=True)
        for row in rows
        if "real/" in row["file"]
    ]
    new, seen = [name for name in FIRST if name in full], [name for name in full if name not in FIRST]
    blocks = [(("T1", "CT"), new), (("PET",), new[:2]), ((), ()), (("T1", "CT"), seen), (("T2", "PET"), new + seen)]
    made = [[Case(name, modality) for name in names for modality in some] for some, names in blocks]
    made[2] = real
    every = list(dict.fromkeys(case for block in made for case in block))
    return every[:1] if quick else every


def digest() -> str:
    """Of everything that a case's figures follow from."""
    sha = hashlib.sha256(str(SEED).encode())
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            sha.update(path.read_bytes())
    return sha.hexdigest()[:16]


def measure(case: Case, folder: Path, peers: dict[str, Any]) -> dict[str, Any]:
    """The figures of one case."""
    head: Head | None = None
    if case.real:
        volume = Volume(*read_nifti(HEADS / "real" / case.name))
    else:
        head, volume = session(read_head(HEADS / "synthseg_labels", case.name), case.modality, SEED)
    hounsfield = case.modality == "CT" and not case.real  # the real CT comes windowed to 8 bits
    original, candidate = folder / "original", folder / "candidate"
    write_enhanced(volume, original, {"CT": "CT", "PET": "PT"}.get(case.modality, "MR") if head else "MR")
    candidate.write_bytes(original.read_bytes())
    group = [Instance("0001", original, candidate)]
    stage, work = Deface(), SimpleNamespace()
    found: dict[str, Any] = {"case": case.label, "real": case.real, "held": "", "seconds": 0.0}
    begin, cpu = time.perf_counter(), time.process_time()
    try:
        estimate = stage.estimate(group, work)
        stage.apply(group, work, estimate)
        found["evidence"] = estimate.facts["evidence"]
    except Hold as hold:
        found["held"] = hold.reason
        estimate = None
    found["seconds"], found["cpu_seconds"] = time.perf_counter() - begin, time.process_time() - cpu
    before, after = stored(original), stored(candidate)
    if head is not None:
        fill = int(after[before != after].min()) if (before != after).any() else -1
        found |= _kept(head, before != after, after == fill)
        found["peers"] = _peers(head, estimate, peers)
    verdict = ResidualFace().judge([Pair("0001", original, candidate)], work)
    found["gate"] = {
        "outcome": str(verdict.outcome),
        **verdict.assessed,
        "rules": sorted({f.rule for f in verdict.findings}),
    }
    offset = 1024 if hounsfield else 0
    defaced = Volume(after.astype(np.float32) - offset, volume.affine)
    small = [halved(one) for one in (volume, defaced)]
    if case.modality == "PET":
        scale = uptake_scale(small[0].values)
        small = [compressed(one, scale) for one in small]
    sheet = [portrait(one, hounsfield=hounsfield) for one in small]
    maps = _maps(small, estimate, lifted(small[0]) if case.modality == "PET" else small[0], hounsfield=hounsfield)
    np.savez_compressed(folder.parent / f"{case.label}.npz", before=sheet[0], after=sheet[1], **maps)
    return found


def _kept(head: Head, changed: np.ndarray, gone: np.ndarray) -> dict[str, float]:
    return {
        "brain_voxels_changed": int((changed & head.brain).sum()),
        "face_skin_voxels": int(head.face.sum()),
        "face_skin_removed": float((gone & head.face).sum() / max(1, head.face.sum())),
    }


def _peers(head: Head, estimate: Any, peers: dict[str, Any]) -> dict[str, dict[str, float]]:
    masks = {"quickshear": quickshear(head.brain)}
    if estimate is not None and "0_to_template" in estimate.arrays and not isinstance(peers["pydeface"], str):
        masks["pydeface"] = laid_on(peers["pydeface"], estimate.arrays["0_to_template"], head.affine, head.tissue.shape)
    return {name: _kept(head, mask, mask) for name, mask in masks.items()}


def _maps(small: list[Volume], estimate: Any, shown: Volume, *, hounsfield: bool) -> dict[str, np.ndarray]:
    """The face as the attacker sees it, before and after. A head that was held is aligned for the attack alone."""
    if estimate is not None and "0_to_template" in estimate.arrays:
        to_template = estimate.arrays["0_to_template"]
    else:
        alignment = align(shown, hounsfield=hounsfield)
        if alignment is None:
            return {}
        to_template = alignment.to_template
    names = ("face_before", "face_after")
    return {n: face_map(one, to_template, hounsfield=hounsfield) for n, one in zip(names, small, strict=True)}


def halved(volume: Volume) -> Volume:
    by = np.maximum(1, (READ_MM / volume.spacing_mm + 1e-6).astype(int))
    z, y, x = (count // one for count, one in zip(volume.values.shape, by[::-1], strict=True))
    cut = volume.values[: z * by[2], : y * by[1], : x * by[0]]
    values = cut.reshape(z, by[2], y, by[1], x, by[0]).mean((1, 3, 5), dtype=np.float32)
    affine = volume.affine.copy()
    affine[:3, 3] += affine[:3, :3] @ ((by - 1) / 2)
    affine[:3, :3] *= by
    return Volume(values, affine)


def _figures(every: list[Case], cache: Path, minutes: float) -> Iterator[dict[str, Any]]:
    peers, begin = {"pydeface": pydeface_mask()}, time.monotonic()
    for case in every:
        kept = cache / f"{case.label}.json"
        if not kept.exists():
            if time.monotonic() - begin > minutes * 60:
                continue
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                kept.write_text(json.dumps(measure(case, Path(folder), peers)))
        yield json.loads(kept.read_text()) | {"maps": _kept_maps(cache / f"{case.label}.npz")}


def _kept_maps(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as kept:
        return {name: kept[name] for name in kept.files if name.startswith("face_")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one head only; writes no result")
    parser.add_argument("--minutes", type=float, default=240, help="begin no new case after this; what is done is told")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console = Console()
    if not HEADS.is_dir():
        raise SystemExit(f"no heads at {HEADS}")
    every, cache = cases(quick=arguments.quick), CACHE / "deface" / digest()
    cache.mkdir(parents=True, exist_ok=True)
    bars = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    figures = []
    with Progress(*bars, console=console) as progress:
        task = progress.add_task("heads", total=len(every))
        for figure in _figures(every, cache, arguments.minutes):
            figures.append(figure)
            progress.advance(task)
    result = summary(figures, MODALITIES) | {"seed": SEED, "cases_in_all": len(every)}
    console.print(table(result))
    console.print({name: result[name] for name in SHOWN})
    for one in figures:
        if one["real"]:
            console.print(one["case"], one["held"] or one.get("evidence"), one["gate"])
    contact_sheet([(case.label, cache / f"{case.label}.npz") for case in every], SHEET)
    console.print(f"before and after: {SHEET}")
    if not arguments.quick:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
