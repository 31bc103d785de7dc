"""Which objects of a study show, draw or describe the anatomy that a learned stage replaces: all must follow."""

from __future__ import annotations

from collections.abc import Sequence

import pydicom
from pydicom.dataset import Dataset
from pydicom.errors import InvalidDicomError

from gateway.errors import Hold
from gateway.pixels.stage import Instance

SHOWS = (  # pictures, shapes, words and measures of the anatomy that is replaced
    *("Rows", "ROIContourSequence", "SurfaceSequence", "TrackSetSequence", "EncapsulatedDocument", "ContentSequence"),
    *("GraphicAnnotationSequence", "DeformableRegistrationSequence", "FiducialSetSequence", "DVHSequence"),
)
RAW = frozenset({"1.2.840.10008.5.1.4.1.1.66", "1.2.840.10008.5.1.4.1.1.4.2"})  # raw data, spectroscopy
FAILURES = (OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, NotImplementedError)


def shown_in(headers: Sequence[Dataset]) -> list[int]:
    """Numbers of the objects that show, draw or describe anatomy."""
    return [
        number
        for number, header in enumerate(headers)
        if str(header.get("SOPClassUID", "")) in RAW or any(keyword in header for keyword in SHOWS)
    ]


def header_of(instance: Instance) -> Dataset:
    """As it was received, without pixels. Raises Hold("pixels_unreadable")."""
    try:
        return pydicom.dcmread(instance.original, stop_before_pixels=True, force=True)
    except (*FAILURES, InvalidDicomError):
        raise Hold("pixels_unreadable", at=instance.name) from None
