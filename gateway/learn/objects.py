"""Objects of one scan: MR slices of a volume, a CR film, an ophthalmic photograph.

A pixel is the value of 0 to 1 in twelve bits (eight for photographs); slope 1/4095 says so, and gives it back.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import UID, ExplicitVRLittleEndian

from gateway.learn.people import long_string
from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME
from models.cohorts import Scan
from models.cohorts.cohort import Pixels

MR = "1.2.840.10008.5.1.4.1.1.4"
CR = "1.2.840.10008.5.1.4.1.1.1"
OPHTHALMIC = "1.2.840.10008.5.1.4.1.1.77.1.5.1"
SECONDARY = "1.2.840.10008.5.1.4.1.1.7"
BITS, WHITE = 12, 4095
AXIAL = [1, 0, 0, 0, 1, 0]  # columns to the person's left, rows to the back: the axes of `Scan`
TIMES_MS = {"T1": (2000, 3, 900), "T1c": (2000, 3, 900), "T2": (5000, 90, 0), "FLAIR": (9000, 120, 2500)}  # TR, TE, TI
EYES = {"left": "L", "l": "L", "right": "R", "r": "R"}


def slices_of(head: Dataset, scan: Scan, volume: Pixels) -> Iterator[Dataset]:
    """Classic MR images (PS3.3 A.4), one for each slice, from feet to head; the modality LUT is an extension."""
    if scan.spacing_mm is None or len(scan.spacing_mm) != 3:
        raise ValueError("a volume without spacing along three axes cannot be written as a series")
    z, y, x = scan.spacing_mm
    slices, rows, columns = volume.shape
    head = copy.deepcopy(head)
    sequence = scan.attributes.get("sequence", "T1")
    repetition, echo, inversion = TIMES_MS.get(sequence, TIMES_MS["T1"])
    head.SOPClassUID, head.Modality, head.ImageType = MR, "MR", ["ORIGINAL", "PRIMARY", "OTHER"]
    head.BodyPartExamined, head.PatientPosition, head.Laterality = "HEAD", "HFS", ""
    head.SeriesDescription = head.ProtocolName = long_string(sequence)
    head.ScanningSequence, head.SequenceVariant, head.ScanOptions = ["IR" if inversion else "SE"], "NONE", ""
    head.MRAcquisitionType, head.MagneticFieldStrength, head.EchoTrainLength = "3D", 3, 1
    head.RepetitionTime, head.EchoTime = repetition, echo
    if inversion:
        head.InversionTime = inversion
    if sequence == "T1c":
        head.ContrastBolusAgent = "SYNTHETIC"
    head.PositionReferenceIndicator = ""
    head.ImageOrientationPatient, head.PixelSpacing = AXIAL, [decimal(y), decimal(x)]
    head.SliceThickness = head.SpacingBetweenSlices = decimal(z)
    pixel_module(head, BITS, rows, columns)
    _slope(head)
    stored = _stored(volume, WHITE).astype("<u2")
    for index in range(slices):
        one = Dataset()
        one.update({element.tag: element for element in head})  # shared: below there are only new elements
        one.SOPInstanceUID, one.InstanceNumber = f"{head.SeriesInstanceUID}.{index + 1}", index + 1
        corner = (-(columns - 1) / 2 * x, -(rows - 1) / 2 * y, (index - (slices - 1) / 2) * z)
        one.ImagePositionPatient, one.SliceLocation = [decimal(value) for value in corner], decimal(corner[2])
        one.PixelData = stored[index].tobytes()
        yield one


def film_of(head: Dataset, scan: Scan, image: Pixels) -> Dataset:
    """A computed radiograph (PS3.3 A.2)."""
    one = copy.deepcopy(head)
    one.SOPClassUID, one.Modality, one.ImageType = CR, "CR", ["ORIGINAL", "PRIMARY"]
    one.BodyPartExamined, one.ViewPosition = "CHEST", _view(scan.attributes.get("view", ""))
    one.SOPInstanceUID, one.InstanceNumber = f"{head.SeriesInstanceUID}.1", 1
    one.SeriesDescription, one.PatientOrientation, one.Laterality = "chest", ["L", "F"], ""
    if scan.spacing_mm is not None:
        one.ImagerPixelSpacing = [decimal(value) for value in scan.spacing_mm]
    pixel_module(one, BITS, *image.shape)
    _slope(one)
    one.PixelData = _stored(image, WHITE).astype("<u2").tobytes()
    return one


def photograph_of(head: Dataset, scan: Scan, image: Pixels) -> Dataset:
    """An ophthalmic photograph of 8 bits (PS3.3 A.41), in colour (RGB, by pixel) where the image is; of an eye that
    nobody names a secondary capture (A.8).
    """
    one = copy.deepcopy(head)
    one.Modality, one.ImageType, one.SeriesDescription = "OP", ["ORIGINAL", "PRIMARY"], "fundus"
    one.SOPInstanceUID, one.InstanceNumber = f"{head.SeriesInstanceUID}.1", 1
    side = EYES.get(scan.attributes.get("eye", "").lower())
    if side is None:
        one.SOPClassUID, one.ConversionType = SECONDARY, "SYN"
    else:
        _ophthalmic(one, side)
    if scan.spacing_mm is not None:
        one.PixelSpacing = [decimal(value) for value in scan.spacing_mm]
    pixel_module(one, 8, *image.shape[:2])
    if image.ndim == 3:
        one.SamplesPerPixel, one.PhotometricInterpretation, one.PlanarConfiguration = 3, "RGB", 0
        one.pop("PresentationLUTShape", None)  # of grey alone (PS3.3 C.8.17.5)
    data = _stored(image, 255).astype(np.uint8).tobytes()
    one.PixelData = data + b"\0" * (len(data) % 2)
    return one


def _view(text: str) -> str:
    """As a CS holds it (PS3.5 6.2), "" for what cannot be one."""
    code = text.upper()
    return code if len(code) <= 16 and all(one.isascii() and (one.isalnum() or one in " _") for one in code) else ""


def _ophthalmic(one: Dataset, side: str) -> None:
    """PS3.3 C.8.17.1 to C.8.17.5; Image Laterality is required there."""
    one.SOPClassUID, one.ImageLaterality, one.NumberOfFrames = OPHTHALMIC, side, 1
    one.AcquisitionDateTime = f"{one.AcquisitionDate}{one.AcquisitionTime}"
    one.AnatomicRegionSequence = [coded("5665001", "SCT", "Retina")]
    one.AcquisitionDeviceTypeCodeSequence = [coded("409898007", "SCT", "Fundus Camera")]
    one.PatientEyeMovementCommanded, one.HorizontalFieldOfView, one.EmmetropicMagnification = "NO", None, None
    one.IntraOcularPressure, one.PupilDilated, one.RefractiveStateSequence = None, "", Sequence()
    one.IlluminationTypeCodeSequence, one.LightPathFilterTypeStackCodeSequence = Sequence(), Sequence()
    one.DetectorType, one.PresentationLUTShape, one.LossyImageCompression = "CCD", "IDENTITY", "00"


def with_meta(dataset: Dataset) -> Dataset:
    """Ready for `save_as`."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = dataset.SOPClassUID, dataset.SOPInstanceUID
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.ImplementationClassUID = UID(IMPLEMENTATION_CLASS_UID)
    meta.ImplementationVersionName = IMPLEMENTATION_VERSION_NAME
    dataset.file_meta = meta
    return dataset


