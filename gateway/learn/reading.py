"""A folder of DICOM as a cohort: series to volumes and pictures, segmentations to masks, headers to labels.

People are told apart by PatientID, as it is or as `pseudonym` makes it. Headers are read at once; pixels when a scan is
loaded. Volumes are turned to the axes of `Scan` by swapping and flipping, never resampled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.learn.loading import Frame, Picture, StackOf, instances_of, mask_of
from gateway.learn.people import SEXES, wrote
from gateway.learn.segmentation import SEGMENTATION
from gateway.volumes import Stack, planes_of, sort, upright
from models.cohorts import Cohort, Scan
from models.cohorts.cohort import AGE_BAND_YEARS

PICTURES = frozenset({"CR", "DX", "MG", "IO", "PX", "OP", "XC", "RG", "OT", "SC", "GM", "ES"})  # a frame is an image
EYES = {"L": "left", "R": "right"}
UNITS_A_YEAR = {"D": 365.25, "W": 52.18, "M": 12.0, "Y": 1.0}
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Object:
    path: Path
    dataset: Dataset
    frames: int


def read_dicom(
    folder: Path,
    *,
    name: str = "",
    synthetic: bool = False,
    pseudonym: Callable[[str], str] | None = None,
    note: Note = lambda _why: None,
) -> Cohort:
    """Every grid of slices below `folder` is a scan, and every frame of a modality of single pictures.

    session = StudyInstanceUID, day = StudyDate after the person's first, site = InstitutionName, else StationName, else
    Manufacturer. Attributes: sex, age, age_band, sequence, manufacturer, modality, view, eye, and what
    `write_dicom` itself put under Admitting Diagnoses Description (of others it is free text about a person, and is not
    read). Values become 0 to 1: as rescaled where that is their
    range, HU from -1024 to 3071, 8-bit by 255, else up to the 99.9th percentile of the scan.

    What is left out is told to `note`, by its reason alone. Without `pseudonym` the cohort holds PatientIDs as they
    are: pass one for people who exist. Raises ValueError when nothing is left.
    """
    series: dict[tuple[str, str, str], list[_Object]] = {}  # by person too: bad UIDs must not mix people
    segmentations: dict[str, list[_Object]] = {}  # by the instance that they refer to
    for item in _objects(folder, note):
        if item.dataset.get("SOPClassUID") == SEGMENTATION:
            for instance in instances_of(item.dataset):
                segmentations.setdefault(instance, []).append(item)
        elif not item.dataset.get("PatientID") or not item.dataset.get("StudyInstanceUID"):
            note("no PatientID or StudyInstanceUID")
        elif item.frames:
            keywords = ("PatientID", "StudyInstanceUID", "SeriesInstanceUID")
            patient, study, uid = (str(item.dataset.get(keyword, "")) for keyword in keywords)
            series.setdefault((patient, study, uid), []).append(item)
    first: dict[str, date] = {}
    for one in series.values():
        person, day = str(one[0].dataset.PatientID), _date(one[0].dataset.get("StudyDate"))
        if day is not None:
            first[person] = min(day, first.get(person, day))
    scans = [scan for one in series.values() for scan in _scans(one, first, segmentations, pseudonym, note)]
    if not scans:
        raise ValueError("no image in this folder has a person, a study and pixels: is it a folder of DICOM files?")
    scans.sort(key=lambda scan: (scan.subject, scan.day if scan.day is not None else 0.0, scan.session, scan.name))
    return Cohort(name or folder.name, tuple(scans), synthetic=synthetic)


def _objects(folder: Path, note: Note) -> Iterator[_Object]:
    for parent, _, names in sorted(os.walk(folder)):
        for file_name in sorted(names):
            path = Path(parent) / file_name
            if path.is_symlink() or not path.is_file():
                continue
            try:
                with EncodedImage.open(path) as image:
                    yield _Object(path, image.dataset, image.frames)
            except Hold as held:
                note(held.reason)


def _scans(
    objects: list[_Object],
    first: dict[str, date],
    segmentations: Mapping[str, list[_Object]],
    pseudonym: Callable[[str], str] | None,
    note: Note,
) -> Iterator[Scan]:
    head = objects[0].dataset
    stacks, strays = sort(plane for at, one in enumerate(objects) for plane in planes_of(one.dataset, at))
    modality = str(head.get("Modality", ""))
    person = str(head.PatientID)
    day, attributes = _date(head.get("StudyDate")), _attributes(head)
    uid = str(head.get("SeriesInstanceUID", ""))
    own = (segmentations.get(str(one.dataset.get("SOPInstanceUID", "")), []) for one in objects)
    about = {one.path: one.dataset for several in own for one in several}

    def scan(name: str, source: StackOf | Picture) -> Scan:
        return Scan(
            name=name,
            subject=pseudonym(person) if pseudonym else person,
            session=str(head.StudyInstanceUID),
            load=source.load,
            day=float((day - first[person]).days) if day is not None else None,
            site=str(head.get("InstitutionName") or head.get("StationName") or head.get("Manufacturer") or ""),
            spacing_mm=source.spacing_mm,
            attributes=attributes,
            masks={label: mask for path, dataset in about.items() for label, mask in mask_of(path, dataset, source)},
            load_colour=source.load_colour if isinstance(source, Picture) and source.colour else None,
        )

    for number, stack in enumerate(stacks):
        yield scan(uid if len(stacks) == 1 else f"{uid}#{number}", _stack(stack, objects, modality))
    for stray in strays:
        if modality not in PICTURES:
            note(stray.why)
            continue
        one = objects[stray.instance]
        frame = Frame(one.path, stray.frame, str(one.dataset.get("SOPInstanceUID", "")))
        alone = len(objects) == 1 and one.frames == 1
        colour = one.dataset.get("SamplesPerPixel") == 3
        picture = Picture(frame, _pixel_mm(one.dataset), modality, colour)
        yield scan(uid if alone else f"{uid}#{stray.instance}.{stray.frame}", picture)


def _stack(stack: Stack, objects: list[_Object], modality: str) -> StackOf:
    frames = tuple(
        Frame(
            objects[plane.instance].path,
            plane.frame,
            str(objects[plane.instance].dataset.get("SOPInstanceUID", "")),
            plane.slope,
            plane.intercept,
        )
        for plane in stack.planes
    )
    columns_mm, rows_mm, slices_mm = stack.spacing_mm
    turn = upright(stack.affine)
    spacing = tuple((slices_mm, rows_mm, columns_mm)[axis] for axis in turn.axes)
    return StackOf(frames, turn, spacing, modality, stack.shape)


def _pixel_mm(dataset: Dataset) -> tuple[float, ...] | None:
    value = dataset.get("PixelSpacing") or dataset.get("ImagerPixelSpacing")
    return tuple(float(one) for one in value) if value and len(value) == 2 else None


def _attributes(head: Dataset) -> dict[str, str]:
    found = {
        "modality": str(head.get("Modality") or ""),
        "sex": sex if (sex := str(head.get("PatientSex") or "")) in SEXES else "",
        "sequence": str(head.get("ProtocolName") or "") if head.get("Modality") == "MR" else "",
        "manufacturer": str(head.get("Manufacturer") or ""),
        "view": str(head.get("ViewPosition") or ""),
        "eye": EYES.get(str(head.get("ImageLaterality")), "") if head.get("Modality") == "OP" else "",
    }
    age = _years(str(head.get("PatientAge") or ""))
    if age is not None:
        low = age // AGE_BAND_YEARS * AGE_BAND_YEARS
        found |= {"age": str(age), "age_band": f"{low}-{low + AGE_BAND_YEARS - 1}"}
    more = (head.get("AdmittingDiagnosesDescription") or []) if wrote(head) else []
    for text in [more] if isinstance(more, str) else more:
        label, colon, value = str(text).partition(": ")
        if colon and label.isidentifier():
            found.setdefault(label, value)
    return {label: value for label, value in found.items() if value}


def _years(text: str) -> int | None:
    """Of an age string (PS3.5 6.2): 040Y, 018M."""
    if len(text) < 2 or not text[:-1].isdigit() or text[-1] not in UNITS_A_YEAR:
        return None
    return int(int(text[:-1]) / UNITS_A_YEAR[text[-1]])


def _date(value: object) -> date | None:
    try:
        return datetime.strptime(str(value), "%Y%m%d").date()  # noqa: DTZ007 - a date has no zone
    except ValueError:
        return None
