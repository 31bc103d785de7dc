"""People who do not exist, with a radiograph each: what tests of releases send, and policies that judge them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import yaml
from houses import edit, route_all
from planting import base
from pydicom.uid import ComputedRadiographyImageStorage, ExplicitVRLittleEndian, generate_uid
from scipy.ndimage import gaussian_filter

from gateway.evidence import distances
from gateway.gate.attackers import Folders, folders_of
from gateway.gate.views import scaled
from models.audit_encoders import BASELINES
from models.cards.impostors import write_impostors

PIXELS = 48
CARDS = ("gradients", "grey-similarity")
LIMIT = 0.4  # 50 people without a leak stay below it (release_power)


def radiograph(person: int, *, visit: int = 0, seed: int = 0) -> np.ndarray:
    """A smooth random picture that is the person's own, with a little noise of the visit: (48, 48) uint16."""
    own = gaussian_filter(np.random.default_rng([1, seed, person]).normal(size=(PIXELS, PIXELS)), 3.0)
    noise = gaussian_filter(np.random.default_rng([2, seed, person, visit]).normal(size=(PIXELS, PIXELS)), 1.0)
    field = own / own.std() + 0.2 * noise / noise.std()
    return np.asarray(1000 + 3000 * (field - field.min()) / (field.max() - field.min()), np.uint16)


def film(person: int, *, visit: int = 0, modality: str = "CR", **changes: object) -> pydicom.FileDataset:
    """A study of one image."""
    ds = base()
    ds.StudyInstanceUID, ds.SeriesInstanceUID = generate_uid(), generate_uid()
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = ComputedRadiographyImageStorage
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.PatientID, ds.Modality = f"LEAK{person:04d}", modality
    ds.PatientSex = "FM"[person % 2]
    ds.StudyDate = f"2020{1 + visit:02d}15"
    for word in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SliceThickness"):
        if word in ds:
            delattr(ds, word)
    pixels = radiograph(person, visit=visit)
    ds.Rows, ds.Columns = pixels.shape
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 12, 11, 0
    ds.PixelData = pixels.tobytes()
    for word, value in changes.items():
        setattr(ds, word, value)
    return ds


def judged(
    folder: Path,
    release: dict[str, Any],
    *,
    people: int = 50,
    close: str = "manual",
    change: Callable[[dict[str, Any]], None] = lambda _body: None,
) -> Path:
    """The policies of a folder, with research-basic judging releases of radiographs."""

    def rewrite(body: dict[str, Any]) -> None:
        body["gate"]["release"] = release
        aspects = ["burned_in_text", "recognizable_features"]
        if not any(name in release for name in ("linkability", "rank1")):
            aspects.append("image_identity")
        entry = {"aspects": aspects, "modality": ["CR"], "reason": "a test of releases", "approver": "tests"}
        body["gate"]["not_assessed"] = [entry]
        body["release"] = {"min_subjects": people, "close": close}
        change(body)

    edit(folder, "research-basic", rewrite)
    route_all(folder, ("demo", "research-basic", "research-archive"))
    return folder


LINKABILITY: dict[str, Any] = {"linkability": {"cards": list(CARDS), "max_excess_upper": LIMIT}}


def write_card(folder: Path, *, people: int = 240, **changes: object) -> Folders:
    """The raw baseline with distances between radiographs of different people, as a site would calibrate it."""
    folder.mkdir(exist_ok=True)
    rows = np.stack([BASELINES["raw"](scaled(radiograph(person, seed=7))) for person in range(people + 1)])
    apart = distances(rows, rows, "cosine")
    drawn = np.stack([np.delete(apart[person], person)[:20] for person in range(people)])
    data = write_impostors("cosine", drawn, "untouched radiographs of people who do not exist")
    (folder / "near.npz").write_bytes(data)
    card = {
        "name": "near",
        "role": "attacker",
        "algorithm": "raw",
        "modalities": ["CR"],
        "takes": "image",
        "dimensions": 1024,
        "impostors": {
            "file": "near.npz",
            "sha256": hashlib.sha256(data).hexdigest(),
            "people": people,
            "metric": "cosine",
        },
        "intended_use": "a test",
        "limits": "a test",
        "licence": "Apache-2.0",
        "source": "tests",
        **changes,
    }
    (folder / "near.yaml").write_text(yaml.safe_dump(card))
    return folders_of(folder)
