"""Frames for `bench.gate_text`: real pictures, wrapped as the one image of a scrubbed object.

Frames listed in `WITH_TEXT` show writing of their own (labels of films, screens of ultrasound devices); each was looked
at by eye. All others are clean: a finding on them is a false alarm.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
LEAST_SIDE = 48
KINDS = ("radiograph", "thumbnail", "dicom", "slice")
WITH_TEXT: frozenset[str] = frozenset(
    {
        *(f"hannover/{name}.png" for name in ("1663b242", "1ae7877e", "527321ee", "5acb8ac5", "61bc50d1", "689836b5")),
        *(f"hannover/{name}.png" for name in ("87d50e40", "9a9b2393", "b03ef875", "b39206a9", "d7f2ee0f", "a47dc73e")),
        *("hannover/bfefde5d.png",),
        *("misc/ARDSSevere.png", "misc/X-ray_of_cyst_in_pneumocystis_pneumonia_1.png"),
        *(f"dicom/{name}.dcm" for name in ("GREYSCALE_IMAGE", "RGB_IMAGE", "JPGLosslessP14SV1_1s_1f_8b", "OBXXXX1A")),
        *(f"dicom/examples_{name}.dcm" for name in ("jpeg2k", "palette", "rgb_color", "ybr_color")),
        *(
            "dicom/GDCMJ2K_TextGBR.dcm",
            "dicom/0_ORIGINAL_compressed.dcm",
            "dicom/RGB_ORIGINAL.dcm",
            "dicom/US1_J2KR.dcm",
            "dicom/gdcm-US-ALOKA-16.dcm",
            "dicom/US1_UNCR.dcm",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: (rows, columns) or (rows, columns, 3), unsigned, and where it came from."""

    name: str
    kind: str
    samples: NDArray[np.generic]

    @property
    def clean(self) -> bool:
        return self.name not in WITH_TEXT


def frames(kind: str, most: int) -> Iterator[Frame]:
    """At most so many pictures of one of `KINDS`, spread evenly over what there is."""
    if kind == "radiograph":
        yield from _pngs(kind, SHARED / "cxr" / "misc", 100)
        yield from _pngs(kind, SHARED / "cxr" / "hannover", most)
    elif kind == "thumbnail":
        yield from _pngs(kind, SHARED / "cxr" / "nih64", most)
    elif kind == "dicom":
        yield from islice(_dicom(), most)
    else:
        yield from islice(_volumes(max(1, most // 8)), most)


def _pngs(kind: str, folder: Path, count: int) -> Iterator[Frame]:
    paths = sorted(folder.glob("*.png")) if count else []
    for path in paths[:: max(1, len(paths) // max(1, count))][:count]:
        yield Frame(f"{folder.name}/{path.name}", kind, np.asarray(Image.open(path).convert("L")))


def _dicom() -> Iterator[Frame]:
    seen: set[bytes] = set()
    roots = (SHARED / "dicom", Path(pydicom.data.__file__).parent)
    for path in sorted((path for root in roots for path in root.rglob("*") if path.is_file()), key=lambda p: p.name):
        try:
            with warnings.catch_warnings(action="ignore"):
                samples = pydicom.dcmread(path).pixel_array
        except Exception:  # noqa: BLE001 - pydicom says in many ways that a file holds no picture
            continue
        colour = samples.ndim > 2 and samples.shape[-1] == 3
        frame = samples if samples.ndim == 2 + colour else samples[len(samples) // 2]
        if frame.dtype.kind not in "iu" or frame.dtype.itemsize > 2 or min(frame.shape[:2]) < LEAST_SIDE:
            continue
        frame = (frame.astype(np.int64) - int(frame.min())).astype(np.uint8 if frame.dtype.itemsize == 1 else np.uint16)
        key = frame[::3, ::3].tobytes()
        if key not in seen and frame.max():
            seen.add(key)
            yield Frame(f"dicom/{path.name}", "dicom", frame)


def volumes() -> Iterator[tuple[str, NDArray[np.generic]]]:
    """(name, slices) of heads and brains, axial."""
    import nibabel as nib

    for folder, pattern in (("heads/real", "*.nii.gz"), ("brain_mri/lesjak_long", "P0[13]_study1_*.nii.gz")):
        for path in sorted((SHARED / folder).glob(pattern)):
            volume = np.asarray(nib.load(path).dataobj).T  # slices first
            if volume.ndim == 3:
                yield path.name, (volume.astype(np.int64) - int(volume.min())).astype(np.uint16)


def _volumes(count: int) -> Iterator[Frame]:
    for name, volume in volumes():
        for index in np.linspace(len(volume) * 0.25, len(volume) * 0.75, count).astype(int):
            if min(volume.shape[1:]) >= LEAST_SIDE and volume[index].max():
                yield Frame(f"volume/{name}:{index}", "slice", volume[index])


def wrapped(samples: NDArray[np.generic], path: Path) -> Path:
    """A scrubbed secondary capture of these samples, in native form."""
    ds = Dataset()
    ds.SOPClassUID, ds.SOPInstanceUID = SecondaryCaptureImageStorage, generate_uid(entropy_srcs=[str(path)])
    ds.Modality, ds.PatientIdentityRemoved, ds.DeidentificationMethod = "OT", "YES", "bench"
    ds.StudyInstanceUID = ds.SeriesInstanceUID = generate_uid(entropy_srcs=["bench"])
    colour = samples.ndim == 3
    ds.SamplesPerPixel, ds.PhotometricInterpretation = (3, "RGB") if colour else (1, "MONOCHROME2")
    if colour:
        ds.PlanarConfiguration = 0
    ds.Rows, ds.Columns = samples.shape[:2]
    ds.BitsAllocated = ds.BitsStored = samples.dtype.itemsize * 8
    ds.HighBit, ds.PixelRepresentation = ds.BitsStored - 1, 0
    raw = np.ascontiguousarray(samples).tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    ds["PixelData"].VR = "OW" if samples.dtype.itemsize == 2 else "OB"
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.save_as(path, enforce_file_format=True)
    return path
