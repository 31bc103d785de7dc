"""Real frames that `bench.text` draws on, and the text that they had before: `text_frames.csv`, checked by eye.

Radiographs of `cxr` (8 bits), frames of `dicom` (CT, MR, CR, NM, PT, US) and axial slices of `heads` and `brain_mri`
(`file:number`), in two halves that share no person. A
frame is written as an object of one of several kinds, so that a stage meets every form of stored values.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydicom import dcmread
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian
from scipy.ndimage import zoom

from gateway.frames import EncodedImage

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
TABLE = Path(__file__).with_suffix(".csv")
Box = tuple[int, int, int, int]  # top, left, bottom, right
SCREEN_PX = 640  # the longer side of an enlarged slice
SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"


@dataclass(frozen=True, slots=True)
class Frame:
    """One real frame; `own_text` is what was in it already."""

    file: str
    half: str
    own_text: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How a frame is stored."""

    name: str
    bits: int = 8
    inverted: bool = False
    samples: int = 1
    palette: bool = False

    @property
    def top(self) -> int:
        return (1 << self.bits) - 1


FORMS = (
    Form("8 bits"),
    Form("12 bits", bits=12),
    Form("16 bits", bits=16),
    Form("MONOCHROME1", bits=10, inverted=True),
    Form("palette", palette=True),
)
COLOUR = Form("RGB", samples=3)


def frames(half: str) -> list[Frame]:
    """The frames of one half. Raises FileNotFoundError where there is no shared data."""
    if not SHARED.is_dir():
        raise FileNotFoundError(f"no shared data at {SHARED}")
    return [Frame(row["file"], half, tuple(_boxes(row["own_text"]))) for row in _rows() if row["half"] == half]


def listed() -> frozenset[str]:
    """Files whose own text is known."""
    return frozenset(row["file"] for row in _rows())


def _rows() -> list[dict[str, str]]:
    with open(TABLE, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _boxes(cell: str) -> list[Box]:
    found = []
    for part in cell.split():
        top, left, bottom, right = (int(side) for side in part.split(","))
        found.append((top, left, bottom, right))
    return found


def pixels(frame: Frame) -> NDArray[np.float64]:
    """(rows, columns) in 0..1, light where a viewer shows light."""
    name, _, at = frame.file.partition(":")
    path = SHARED / name
    if at:
        return _slice(path, int(at))
    if path.suffix in (".png", ".jpg"):
        with Image.open(path) as image:
            return np.asarray(image.convert("L"), np.float64) / 255
    with EncodedImage.open(path) as image:
        stored, photometric = image.stored(0), image.photometric
        if stored.ndim == 3 or photometric == "PALETTE COLOR":
            shown = image.shown(0).astype(np.float64) / 255
            return shown if shown.ndim == 2 else shown @ np.array([0.299, 0.587, 0.114])
    grey = stored.astype(np.float64)
    low, high = np.percentile(grey, (0.1, 99.9))
    unit = np.clip((grey - low) / max(high - low, 1), 0, 1)
    return 1 - unit if photometric == "MONOCHROME1" else unit


def _slice(path: Path, at: int) -> NDArray[np.float64]:
    """One axial slice of a volume, head up, enlarged as a screen shows it."""
    import nibabel as nib

    across = np.asarray(nib.as_closest_canonical(nib.load(path)).dataobj[:, :, at], np.float32)[::-1, ::-1].T
    larger = zoom(across, SCREEN_PX / max(across.shape), order=1)
    low, high = np.percentile(larger, (0.1, 99.9))
    return np.clip((larger.astype(np.float64) - low) / max(float(high - low), 1e-6), 0, 1)


def stored_values(picture: NDArray[np.float64], form: Form, order: NDArray[np.uint8]) -> NDArray[np.generic]:
    """What a picture in 0..1 becomes under a form."""
    values = np.clip(np.rint(picture * form.top), 0, form.top)
    values = form.top - values if form.inverted else values
    stored = values.astype(np.uint8 if form.bits <= 8 else np.uint16)
    return order[stored] if form.palette else stored


def palette_order(random: Random) -> NDArray[np.uint8]:
    """Which entry shows which grey: stored values mean nothing by themselves."""
    entries = list(range(256))
    random.shuffle(entries)
    return np.array(entries, np.uint8)


def write(
    path: Path,
    stack: Sequence[NDArray[np.float64]],
    form: Form,
    random: Random,
    elements: dict[str, object],
) -> NDArray[np.generic]:
    """Write frames, (rows, columns) or (rows, columns, 3) in 0..1, as one object. Returns the stored values."""
    order = palette_order(random)
    stored = np.stack([stored_values(picture, form, order) for picture in stack])
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = SECONDARY_CAPTURE
    dataset.SOPInstanceUID = f"2.25.{random.getrandbits(120)}"
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.Rows, dataset.Columns = stored.shape[1:3]
    dataset.SamplesPerPixel = form.samples
    dataset.PhotometricInterpretation = (
        "RGB"
        if form.samples == 3
        else "PALETTE COLOR"
        if form.palette
        else "MONOCHROME1"
        if form.inverted
        else "MONOCHROME2"
    )
    if form.samples == 3:
        dataset.PlanarConfiguration = 0
    if form.palette:
        table = np.zeros(256, np.uint16)
        table[order] = np.arange(256, dtype=np.uint16) * 257
        for colour in ("Red", "Green", "Blue"):
            setattr(dataset, f"{colour}PaletteColorLookupTableDescriptor", [256, 0, 16])
            setattr(dataset, f"{colour}PaletteColorLookupTableData", table.tobytes())
    dataset.BitsAllocated = 8 if form.bits <= 8 else 16
    dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = form.bits, form.bits - 1, 0
    if len(stack) > 1:
        dataset.NumberOfFrames = len(stack)
    dataset.Modality = "OT"
    dataset.BurnedInAnnotation = "NO"
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    raw = stored.tobytes()
    dataset.PixelData = raw + b"\0" * (len(raw) % 2)
    dataset["PixelData"].VR = "OW"
    dataset.save_as(path, enforce_file_format=True)
    return stored


def without_header(source: Path, target: Path) -> None:
    """A copy as the header stage leaves it: nothing that identifies."""
    dataset = dcmread(source)
    for keyword in ("PatientName", "PatientID", "PatientBirthDate", "InstitutionName"):
        if keyword in dataset:
            setattr(dataset, keyword, "")
    dataset.save_as(target)
