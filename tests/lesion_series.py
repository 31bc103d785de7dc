"""The small heads of `lesion_studies` as DICOM studies, and a card that is trained on them in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom
import torch
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

from gateway.learn import write_dicom
from gateway.learn.training import write_trained
from gateway.pixels.stage import Instance
from models.cards import CardFolder
from models.train.lesion import train_lesion
from models.train.lesion_segment import SegmentPlan, train_segmenter
from models.train.trained import Options
from tests.lesion_studies import PLAN, cohort

CARD = "tiny-lesion-1"
MASK_CARD = "tiny-segment-1"
MASK_PLAN = SegmentPlan(
    voxel_mm=(10.0, 8.0, 8.0), side=32, widths=(8.0, 16.0), steps=120, batch=8, rate=5e-3, evaluate_every=40
)
STRUCTURES = "1.2.840.10008.5.1.4.1.1.481.3"


def write_card(folder: Path) -> Path:
    """A tiny card into `folder`, by the training that users run."""
    torch.set_num_threads(1)
    trained = train_lesion(CARD, PLAN, [cohort(10)], Options(seed=1), lambda *_: None)
    write_trained(trained, [], CardFolder.flat(folder), lambda *_: None)
    return folder


def write_mask_card(folder: Path) -> Path:
    """A tiny card that marks the ball of these heads, into `folder`, by the training that users run."""
    torch.set_num_threads(1)
    trained = train_segmenter(MASK_CARD, MASK_PLAN, [cohort(30)], Options(seed=1), lambda *_: None)
    write_trained(trained, [], CardFolder.flat(folder), lambda *_: None)
    return folder


def write_study(folder: Path, person: int = 1) -> list[Path]:
    """T1 and FLAIR of one person, and the lesion's segmentation beside one of them; in order of their names."""
    made = cohort(person + 1).of([f"P{person:02d}"])
    write_dicom(made, folder)
    files = sorted(folder.rglob("*.dcm"))
    spare = [path for path in files if modality_of(path) == "SEG"][1:]
    for path in spare:  # one is enough
        path.unlink()
    return [path for path in files if path not in spare]


def modality_of(path: Path) -> str:
    return str(pydicom.dcmread(path, stop_before_pixels=True).Modality)


def instances(paths: list[Path], folder: Path) -> list[Instance]:
    """Originals with candidates that are their copies."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, path in enumerate(paths):
        candidate = folder / f"{number:04d}.dcm"
        candidate.write_bytes(path.read_bytes())
        made.append(Instance(f"{number:05d}", path, candidate))
    return made


def structures(image: Dataset, regions: dict[str, list[np.ndarray]]) -> Dataset:
    """An RT structure set in the space of `image`: name of a region -> polygons (n, 3) in LPS mm."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = STRUCTURES
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["rtstruct"])
    dataset.Modality, dataset.PatientID = "RTSTRUCT", image.PatientID
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = image.StudyInstanceUID, generate_uid(entropy_srcs=["rt"])
    rois, contours = [], []
    for number, (name, polygons) in enumerate(regions.items(), 1):
        roi, region = Dataset(), Dataset()
        roi.ROINumber, roi.ROIName, roi.ReferencedFrameOfReferenceUID = number, name, image.FrameOfReferenceUID
        region.ReferencedROINumber, region.ContourSequence = number, []
        for polygon in polygons:
            contour = Dataset()
            contour.ContourGeometricType, contour.NumberOfContourPoints = "CLOSED_PLANAR", len(polygon)
            contour.ContourData = [f"{one:.4f}" for one in polygon.ravel()]
            region.ContourSequence.append(contour)
        rois.append(roi)
        contours.append(region)
    dataset.StructureSetROISequence, dataset.ROIContourSequence = rois, contours
    dataset.RTROIObservationsSequence = []
    return dataset