def pixel_module(dataset: Dataset, bits: int, rows: int, columns: int) -> None:
    """PS3.3 C.7.6.3, one grey sample."""
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.Rows, dataset.Columns, dataset.PixelRepresentation = rows, columns, 0
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = (16 if bits > 8 else bits), bits, bits - 1
    dataset.BurnedInAnnotation = "NO"


def _slope(dataset: Dataset) -> None:
    dataset.RescaleSlope, dataset.RescaleIntercept, dataset.RescaleType = decimal(1 / WHITE), 0, "US"
    dataset.WindowCenter, dataset.WindowWidth = "0.5", "1"


def _stored(values: Pixels, white: int) -> NDArray[np.float32]:
    return np.asarray(np.rint(np.clip(values, 0, 1) * np.float32(white)), np.float32)


def decimal(value: float) -> str:
    """A decimal string of at most 16 characters (PS3.5 6.2)."""
    text = repr(round(value, 10))
    return text if len(text) <= 16 else f"{value:.9g}"


def coded(value: str, scheme: str, meaning: str) -> Dataset:
    return item(CodeValue=value, CodingSchemeDesignator=scheme, CodeMeaning=meaning)


def item(**values: object) -> Dataset:
    made = Dataset()
    for keyword, value in values.items():
        setattr(made, keyword, value)
    return made
