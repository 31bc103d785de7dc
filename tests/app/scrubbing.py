"""Folders of small studies, and `scrub` over them: in this process, or as the process that a user starts."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from planting import base
from pydicom.dataset import FileDataset

from gateway.app.batch.inputs import find_inputs
from gateway.app.batch.scrub import Scrub
from gateway.app.batch.studies import Progress, StudyResult, find_policy
from gateway.app.policy.registry import registry_of
from gateway.app.release.references import MODELS
from gateway.pseudonyms import Keys, master_key
from gateway.settings import SHIPPED_POLICIES, Home, load_settings


def slice_of(patient: int, study_uid: str, number: int = 1, **attributes: object) -> FileDataset:
    """One CT slice of a person of the test; attributes are set last."""
    ds = base()
    ds.PatientID, ds.PatientName = f"LEAK{patient:04d}", "ZZSYNTH^LEAKTEST"
    ds.StudyInstanceUID = study_uid
    ds.SeriesInstanceUID = f"{study_uid}.1"
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"{study_uid}.1.{number}"
    ds.InstanceNumber = number
    for word, value in attributes.items():
        setattr(ds, word, value)
    return ds


def write_study(folder: Path, patient: int, instances: int = 2, **attributes: object) -> list[Path]:
    """A study in a folder of its own; the UIDs are new. File names say nothing."""
    uid = f"2.25.{secrets.randbelow(10**20) + 1}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(1, instances + 1):
        path = folder / f"p{patient}-{number}.dcm"
        slice_of(patient, uid, number, **attributes).save_as(path, enforce_file_format=True)
        paths.append(path)
    return paths


def with_release(folder: Path, min_subjects: int) -> Path:
    """research-basic, clearing in releases of at least so many people."""
    policy = yaml.safe_load((SHIPPED_POLICIES / "research-basic.yaml").read_text())
    path = folder / f"in-releases-{min_subjects}.yaml"
    path.write_text(yaml.safe_dump({**policy, "name": "in-releases", "release": {"min_subjects": min_subjects}}))
    return path


@dataclass
class Scrubbing:
    """`scrub` in this process, without the command line around it."""

    home: Home
    target: Path
    policy: Path | str = "research-basic"
    project: str = "demo"
    workers: int = 1

    def made(self) -> Scrub:
        settings = load_settings(self.home.root, workers=self.workers)
        policy = find_policy(str(self.policy), lambda: SHIPPED_POLICIES, registry_of(self.home.root / MODELS))
        return Scrub(self.home, settings, self.keys, policy, self.target, self.project)

    @property
    def keys(self) -> Keys:
        return Keys(master_key(self.home, load_settings(self.home.root)))

    def __call__(
        self,
        source: Path,
        *,
        close_release: bool = False,
        report: Callable[[Progress], None] = lambda _progress: None,
        change: Callable[[Scrub], None] = lambda _scrub: None,
    ) -> list[StudyResult]:
        run = self.made()
        change(run)
        inputs = find_inputs(source, self.target, self.home.root)
        return run.run(inputs, close_release=close_release, report=report)


def ends(results: Sequence[StudyResult]) -> list[tuple[str, str]]:
    """State and reason of each, sorted."""
    return sorted((str(result.state), result.reason) for result in results)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def process(home: Home, source: Path, target: Path, *more: object, **streams: Any) -> subprocess.Popen[bytes]:
    """`scrub` as a process of its own, started and not waited for."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DEID_")}
    words = [source, target, "--home", home.root, "--policy", "research-basic", "--project", "demo", *more]
    return subprocess.Popen(
        [sys.executable, "-m", "gateway", "scrub", *map(str, words)],
        env={**clean, "DEID_WORKERS": "2"},
        stdout=streams.pop("stdout", subprocess.PIPE),
        stderr=streams.pop("stderr", subprocess.PIPE),
        start_new_session=True,
        **streams,
    )
