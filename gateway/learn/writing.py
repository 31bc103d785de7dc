"""A cohort as DICOM files: one folder for each series, named by its UID, so that no path names a person."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset

from gateway.errors import UsageError
from gateway.learn.objects import film_of, photograph_of, slices_of, with_meta
from gateway.learn.people import births, patient_and_study, uid_of
from gateway.learn.segmentation import segmentation_of
from models.cohorts import Cohort, Scan

MODALITIES = ("MR", "CR", "OP")
MASKS = ("lesion", "core")
UNFINISHED = ".unfinished"  # says which cohort is being written here; gone when all of it is there
Tick = Callable[[int, int], None]


def write_dicom(
    cohort: Cohort,
    folder: Path,
    *,
    modality: str | None = None,
    masks: Sequence[str] = MASKS,
    made_by: str = "",
    tick: Tick = lambda _done, _total: None,
) -> int:
    """How many files were written; a run that was interrupted goes on when it is asked for the same again.

    Volumes become MR series, pictures CR films, or ophthalmic photographs (in colour where the cohort has it) where an
    eye is known; `modality` (MR, CR, OP) says otherwise. Masks of these names become one binary segmentation beside the
    series, unless all are empty.
    `made_by`: parameters that labels do not show, so that no run goes on with another's files. `tick` is told scans
    done and in all. Raises UsageError for a folder that holds something else, ValueError for a volume without spacing
    or that is to be a picture.
    """
    if modality is not None and modality not in MODALITIES:
        raise ValueError(f"the modality is one of {', '.join(MODALITIES)}")
    _begin(folder, _fingerprint(cohort, modality, masks, made_by))
    known, files = births(cohort), 0
    numbers: dict[tuple[str, str], int] = {}
    for done, scan in enumerate(cohort, 1):
        visit = (scan.subject, scan.session)
        numbers[visit] = numbers.get(visit, 0) + 1
        series_uid = uid_of(cohort.name, scan.subject, scan.session, scan.name)
        target = folder / series_uid
        if not target.is_dir():
            head = patient_and_study(cohort, scan, known[scan.subject])
            head.SeriesInstanceUID, head.SeriesNumber = series_uid, numbers[visit]
            _write_series(_objects(head, cohort, scan, modality, masks), target)
        files += sum(1 for _ in target.iterdir())
        tick(done, len(cohort))
    (folder / UNFINISHED).unlink()
    return files


def _fingerprint(cohort: Cohort, *more: object) -> str:
    """Of all that is known of a cohort without its pixels."""
    labels = [(s.name, s.subject, s.session, s.day, s.site, s.spacing_mm, sorted(s.attributes.items())) for s in cohort]
    return hashlib.sha256(repr((cohort.name, labels, more)).encode()).hexdigest()


def _begin(folder: Path, fingerprint: str) -> None:
    mark = folder / UNFINISHED
    folder.mkdir(parents=True, exist_ok=True)
    if mark.is_file() and mark.read_text(encoding="ascii") == fingerprint:
        return
    if any(folder.iterdir()):
        raise UsageError(f"{folder} holds something else already; name an empty folder")
    mark.write_text(fingerprint, encoding="ascii")


def _objects(head: Dataset, cohort: Cohort, scan: Scan, modality: str | None, masks: Sequence[str]) -> list[Dataset]:
    pixels = scan.load()
    if pixels.ndim == 3:
        if modality not in (None, "MR"):
            raise ValueError(f"a volume cannot be written as {modality}")
        head.FrameOfReferenceUID = uid_of(cohort.name, scan.subject, scan.session, "frame of reference")
        images = list(slices_of(head, scan, pixels))
    elif modality == "MR":
        raise ValueError("a picture cannot be written as an MR series")
    elif modality == "OP" or (modality is None and "eye" in scan.attributes):
        images = [photograph_of(head, scan, pixels if scan.load_colour is None else scan.load_colour())]
    else:
        images = [film_of(head, scan, pixels)]
    wanted = {name: scan.masks[name]().reshape(-1, *pixels.shape[-2:]) for name in masks if name in scan.masks}
    series_uid = uid_of(cohort.name, scan.subject, scan.session, scan.name, "segmentation")
    found = segmentation_of(head, images, {k: np.asarray(v, np.bool_) for k, v in wanted.items()}, series_uid)
    return images if found is None else [*images, found]


def _write_series(objects: list[Dataset], target: Path) -> None:
    """All of it or nothing: a folder that has its name is complete."""
    partial = target.with_name(f".{target.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for number, dataset in enumerate(objects, 1):
        with_meta(dataset).save_as(partial / f"{number:05d}.dcm", enforce_file_format=True)
    os.replace(partial, target)
