"""Synthetic studies to send: small heads (one series of 28 slices of MR) and chest films (one CR), each of a person of
its own. A few pictures are drawn once and shared: what a study costs is measured, not what it shows.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pydicom
from pydicom.uid import generate_uid

from bench.serving.gateway import PACS
from bench.serving.stages import FILMS, HEADS
from gateway.learn import write_dicom
from models.cohorts import synthetic_chest
from tests import peers
from tests.head_series import head_volume, write_series

INSTANCES = {HEADS: 28, FILMS: 1}
PICTURES = 4
FILM_PIXELS, FILM_SEED = 512, 999


class Studies:
    """Studies of one kind without end; `root` takes the pictures."""

    def __init__(self, kind: str, root: Path) -> None:
        self._kind = kind
        self._pictures = [_heads, _films][kind == FILMS](root / f"{kind}-pictures")

    def write(self, folder: Path, numbers: range) -> list[Path]:
        """A folder for each number, named by it."""
        return [self._write(folder / f"{number:05d}", number) for number in numbers]

    def _write(self, folder: Path, number: int) -> Path:
        folder.mkdir(parents=True)
        for place, path in enumerate(self._pictures[number % PICTURES]):
            image = pydicom.dcmread(path)
            image.StudyInstanceUID = study_uid(self._kind, number)
            image.SeriesInstanceUID = _uid(self._kind, number, "series")
            image.SOPInstanceUID = _uid(self._kind, number, f"object {place}")
            image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
            if "FrameOfReferenceUID" in image:
                image.FrameOfReferenceUID = _uid(self._kind, number, "frame of reference")
            image.PatientName, image.PatientID = f"ZZSYNTH^BENCH{number}", f"BENCH{number:05d}"
            image.PatientBirthDate, image.PatientSex = "19600101", "O"
            image.StudyDate, image.StudyTime, image.StudyDescription = "20200131", "1010", "BENCHMARK"
            image.AccessionNumber, image.StudyID, image.SeriesNumber = f"A{number}", "1", 1
            image.ReferringPhysicianName, image.Manufacturer = "ZZSYNTH^DOCTOR", "ACME"
            image.NumberOfStudyRelatedInstances = INSTANCES[self._kind]
            image.save_as(folder / f"{place:04d}", enforce_file_format=True)
        return folder


def study_uid(kind: str, number: int) -> str:
    return _uid(kind, number, "study")


def _uid(kind: str, number: int, what: str) -> str:
    """One source with its parts set apart: pydicom joins several without anything between them, and the eleventh object
    of study 1 would be the first of study 11.
    """
    return str(generate_uid(entropy_srcs=[f"{kind}/{number}/{what}"]))


def _heads(folder: Path) -> list[list[Path]]:
    """Slices are written as scanners do, all at one time."""
    return [
        write_series(head_volume(seed=number, turn=0.08 + 0.01 * number), folder / f"{number}")
        for number in range(PICTURES)
    ]


def _films(folder: Path) -> list[list[Path]]:
    people = synthetic_chest(PICTURES, 1, FILM_SEED, size=FILM_PIXELS)
    write_dicom(people, folder, masks=())
    return [[path] for path in sorted(folder.rglob("*.dcm"))]


def store(folder: Path, port: int, called: str) -> None:
    """Send a study by DCMTK's storescu, as one association. Raises CalledProcessError when something was not taken."""
    options = ["-aet", PACS, "-aec", called, "+sd", "127.0.0.1", str(port), str(folder)]
    environment = {**os.environ, "TCP_NODELAY": "1"}
    subprocess.run([peers.dcmtk("storescu"), *options], check=True, capture_output=True, env=environment)
