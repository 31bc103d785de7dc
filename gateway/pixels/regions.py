"""What is known of devices: where on their screens text stands, whatever a detector sees there.

`policies/regions/*.yaml`, strict: an unknown key or value is a fault with file and line. A policy may bring rules of
its own (`burned_in_text: {regions: [...]}`), tried first. The first rule whose every predicate fits is the device's.
A rule is no exemption: what is outside its regions is looked at as everything else.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydicom.dataset import Dataset

from gateway.errors import PolicyError
from gateway.policy.document import Faulty, read_document
from gateway.policy.parsing import parse
from gateway.settings import SHIPPED_POLICIES
from gateway.study import canonical_json

FOLDER = SHIPPED_POLICIES / "regions"
MAX_SIDE = 65535
Place = tuple[int, int, int, int]  # top, left, bottom, right, half open


def _region(value: tuple[int, ...]) -> tuple[int, ...]:
    top, left, bottom, right = value
    if not (0 <= top < bottom <= MAX_SIDE and 0 <= left < right <= MAX_SIDE):
        raise Faulty("a region is [top, left, bottom, right] in pixels, half open, top < bottom and left < right")
    return value


def _pattern(value: str) -> str:
    if value.strip("* ") == "":
        raise Faulty("a pattern of * alone fits every device", "name the maker or the model")
    return value.casefold()


Region = Annotated[tuple[int, int, int, int], AfterValidator(_region)]
Pattern = Annotated[
    str, StringConstraints(min_length=1, max_length=64, strip_whitespace=True), AfterValidator(_pattern)
]
Patterns = Annotated[tuple[Pattern, ...], Field(min_length=1)]
Uid = Annotated[str, StringConstraints(pattern=r"^[0-9.]{1,64}$")]
Size = Annotated[int, Field(ge=1, le=MAX_SIDE)]
OUTSIDE, DETECT = "blank", "detect"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Device(_Strict):
    """Predicates over the header as received; all that are given must fit. `*` stands for any letters."""

    manufacturer: Patterns
    model: Patterns | None = None
    software: Patterns | None = None
    sop_class: Annotated[tuple[Uid, ...], Field(min_length=1)] | None = None
    rows: Size | None = None
    columns: Size | None = None

    def fits(self, header: Dataset) -> bool:
        return (
            _like(header, "Manufacturer", self.manufacturer)
            and _like(header, "ManufacturerModelName", self.model)
            and _like(header, "SoftwareVersions", self.software)
            and (self.sop_class is None or str(header.get("SOPClassUID") or "") in self.sop_class)
            and (self.rows is None or header.get("Rows") == self.rows)
            and (self.columns is None or header.get("Columns") == self.columns)
        )


def _like(header: Dataset, keyword: str, patterns: Sequence[str] | None) -> bool:
    if patterns is None:
        return True
    value = header.get(keyword)
    values = [value] if isinstance(value, str) or value is None else list(value)
    said = [str(one or "").strip().casefold() for one in values]
    return any(fnmatch.fnmatchcase(one, pattern) for one in said for pattern in patterns)


class RegionRule(_Strict):
    """One device's screen. `blank` goes on every frame; `outside_image` is what SequenceOfUltrasoundRegions leaves."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    device: Device
    blank: tuple[Region, ...] = ()
    outside_image: Literal["detect", "blank"] = "detect"
    source: Annotated[str, StringConstraints(min_length=1, max_length=400)]

    @model_validator(mode="after")
    def _located(self) -> RegionRule:
        if self.blank and (self.device.rows is None or self.device.columns is None):
            raise Faulty("regions in pixels need the size of the screen", "add rows and columns to device")
        return self


class RegionFile(_Strict):
    """One file of `policies/regions`."""

    rules: Annotated[tuple[RegionRule, ...], Field(min_length=1)]


@cache
def load_regions(folder: Path = FOLDER) -> tuple[RegionRule, ...]:
    """The shipped rules, by file name, then in the order of the file. Raises PolicyError with every fault."""
    rules: list[RegionRule] = []
    faults = []
    for path in sorted(folder.glob("*.yaml")):
        document = read_document(path)
        if not document.faults:
            read, _ = parse(RegionFile, document, (), document.data)
            for at, rule in enumerate(read.rules if read else ()):
                if rule.name in {known.name for known in rules}:
                    document.fault(("rules", at, "name"), f"the rule {rule.name} is there twice", "rename one")
                rules.append(rule)
        faults += document.faults
    if faults:
        raise PolicyError(faults)
    return tuple(rules)


@cache
def tables_digest(folder: Path = FOLDER) -> str:
    """16 hex over what the shipped rules and word lists say: another table is another policy."""
    parts: dict[str, object] = {"rules": [rule.model_dump(mode="json") for rule in load_regions(folder)]}
    for path in sorted(folder.glob("*.txt")):
        lines = (line.partition("#")[0].split() for line in path.read_text("utf-8").splitlines())
        parts[path.name] = sorted({word.casefold() for line in lines for word in line})
    return hashlib.sha256(canonical_json(parts)).hexdigest()[:16]


def rule_for(header: Dataset, own: Iterable[RegionRule] = ()) -> RegionRule | None:
    """The first rule that fits a header as received, None for an unknown device."""
    return next((rule for rule in (*own, *load_regions()) if rule.device.fits(header)), None)


def image_regions(header: Dataset) -> list[Place]:
    """Where SequenceOfUltrasoundRegions (PS3.3 C.8.5.5) says that there is image; [] where it says nothing usable."""
    found = []
    for item in header.get("SequenceOfUltrasoundRegions") or ():
        sides = [item.get(f"RegionLocation{end}") for end in ("MinY0", "MinX0", "MaxY1", "MaxX1")]
        if any(not isinstance(side, int) for side in sides):
            return []
        top, left, bottom, right = sides
        if not (0 <= top < bottom and 0 <= left < right):
            return []
        found.append((top, left, bottom + 1, right + 1))  # the corners are part of the region
    return found


def outside(inside: Sequence[Place], rows: int, columns: int) -> list[Place]:
    """What a picture has around its regions, as bands: rows between the edges of regions, cut at their sides."""
    if not inside:
        return []
    cuts = sorted({0, rows, *(min(edge, rows) for region in inside for edge in (region[0], region[2]))})
    found: list[Place] = []
    for top, bottom in pairwise(cuts):
        at = 0
        for left, right in sorted((r[1], min(r[3], columns)) for r in inside if r[0] <= top and bottom <= r[2]):
            if left > at:
                found.append((top, at, bottom, left))
            at = max(at, right)
        if at < columns:
            found.append((top, at, bottom, columns))
    return found
