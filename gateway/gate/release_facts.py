"""What a release needs to know of a study besides its images: session, kept attributes, attributes to infer.

Values are read here and hashed under a key at once: what is stored and compared is equality, never a value.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pydicom
from pydicom import Dataset

from gateway.gate.reading import Pair, judging
from gateway.policy import Policy
from gateway.policy.kept import kept_keywords

# Attributes that an attacker may infer, and what in a header gives them away when it is kept.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "sex": ("PatientSex",),
    "age_band": ("PatientAge", "PatientBirthDate"),
    "site": ("InstitutionName", "InstitutionAddress", "InstitutionCodeSequence"),
    "scanner": ("DeviceSerialNumber", "StationName"),
}
AGE_BAND_YEARS = 10


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one study. Every value is a keyed hash of 24 hex characters; `session` is "" when no date is there."""

    session: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)


def facts_of(pairs: Sequence[Pair], policy: Policy, key: bytes) -> Facts:
    """Raises Hold("gate_failed") for a header that cannot be read."""
    originals, candidates = [], []
    for pair in pairs:
        with judging(pair.name):
            originals.append(_values(pair.original, {*_READERS, "StudyDate"}))
            candidates.append(_values(pair.candidate, kept_keywords(policy.header)))
    dates = {values["StudyDate"] for values in originals if "StudyDate" in values}
    attributes = {}
    for name, read in _BY_ATTRIBUTE.items():
        found = {value for values in originals if (value := read(values))}
        if len(found) == 1:
            attributes[name] = hashed(key, name, found.pop())
    kept: dict[str, set[str]] = {}
    for values in candidates:
        for keyword, value in values.items():
            kept.setdefault(keyword, set()).add(value)
    return Facts(
        hashed(key, "session", dates.pop()) if len(dates) == 1 else "",
        attributes,
        {keyword: hashed(key, keyword, "|".join(sorted(found))) for keyword, found in sorted(kept.items())},
    )


def hashed(key: bytes, name: str, value: str) -> str:
    """24 hex characters: equal for equal values of one name, and nothing else."""
    return hmac.new(key, f"{name}\0{value}".encode(), hashlib.sha256).hexdigest()[:24]


def _values(path: object, keywords: set[str] | frozenset[str]) -> dict[str, str]:
    """Top-level values that are there, as text; sequences and bulk are no attribute of a person's group."""
    if not keywords:
        return {}
    dataset = pydicom.dcmread(str(path), stop_before_pixels=True, specific_tags=sorted(keywords))
    return {keyword: text for keyword in keywords if (text := _text(dataset, keyword))}


def _text(dataset: Dataset, keyword: str) -> str:
    element = dataset.get_item(keyword) if keyword in dataset else None
    if element is None or dataset[keyword].VR in ("SQ", "OB", "OW", "OD", "OF", "OL", "OV", "UN"):
        return ""
    return str(dataset[keyword].value).strip(" \0")


def _age_band(values: Mapping[str, str]) -> str:
    age = values.get("PatientAge", "")
    if len(age) == 4 and age[:3].isdigit() and age[3] in "DWMY":
        years = int(age[:3]) if age[3] == "Y" else 0
        return str(years // AGE_BAND_YEARS)
    born, taken = values.get("PatientBirthDate", "")[:8], values.get("StudyDate", "")[:8]
    if len(born) == len(taken) == 8 and born.isdigit() and taken.isdigit():
        return str((int(taken) - int(born)) // 10_000 // AGE_BAND_YEARS)
    return ""


def _scanner(values: Mapping[str, str]) -> str:
    parts = [values.get(word, "") for word in ("Manufacturer", "ManufacturerModelName", "DeviceSerialNumber")]
    return "|".join(parts) if any(parts) else ""


_BY_ATTRIBUTE: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    "sex": lambda values: values.get("PatientSex", "") if values.get("PatientSex") in ("M", "F") else "",
    "age_band": _age_band,
    "site": lambda values: values.get("InstitutionName", ""),
    "scanner": _scanner,
}
_READERS = (
    *("PatientSex", "PatientAge", "PatientBirthDate", "InstitutionName"),
    *("Manufacturer", "ManufacturerModelName", "DeviceSerialNumber"),
)
