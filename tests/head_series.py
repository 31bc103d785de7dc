"""Synthetic heads as DICOM: the template head at 4 mm in slices of 8 mm, with noise, single slices or multi-frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid
from scipy import ndimage

from gateway.pixels.head_template import head_template
from gateway.pixels.stage import Instance
from gateway.volumes import Volume

SPACING_MM, SLICES_MM = 4.0, 8.0
FRAME = generate_uid(entropy_srcs=["frame of reference"])
STUDY = generate_uid(entropy_srcs=["study"])
CLASSES = {
    "MR": "1.2.840.10008.5.1.4.1.1.4",
    "CT": "1.2.840.10008.5.1.4.1.1.2",
    "ENHANCED": "1.2.840.10008.5.1.4.1.1.4.1",
}


def head_volume(modality: str = "MR", seed: int = 1, turn: float = 0.1) -> Volume:
    """Synthetic: [z, y, x] at 8, 4, 4 mm along LPS, nodded by `turn` radians, moved; CT has bone where T1 is dark."""
    template = head_template()
    random = np.random.default_rng(seed)
    values = template.t1.astype(np.float32)
    if modality == "CT":
        inner = ndimage.binary_erosion(template.head, iterations=4)
        values = np.where(template.head, np.where(inner & (values < 90) & ~template.brain, 900.0, 40.0), -1000.0)
    shape = (28, template.head.shape[1] // 2, template.head.shape[2] // 2)
    affine = np.diag([SPACING_MM, SPACING_MM, SLICES_MM, 1.0])
    affine[:3, 3] = np.array(template.origin_mm) + np.array([3.0, -5.0, 88.0])
    matrix = np.linalg.inv(template.affine) @ to_template(turn) @ affine
    moved = ndimage.affine_transform(
        values.astype(np.float32),
        matrix[:3, :3][::-1, ::-1],
        matrix[:3, 3][::-1],
        shape,
        order=1,
        cval=float(values.min()),
    )
    noise = random.normal(0, 12 if modality == "CT" else 3, shape)
    return Volume((moved + noise if modality == "CT" else np.abs(moved * 3 + noise)).astype(np.float32), affine)


def to_template(turn: float = 0.1) -> NDArray[np.float64]:
    """The truth of `head_volume`: from patient to template LPS mm."""
    nod = np.eye(4)
    nod[1:3, 1:3] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    nod[:3, 3] = (-2.0, 6.0, -41.0)
    return nod


def truth(mask: NDArray[np.bool_], volume: Volume) -> NDArray[np.bool_]:
    """A region of the template on the grid of `head_volume`."""
    matrix = np.linalg.inv(head_template().affine) @ to_template() @ volume.affine
    order = matrix[:3, :3][::-1, ::-1], matrix[:3, 3][::-1]
    return (
        ndimage.affine_transform(
            mask.astype(np.float32), *order, output_shape=volume.values.shape, order=1, mode="nearest"
        )
        > 0.5
    )


def block_volume(seed: int = 2) -> Volume:
    """Synthetic: a trunk, as a cylinder with a spine in it."""
    random = np.random.default_rng(seed)
    z, y, x = np.mgrid[0:40, 0:60, 0:90] * 4.0
    y, x = y - 118.0, x - 178.0
    values = 300.0 * ((x / 160) ** 2 + (y / 100) ** 2 < 1) - 250.0 * ((x / 20) ** 2 + ((y - 60) / 20) ** 2 < 1) + 0 * z
    affine = np.diag([SPACING_MM] * 3 + [1.0])
    affine[:3, 3] = (-178.0, -118.0, 0.0)
    return Volume(np.abs(values + random.normal(0, 6, values.shape)).astype(np.float32), affine)


def base(modality: str, series: str, number: int, shape: tuple[int, int]) -> Dataset:
    """One object without place and pixels."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = CLASSES[modality]
    dataset.SOPInstanceUID = generate_uid(entropy_srcs=[series, str(number)])
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.Modality = "CT" if modality == "CT" else "MR"
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = STUDY, generate_uid(entropy_srcs=[series])
    dataset.FrameOfReferenceUID = FRAME
    dataset.InstanceNumber = number + 1
    dataset.ImageType = ["ORIGINAL", "PRIMARY"]
    dataset.Rows, dataset.Columns = shape
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = (
        16,
        16 if modality == "CT" else 12,
        15 if modality == "CT" else 11,
    )
    dataset.PixelRepresentation = 1 if modality == "CT" else 0
    return dataset


def write_series(volume: Volume, folder: Path, modality: str = "MR", series: str = "a", axis: int = 0) -> list[Path]:
    """One file a slice; `axis` of the array runs over the slices: 0 axial, 1 coronal, 2 sagittal."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    columns, rows, through = {0: (0, 1, 2), 1: (0, 2, 1), 2: (1, 2, 0)}[axis]
    spacing = volume.spacing_mm
    for number in range(volume.values.shape[axis]):
        frame = np.take(volume.values, number, axis)
        dataset = base(modality, series, number, frame.shape)
        place(dataset, volume, number, columns, rows, through)
        dataset.PixelSpacing = [float(spacing[rows]), float(spacing[columns])]
        dataset.SliceThickness = float(spacing[through])
        if modality == "CT":
            dataset.RescaleSlope, dataset.RescaleIntercept = 1, -1024
            frame = frame + 1024
        dataset.PixelData = np.rint(frame).clip(0, 4095).astype("<u2").tobytes()
        paths.append(folder / f"{series}{number:04d}")
        dataset.save_as(paths[-1], enforce_file_format=True)
    return paths


def place(dataset: Dataset, volume: Volume, number: int, columns: int, rows: int, through: int) -> None:
    """Position and orientation of slice `number` into `dataset`."""
    axes = volume.affine[:3, :3] / volume.spacing_mm
    start = volume.affine[:3, 3] + volume.affine[:3, through] * number
    dataset.ImagePositionPatient = [round(float(one), 4) for one in start]
    dataset.ImageOrientationPatient = [float(one) for one in (*axes[:, columns], *axes[:, rows])]


def write_enhanced(volume: Volume, path: Path) -> Path:
    """One enhanced MR object with functional groups, its frames in reverse order of place."""
    slices = volume.values.shape[0]
    dataset = base("ENHANCED", "enhanced", 0, volume.values.shape[1:])
    dataset.NumberOfFrames = slices
    shared, measures, orientation = Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [SPACING_MM, SPACING_MM], SLICES_MM
    orientation.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [orientation]
    dataset.SharedFunctionalGroupsSequence = [shared]
    groups = []
    for number in reversed(range(slices)):
        group, position = Dataset(), Dataset()
        position.ImagePositionPatient = (volume.affine @ [0, 0, number, 1])[:3].round(4).tolist()
        group.PlanePositionSequence = [position]
        groups.append(group)
    dataset.PerFrameFunctionalGroupsSequence = groups
    dataset.PixelData = np.rint(volume.values[::-1]).clip(0, 4095).astype("<u2").tobytes()
    dataset.save_as(path, enforce_file_format=True)
    return path


def instances(paths: list[Path], folder: Path) -> list[Instance]:
    """Originals with candidates that are their copies."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, path in enumerate(paths):
        candidate = folder / f"{number:04d}"
        candidate.write_bytes(path.read_bytes())
        made.append(Instance(f"{number:04d}", path, candidate))
    return made


def values_of(paths: list[Path]) -> NDArray[np.generic]:
    """Stored values of single-frame files, stacked in the order given, by pydicom."""
    return np.stack([pydicom.dcmread(path).pixel_array for path in paths])
