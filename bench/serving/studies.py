"""Synthetic studies: the head template at 4 mm with noise of its own, one series of 28 slices each, and a person."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pydicom
from pydicom.uid import generate_uid

from bench.serving.gateway import PACS
from tests import peers
from tests.head_series import head_volume, write_series

INSTANCES = 28


def write_studies(folder: Path, count: int, *, first: int = 0) -> list[Path]:
    """A folder for each study, numbered from `first` on. Slices are written as scanners do, all at one time."""
    return [_write_study(folder / f"{number:05d}", number) for number in range(first, first + count)]


def study_uid(number: int) -> str:
    return str(generate_uid(entropy_srcs=["study", str(number)]))


def _write_study(folder: Path, number: int) -> Path:
    volume = head_volume(seed=number, turn=0.08 + 0.01 * (number % 5))
    paths = write_series(volume, folder, series=f"s{number}")
    frame = generate_uid(entropy_srcs=["frame", str(number)])
    for path in paths:
        image = pydicom.dcmread(path)
        image.StudyInstanceUID, image.FrameOfReferenceUID = study_uid(number), frame
        image.PatientName, image.PatientID = f"ZZSYNTH^BENCH{number}", f"BENCH{number:05d}"
        image.PatientBirthDate, image.PatientSex, image.StudyDate, image.StudyTime = "19600101", "O", "20200131", "1010"
        image.AccessionNumber, image.StudyID, image.SeriesNumber = f"A{number}", "1", 1
        image.ReferringPhysicianName, image.Manufacturer, image.StudyDescription = "ZZSYNTH^DOCTOR", "ACME", "HEAD"
        image.NumberOfStudyRelatedInstances = len(paths)
        image.save_as(path, enforce_file_format=True)
    assert len(paths) == INSTANCES
    return folder


def store(folder: Path, port: int, called: str) -> None:
    """Send a study by DCMTK's storescu, as one association. Raises CalledProcessError when something was not taken."""
    options = ["-aet", PACS, "-aec", called, "+sd", "127.0.0.1", str(port), str(folder)]
    environment = {**os.environ, "TCP_NODELAY": "1"}
    subprocess.run([peers.dcmtk("storescu"), *options], check=True, capture_output=True, env=environment)
