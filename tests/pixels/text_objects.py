"""Synthetic objects with text drawn into their pixels, for the tests of `burned_in_text`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from pydicom import dcmread
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

from gateway.pixels import Estimate, Instance, Work
from gateway.pixels.burned_in_text import BurnedInText
from gateway.policy import load_policy
from gateway.settings import SHIPPED_POLICIES
from gateway.study import Step

PLANT = "ZZSYNTH LEAKTEST"
SHAPE = (96, 256)
CT, XA, RF, US, SC = (f"1.2.840.10008.5.1.4.1.1.{end}" for end in ("2", "12.1", "12.2", "6.1", "7"))


def mask_of(
    text: str, shape: tuple[int, int], at: tuple[int, int] = (12, 10), size: int = 16, font: str = ""
) -> NDArray[np.float64]:
    """Coverage 0..1 of one line, its top left corner at (row, column)."""
    image = Image.new("L", shape[::-1])
    face = ImageFont.truetype(font, size) if font else ImageFont.load_default(size)
    ImageDraw.Draw(image).text((at[1], at[0]), text, font=face, fill=255)
    return np.asarray(image) / 255.0


def texture(shape: tuple[int, int], seed: int = 7, top: int = 90) -> NDArray[np.float64]:
    """Smooth blobs with a little noise: synthetic anatomy without lines."""
    generator = np.random.default_rng(seed)
    coarse = Image.fromarray(generator.integers(20, top, (6, 8)).astype(np.uint8))
    smooth = np.asarray(coarse.resize(shape[::-1], Image.Resampling.BICUBIC), np.float64)
    return smooth + generator.normal(0, 2, shape)


def drawn(text: str = PLANT, shape: tuple[int, int] = SHAPE, value: float = 230, **how: object) -> NDArray[np.uint8]:
    """Texture with one line of text."""
    mask = mask_of(text, shape, **how)  # type: ignore[arg-type]
    return np.clip(texture(shape) * (1 - mask) + value * mask, 0, 255).astype(np.uint8)


def save(path: Path, frames: Sequence[NDArray[np.generic]], sop_class: str = CT, **elements: object) -> Path:
    """A native object of these frames, (rows, columns) or (rows, columns, 3) each. `elements` by keyword."""
    first = np.asarray(frames[0])
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID, dataset.SOPInstanceUID = sop_class, generate_uid(entropy_srcs=[path.name])
    dataset.file_meta.MediaStorageSOPClassUID = sop_class
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.PatientName, dataset.PatientID = "ZZSYNTH^LEAKTEST", "LEAK0001"
    dataset.PatientBirthDate = "19500131"
    dataset.Modality = "OT"
    dataset.Rows, dataset.Columns = first.shape[:2]
    dataset.SamplesPerPixel = 3 if first.ndim == 3 else 1
    dataset.PhotometricInterpretation = "RGB" if first.ndim == 3 else "MONOCHROME2"
    if first.ndim == 3:
        dataset.PlanarConfiguration = 0
    bits = first.dtype.itemsize * 8
    dataset.BitsAllocated = dataset.BitsStored = bits
    dataset.HighBit, dataset.PixelRepresentation = bits - 1, 0
    if len(frames) > 1:
        dataset.NumberOfFrames = len(frames)
    dataset.PixelData = b"".join(np.ascontiguousarray(frame).tobytes() for frame in frames)
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    dataset["PixelData"].VR = "OW" if bits > 8 else "OB"
    if len(dataset.PixelData) % 2:
        dataset.PixelData += b"\0"
    dataset.save_as(path, enforce_file_format=True)
    return path


def group_of(folder: Path, *originals: Path) -> list[Instance]:
    """Instances whose candidates are copies without the identifying values."""
    made = []
    for number, original in enumerate(originals):
        name = f"{number:04}"
        candidate = folder / f"candidate-{name}.dcm"
        dataset = dcmread(original)
        dataset.PatientName, dataset.PatientID, dataset.PatientBirthDate = "", "P1", ""
        dataset.save_as(candidate)
        made.append(Instance(name, original, candidate))
    return made


def work() -> Work:
    """Under the shipped policy."""
    from gateway.app.policy.registry import REGISTRY

    return Work(load_policy(SHIPPED_POLICIES / "research-basic.yaml", REGISTRY), bytes(32))


def run(stage: BurnedInText, group: list[Instance]) -> tuple[Estimate, list[Step]]:
    estimate = stage.estimate(group, work())
    return estimate, stage.apply(group, work(), estimate)


def stored(path: Path) -> NDArray[np.generic]:
    return dcmread(path).pixel_array


def ink_left(path: Path, ink: NDArray[np.bool_], original: NDArray[np.generic]) -> float:
    """Share of the ink that is still what it was."""
    return float((stored(path)[ink] == original[ink]).mean())
