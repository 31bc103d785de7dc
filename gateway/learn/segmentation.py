"""Masks of a series as one binary segmentation (PS3.3 A.51, C.8.20)."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from gateway.learn.objects import coded, item, pixel_module

SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
CODES = {  # by the name of a mask: what is segmented (CID 7150, 7151, 7159)
    "lesion": ("52988006", "SCT", "Lesion"),
    "core": ("108369006", "SCT", "Neoplasm"),
    "brain": ("12738006", "SCT", "Brain"),
    "head": ("69536005", "SCT", "Head"),
    "lungs": ("39607008", "SCT", "Lung"),
    "heart": ("80891009", "SCT", "Heart"),
}
TISSUE = ("85756007", "SCT", "Tissue")
ABNORMAL = ("49755003", "SCT", "Morphologically Abnormal Structure")
ANATOMICAL = ("123037004", "SCT", "Anatomical Structure")


def segmentation_of(
    head: Dataset, images: list[Dataset], masks: Mapping[str, NDArray[np.bool_]], series_uid: str
) -> Dataset | None:
    """A binary segmentation (PS3.3 A.51, C.8.20) of a series; frames without a voxel are left out.

    Masks are (slices, rows, columns). None when no mask has a voxel: a segmentation without frames is none.
    """
    one = copy.deepcopy(head)
    one.SOPClassUID, one.Modality, one.SeriesInstanceUID = SEGMENTATION, "SEG", series_uid
    one.SOPInstanceUID, one.InstanceNumber, one.SeriesNumber = f"{series_uid}.1", 1, 100
    one.SeriesDescription, one.ImageType = "segmentation", ["DERIVED", "PRIMARY"]
    one.ContentLabel, one.ContentDescription, one.ContentCreatorName = "MASKS", "", ""
    one.SegmentationType, one.SegmentsOverlap, one.LossyImageCompression = "BINARY", "YES", "00"
    one.SegmentSequence = [_segment(number, name) for number, name in enumerate(masks, 1)]
    frames, bits = [], []
    for number, mask in enumerate(masks.values(), 1):
        for index in np.flatnonzero(mask.any((1, 2))):
            frames.append(_frame(images[index], number, int(index)))
            bits.append(mask[index].ravel())
    if not frames:
        return None
    first = images[0]
    pixel_module(one, 1, first.Rows, first.Columns)
    one.NumberOfFrames, one.PerFrameFunctionalGroupsSequence = len(frames), frames
    one.SharedFunctionalGroupsSequence = [_shared(first)]
    one.ReferencedSeriesSequence = [_series(images)]
    one.DimensionOrganizationSequence = [item(DimensionOrganizationUID=f"{series_uid}.2")]
    pointers = [(0x0062000B, 0x0062000A)]  # segment number
    if "FrameOfReferenceUID" in first:
        one.PositionReferenceIndicator = ""
        pointers.append((0x00200032, 0x00209113))  # position
    one.DimensionIndexSequence = [
        item(DimensionOrganizationUID=f"{series_uid}.2", DimensionIndexPointer=value, FunctionalGroupPointer=group)
        for value, group in pointers
    ]
    packed = np.packbits(np.concatenate(bits), bitorder="little").tobytes()
    one.PixelData = packed + b"\0" * (len(packed) % 2)
    return one


def _segment(number: int, name: str) -> Dataset:
    code = CODES.get(name, TISSUE)
    category = ABNORMAL if name in ("lesion", "core") or code is TISSUE else ANATOMICAL
    return item(
        SegmentNumber=number,
        SegmentLabel=name,
        SegmentAlgorithmType="AUTOMATIC",
        SegmentAlgorithmName="SYNTHETIC",
        SegmentedPropertyCategoryCodeSequence=[coded(*category)],
        SegmentedPropertyTypeCodeSequence=[coded(*code)],
    )


def _frame(image: Dataset, segment: int, index: int) -> Dataset:
    source = item(
        ReferencedSOPClassUID=image.SOPClassUID,
        ReferencedSOPInstanceUID=image.SOPInstanceUID,
        PurposeOfReferenceCodeSequence=[coded("121322", "DCM", "Source image for image processing operation")],
    )
    derived = item(SourceImageSequence=[source], DerivationCodeSequence=[coded("113076", "DCM", "Segmentation")])
    frame = item(
        DerivationImageSequence=[derived],
        SegmentIdentificationSequence=[item(ReferencedSegmentNumber=segment)],
        FrameContentSequence=[item(DimensionIndexValues=[segment])],
    )
    if "ImagePositionPatient" in image:
        frame.FrameContentSequence[0].DimensionIndexValues = [segment, index + 1]
        frame.PlanePositionSequence = [item(ImagePositionPatient=image.ImagePositionPatient)]
    return frame


def _shared(image: Dataset) -> Dataset:
    shared = Dataset()
    if "ImageOrientationPatient" in image:
        shared.PlaneOrientationSequence = [item(ImageOrientationPatient=image.ImageOrientationPatient)]
        shared.PixelMeasuresSequence = [
            item(
                PixelSpacing=image.PixelSpacing,
                SliceThickness=image.SliceThickness,
                SpacingBetweenSlices=image.SpacingBetweenSlices,
            )
        ]
    return shared


def _series(images: list[Dataset]) -> Dataset:
    references = [
        item(ReferencedSOPClassUID=image.SOPClassUID, ReferencedSOPInstanceUID=image.SOPInstanceUID) for image in images
    ]
    return item(SeriesInstanceUID=images[0].SeriesInstanceUID, ReferencedInstanceSequence=references)
