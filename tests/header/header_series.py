"""Objects of synthetic series, and the two ways of scrubbing them side by side: by what repeats, and as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from header_objects import PSEUDONYMS, ct_base, encoded, policy
from test_header_properties import Node, elements_of, write

from gateway.errors import StudyError
from gateway.header.repeats import scrubbed_by_repeats
from gateway.header.scrub import scrubbed_whole
from gateway.header.scrubbed import Scrubbed
from gateway.header.source import read_source
from gateway.header.streaming import write_parts
from gateway.policy import HeaderPolicy
from gateway.pseudonyms import Pseudonyms
from gateway.study import Step

EVERYTHING = policy(
    "clean-descriptors",
    "clean-structured-content",
    "clean-graphics",
    "retain-longitudinal-modified-dates",
    "retain-patient-characteristics",
    "retain-safe-private",
    private={"dispositions": "tcia"},
)
DATES_STAY = policy("retain-longitudinal-full-dates", "retain-uids", "retain-safe-private")
ROOT = "1.2.826.0.1.3680043.8.498"

Result = tuple[bytes, Step] | tuple[str, str]


def _bytes(scrubbed: Scrubbed, source: int) -> bytes:
    target = os.memfd_create("scrubbed")
    try:
        write_parts(target, scrubbed.parts, source)
        return os.pread(target, os.fstat(target).st_size, 0)
    finally:
        os.close(target)


def by_whole(source: int, header: HeaderPolicy, pseudonyms: Pseudonyms) -> Result:
    """Bytes and step of the long way, or why there are none."""
    try:
        scrubbed = scrubbed_whole(read_source(source), header, pseudonyms)
    except StudyError as error:
        return error.reason, error.at
    return _bytes(scrubbed, source), scrubbed.step


def by_repeats(source: int, header: HeaderPolicy, pseudonyms: Pseudonyms) -> Result | None:
    """Bytes and step of the short way, None where the object is not for it."""
    scrubbed = scrubbed_by_repeats(source, header, pseudonyms)
    return None if scrubbed is None else (_bytes(scrubbed, source), scrubbed.step)


def compare(file: bytes | Path, header: HeaderPolicy, pseudonyms: Pseudonyms = PSEUDONYMS) -> bool:
    """Assert that both ways agree on a file; True when the short one was taken."""
    source = os.open(file, os.O_RDONLY) if isinstance(file, Path) else os.memfd_create("file")
    try:
        if isinstance(file, bytes):
            os.write(source, file)
        short = by_repeats(source, header, pseudonyms)
        if short is not None:
            assert short == by_whole(source, header, pseudonyms)
        return short is not None
    finally:
        os.close(source)


@lru_cache(maxsize=64)
def _parts(
    syntax: str, patient: str, series: str, instance: int, character_set: str
) -> tuple[bytes, Mapping[int, bytes]]:
    ds = ct_base()
    ds.SpecificCharacterSet = character_set
    ds.PatientID, ds.PatientName = f"LEAK{patient}", f"ZZSYNTH{patient}^LEAKTEST"
    ds.StudyInstanceUID, ds.SeriesInstanceUID = f"{ROOT}.2.{patient}", f"{ROOT}.3.{patient}.{series}"
    ds.SOPInstanceUID = f"{ROOT}.1.{patient}.{series}.{instance}"
    ds.InstanceNumber = str(instance)
    ds.SeriesDescription = f"ZZSYNTH{patient} thorax"
    ds.ProtocolName = "Thorax routine"
    file = encoded(ds, syntax)
    return file[: 144 + int.from_bytes(file[140:144], "little")], elements_of(ds, syntax)


def file_of_series(
    syntax: str,
    nodes: Iterable[Node],
    *,
    patient: str = "0001",
    series: str = "1",
    instance: int = 1,
    character_set: str = "ISO_IR 100",
) -> bytes:
    """One object: "CT base" of a patient, with other elements where the base has none of that tag."""
    meta, base = _parts(syntax, patient, series, instance, character_set)
    parts = dict(base)
    for node in nodes:
        if node[0] not in parts or node[0] & 0xFFFF == 0x1030:
            parts[node[0]] = write(node, syntax)
    return meta + b"".join(parts[tag] for tag in sorted(parts))
