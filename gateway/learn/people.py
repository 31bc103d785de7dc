"""What every object of a synthetic patient says: names that shout SYNTHETIC, dates, UIDs; all the same each time.

UIDs are derived from the cohort and the scan (2.25 and 128 bits of a sha256, PS3.5 B.2): written twice, a cohort gives
the same bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date, timedelta

from pydicom.dataset import Dataset

from models.cohorts import Cohort, Scan

EARLIEST = date(2015, 1, 1)
SPREAD_DAYS = 1500  # of first visits
MAPPED = frozenset({"sex", "age", "age_band", "sequence", "manufacturer", "view", "eye", "site", "modality"})
SEXES = frozenset({"M", "F", "O"})  # PS3.3 C.7.1.1
LO_LENGTH = 64
MARK, REAL = "SYNTHETIC", "COHORT"  # people who do not exist, and those of a research data set
NO_PART = str.maketrans("^=", "--")  # they part the components and groups of a name (PS3.5 6.2.1)


def uid_of(*parts: str) -> str:
    """Deterministic, at most 44 characters."""
    bits = bytearray(hashlib.sha256("\0".join(parts).encode()).digest()[:16])
    bits[6], bits[8] = (bits[6] & 0x0F) | 0x80, (bits[8] & 0x3F) | 0x80  # RFC 9562, version 8
    return f"2.25.{int.from_bytes(bits, 'big')}"


def long_string(text: str) -> str:
    """As an LO holds it (PS3.5 6.2): at most 64 characters, no backslash, no control characters, no outer space."""
    return "".join(" " if one == "\\" or not one.isprintable() else one for one in text)[:LO_LENGTH].strip()


@dataclass(frozen=True, slots=True)
class Birth:
    """Of one person: the date of the first visit, and the birth date, None when no age is known."""

    first: date
    born: date | None


def births(cohort: Cohort) -> dict[str, Birth]:
    """Of everybody, so that every object of a person says the same."""
    found: dict[str, Birth] = {}
    for scan in sorted(cohort, key=lambda scan: scan.day or 0.0):
        if scan.subject not in found:
            digest = hashlib.sha256(f"{cohort.name}\0{scan.subject}".encode()).digest()
            first = EARLIEST + timedelta(days=int.from_bytes(digest[:4], "big") % SPREAD_DAYS)
            age = scan.attributes.get("age")
            born = date(first.year - int(float(age)), 1, 1) if age else None
            found[scan.subject] = Birth(first, born)
    return found


def patient_and_study(cohort: Cohort, scan: Scan, birth: Birth) -> Dataset:
    """Patient and General Study modules (PS3.3 C.7.1.1, C.7.2.1), and what is known of the equipment (C.7.5.1).

    Raises ValueError for a subject that cannot be a PatientID: two people must not become one by what is cut off.
    """
    dataset = Dataset()
    if long_string(scan.subject) != scan.subject or not scan.subject:
        raise ValueError(f"a subject is 1 to {LO_LENGTH} characters without backslash, control or outer space")
    kind = MARK if cohort.synthetic else REAL
    dataset.PatientName = f"{kind}^{scan.subject.translate(NO_PART)}"
    dataset.PatientID = scan.subject
    dataset.PatientSex = scan.attributes.get("sex", "") if scan.attributes.get("sex") in SEXES else ""
    dataset.PatientBirthDate = f"{birth.born:%Y%m%d}" if birth.born else ""
    if age := scan.attributes.get("age"):
        dataset.PatientAge = f"{int(float(age)):03d}Y"
    on = birth.first + timedelta(days=scan.day or 0.0)
    dataset.StudyInstanceUID = uid_of(cohort.name, scan.subject, scan.session)
    dataset.StudyDate = dataset.SeriesDate = dataset.AcquisitionDate = dataset.ContentDate = f"{on:%Y%m%d}"
    dataset.StudyTime = dataset.SeriesTime = dataset.AcquisitionTime = dataset.ContentTime = "120000"
    dataset.SpecificCharacterSet = "ISO_IR 192"
    dataset.StudyID, dataset.AccessionNumber, dataset.ReferringPhysicianName = "1", "", ""
    dataset.StudyDescription = f"{kind} cohort"
    more = [long_string(f"{name}: {value}") for name, value in scan.attributes.items() if name not in MAPPED]
    if more:
        dataset.AdmittingDiagnosesDescription = more  # where `read_dicom` looks for them
    dataset.Manufacturer = long_string(scan.attributes.get("manufacturer") or f"{kind} {scan.site or 'scanner'}")
    dataset.ManufacturerModelName = _model(kind)
    dataset.InstitutionName, dataset.StationName = long_string(scan.site), ""
    dataset.DeviceSerialNumber, dataset.SoftwareVersions = "0", "0"
    return dataset


def wrote(dataset: Dataset) -> bool:
    """Whether an object comes from here: only then are its descriptions labels, and no free text."""
    return str(dataset.get("ManufacturerModelName")) in (_model(MARK), _model(REAL))


def _model(kind: str) -> str:
    return f"{kind} model"
