"""Anybody's DICOM as a cohort: every orientation upright, values as they look, nothing mixed, left out in silence."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset

from gateway.learn import read_dicom
from gateway.learn.people import uid_of
from gateway.learn.segmentation import SEGMENTATION
from gateway.volumes import upright
from models.cohorts.cohort import Pixels

SIGNED = [(axes, signs) for axes in itertools.permutations(range(3)) for signs in itertools.product((1, -1), repeat=3)]


@pytest.mark.parametrize(("axes", "signs"), SIGNED)
def test_every_orientation_is_turned_upright(axes: tuple[int, int, int], signs: tuple[int, int, int]) -> None:
    """`axes[k]`: which array axis of the person's (up, back, left) runs along axis k as acquired, in which sense."""
    truth = np.arange(2 * 3 * 4).reshape(2, 3, 4)  # slices to the head, rows to the back, columns to the left
    acquired = np.flip(truth.transpose(axes), [k for k in range(3) if signs[k] < 0])
    world = {0: 2, 1: 1, 2: 0}  # up is z, back is y, left is x (LPS)
    affine = np.eye(4)
    affine[:3, :3] = 0
    for k in range(3):
        affine[world[axes[k]], 2 - k] = signs[k] * (1.0 + k)
    assert np.array_equal(upright(affine).of(acquired), truth)


