"""Volumes as DICOM and back: one enhanced MR, CT or PET object for each, as a scanner would send them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

from gateway.volumes import Volume

CLASSES = {
    "MR": "1.2.840.10008.5.1.4.1.1.4.1",
    "CT": "1.2.840.10008.5.1.4.1.1.2.1",
    "PT": "1.2.840.10008.5.1.4.1.1.130",
}
CT_OFFSET = 1024


def write_enhanced(volume: Volume, path: Path, modality: str, *, pixels: bool = True) -> None:
    """16 bits, unsigned; CT with Rescale Intercept -1024. Axes of `volume` are at right angles to each other."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = CLASSES[modality]
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[path.name])
    dataset.Modality, dataset.ImageType = modality, ["ORIGINAL", "PRIMARY"]
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID, dataset.FrameOfReferenceUID = (
        generate_uid(entropy_srcs=[path.name, what]) for what in ("study", "series", "frame")
    )
    frames, dataset.Rows, dataset.Columns = volume.values.shape
    dataset.NumberOfFrames = frames
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation, dataset.PixelRepresentation = 1, "MONOCHROME2", 0
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 16, 16, 15
    dataset.SharedFunctionalGroupsSequence = [_shared(volume, modality)]
    dataset.PerFrameFunctionalGroupsSequence = [_own(volume, number) for number in range(frames)]
    offset = CT_OFFSET if modality == "CT" else 0
    if pixels:  # else the caller appends them
        dataset.PixelData = np.rint(volume.values + offset).clip(0, 65535).astype("<u2").tobytes()
    dataset.save_as(path, enforce_file_format=True)


def _shared(volume: Volume, modality: str) -> Dataset:
    shared, measures, orientation, transform = Dataset(), Dataset(), Dataset(), Dataset()
    x_mm, y_mm, z_mm = (float(one) for one in volume.spacing_mm)
    measures.PixelSpacing, measures.SliceThickness = [y_mm, x_mm], z_mm
    axes = volume.affine[:3, :3] / volume.spacing_mm
    orientation.ImageOrientationPatient = [round(float(one), 6) for one in (*axes[:, 0], *axes[:, 1])]
    transform.RescaleSlope, transform.RescaleIntercept = 1, -CT_OFFSET if modality == "CT" else 0
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [orientation]
    shared.PixelValueTransformationSequence = [transform]
    return shared


def _own(volume: Volume, number: int) -> Dataset:
    own, position = Dataset(), Dataset()
    position.ImagePositionPatient = [round(float(one), 4) for one in (volume.affine @ [0, 0, number, 1])[:3]]
    own.PlanePositionSequence = [position]
    return own


def stored(path: Path) -> NDArray[np.generic]:
    """Stored values [slice, row, column], read by pydicom."""
    return pydicom.dcmread(path).pixel_array