def plain(pixels: NDArray[Any], **more: object) -> Dataset:
    """A minimal image by somebody else."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.1"
    dataset.SOPClassUID, dataset.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.2", uid_of("image", repr(more))
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID, dataset.PatientID = "1.2.1", "1.2.2", "A"
    dataset.Rows, dataset.Columns = pixels.shape[:2]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.PixelRepresentation, dataset.BitsAllocated = int(pixels.dtype.kind == "i"), pixels.dtype.itemsize * 8
    dataset.BitsStored, dataset.HighBit = dataset.BitsAllocated, dataset.BitsAllocated - 1
    dataset.PixelData = pixels.tobytes() + b"\0" * (pixels.nbytes % 2)
    for keyword, value in more.items():
        setattr(dataset, keyword, value)
    return dataset


def save(folder: Path, *datasets: Dataset) -> Path:
    for number, dataset in enumerate(datasets):
        dataset.save_as(folder / f"{number}.dcm", enforce_file_format=True)
    return folder


def test_a_sagittal_ct_is_read_upright_in_hounsfield_units(tmp_path: Path) -> None:
    """Columns to the back, rows to the feet, slices to the left; -1024 HU is 0, 3071 HU is 1."""
    truth = np.random.default_rng(0).integers(-1000, 3000, (6, 5, 4)).astype(np.int16)  # up, back, left
    datasets = [
        plain(
            np.ascontiguousarray(truth[::-1, :, left]) + np.int16(24),
            Modality="CT",
            RescaleSlope=1,
            RescaleIntercept=-24,
            ImageOrientationPatient=[0, 1, 0, 0, 0, -1],
            ImagePositionPatient=[2.0 * left, 0, 60],
            PixelSpacing=[3, 1],
            InstanceNumber=left,
            PatientSex="M",
            StudyDate="20200229",
        )
        for left in range(4)
    ]
    (one,) = read_dicom(save(tmp_path, *datasets[::-1]))
    assert one.spacing_mm == pytest.approx((3, 1, 2))
    assert np.allclose(one.load(), (truth + 1024) / 4095, atol=1e-6)
    assert (one.subject, one.session, one.attributes["sex"], one.day) == ("A", "1.2.1", "M", 0.0)


def test_pictures_are_read_as_they_look(tmp_path: Path) -> None:
    grey = np.random.default_rng(0).integers(0, 256, (6, 5)).astype(np.uint8)
    colour = np.random.default_rng(1).integers(0, 256, (6, 5, 3)).astype(np.uint8)
    made: dict[str, tuple[Dataset, Pixels]] = {
        "plain": (plain(grey, Modality="OT"), grey / np.float32(255)),
        "inverted": (plain(grey, Modality="CR", PhotometricInterpretation="MONOCHROME1"), 1 - grey / np.float32(255)),
        "colour": (
            plain(colour, Modality="OP", SamplesPerPixel=3, PhotometricInterpretation="RGB", PlanarConfiguration=0),
            colour @ np.array([0.299, 0.587, 0.114]) / 255,
        ),
    }
    for name, (dataset, expected) in made.items():
        (tmp_path / name).mkdir()
        (one,) = read_dicom(save(tmp_path / name, dataset))
        assert np.allclose(one.load(), expected, atol=1.1 / 255), name
        assert one.spacing_mm is None
        assert one.day is None


def test_what_is_left_out_is_told_without_a_name(tmp_path: Path) -> None:
    pixels = np.zeros((4, 4), np.uint16)
    nobody, localizer = plain(pixels, PatientID=""), plain(pixels, Modality="MR", SeriesInstanceUID="1.2.9")
    save(tmp_path, plain(pixels, Modality="CR"), nobody, localizer)
    (tmp_path / "notes.txt").write_text("nothing of DICOM")
    told: list[str] = []
    assert len(read_dicom(tmp_path, note=told.append)) == 1
    assert len(told) == 3
    assert not any(str(tmp_path) in one for one in told)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="DICOM"):
        read_dicom(tmp_path / "empty")


def item(**values: Any) -> Dataset:
    made = Dataset()
    for keyword, value in values.items():
        setattr(made, keyword, value)
    return made


def test_an_enhanced_object_is_one_volume_and_its_segmentation_goes_by_frame(tmp_path: Path) -> None:
    """PS3.3 C.7.6.16: places by frame, here from head to feet; C.8.20: sources by Referenced Frame Number."""
    truth = np.random.default_rng(0).integers(0, 256, (3, 4, 5)).astype(np.uint8)
    volume = plain(truth[0], Modality="MR", NumberOfFrames=3, SOPInstanceUID="1.2.7")
    volume.PixelData = truth[::-1].tobytes()
    volume.SharedFunctionalGroupsSequence = [
        item(
            PixelMeasuresSequence=[item(PixelSpacing=[2, 3], SliceThickness=4)],
            PlaneOrientationSequence=[item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])],
        )
    ]
    volume.PerFrameFunctionalGroupsSequence = [
        item(PlanePositionSequence=[item(ImagePositionPatient=[0, 0, 40 - 4 * frame])]) for frame in range(3)
    ]
    lesion = np.zeros((3, 4, 5), np.bool_)
    lesion[0, 1:3, 2] = lesion[2, 0, 0] = True
    marks = plain(truth[0], Modality="SEG", SOPClassUID=SEGMENTATION, SegmentationType="BINARY", NumberOfFrames=2)
    marks.BitsAllocated, marks.BitsStored, marks.HighBit = 1, 1, 0
    marks.PixelData = np.packbits(lesion[[0, 2]].ravel(), bitorder="little").tobytes() + b"\0"
    marks.SegmentSequence = [item(SegmentNumber=1, SegmentLabel="lesion")]
    marks.PerFrameFunctionalGroupsSequence = [
        item(
            SegmentIdentificationSequence=[item(ReferencedSegmentNumber=1)],
            DerivationImageSequence=[
                item(SourceImageSequence=[item(ReferencedSOPInstanceUID="1.2.7", ReferencedFrameNumber=number)])
            ],
        )
        for number in (3, 1)  # the frames run from head to feet
    ]
    (one,) = read_dicom(save(tmp_path, volume, marks))
    assert np.allclose(one.load(), truth / 255, atol=1e-6)
    assert one.spacing_mm == pytest.approx((4, 2, 3))
    assert np.array_equal(one.masks["lesion"](), lesion)


def test_one_series_uid_of_two_people_is_not_one_series(tmp_path: Path) -> None:
    pixels = np.zeros((4, 4), np.uint16)
    save(tmp_path, *(plain(pixels, Modality="CR", PatientID=name) for name in "AB"))
    assert read_dicom(tmp_path).subjects == ("A", "B")


def test_an_age_in_months_is_counted_in_years(tmp_path: Path) -> None:
    (one,) = read_dicom(save(tmp_path, plain(np.zeros((4, 4), np.uint16), Modality="CR", PatientAge="030M")))
    assert (one.attributes["age"], one.attributes["age_band"]) == ("2", "0-19")
