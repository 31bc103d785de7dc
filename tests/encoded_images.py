"""Synthetic images for the tests of `frames` and `pixels`: native of any layout, or around given compressed frames."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

Array = NDArray[Any]
CT = "1.2.840.10008.5.1.4.1.1.2"
SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"


def header(array: Array, **values: Any) -> Dataset:
    """A data set that describes `array`: (rows, columns), (frames, rows, columns), either with 3 samples behind."""
    samples = 3 if array.shape[-1] == 3 and array.ndim > 2 and values.get("SamplesPerPixel") != 1 else 1
    frames = array.shape[0] if array.ndim == 3 + (samples == 3) else 1
    rows, columns = array.shape[-2:] if samples == 1 else array.shape[-3:-1]
    dataset = Dataset()
    dataset.SOPClassUID, dataset.SOPInstanceUID = SECONDARY_CAPTURE, "2.25.1"
    dataset.PatientName, dataset.PatientID = "BT-1", "BT-1"
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID, dataset.Modality = "2.25.2", "2.25.3", "OT"
    dataset.SamplesPerPixel = samples
    dataset.PhotometricInterpretation = "RGB" if samples == 3 else "MONOCHROME2"
    if samples == 3:
        dataset.PlanarConfiguration = 0
    if frames > 1:
        dataset.NumberOfFrames = frames
    dataset.Rows, dataset.Columns = rows, columns
    dataset.BitsAllocated = dataset.BitsStored = array.dtype.itemsize * 8
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = int(array.dtype.kind == "i")
    for keyword, value in values.items():
        setattr(dataset, keyword, value)
        if keyword == "BitsStored" and "HighBit" not in values:
            dataset.HighBit = value - 1
    return dataset


def native(
    path: Path,
    array: Array,
    syntax: str = ExplicitVRLittleEndian,
    *,
    data: bytes | None = None,
    swapped: bool = False,
    **values: Any,
) -> Path:
    """A file whose pixel data is `data`, or else the words of `array` as they are, by plane where the header says so.

    `swapped`: bytes come in big-endian words, OW of 8 bits (PS3.5 7.3).
    """
    dataset = header(array, **values)
    if data is None:
        words = array
        if dataset.SamplesPerPixel == 3 and dataset.get("PlanarConfiguration") == 1:
            words = np.moveaxis(array, -1, -3)
        data = words.astype(words.dtype.newbyteorder(">" if syntax == ExplicitVRBigEndian else "<")).tobytes()
    data += bytes(len(data) & 1)
    if swapped:
        data = np.frombuffer(data, "u2").byteswap().tobytes()
    wide = dataset.BitsAllocated > 8 or syntax == ImplicitVRLittleEndian or swapped
    dataset.add_new(0x7FE00010, "OW" if wide else "OB", data)
    return save(path, dataset, syntax)


def compressed(
    path: Path, streams: Sequence[bytes], described: Array, syntax: str, *, data: bytes | None = None, **values: Any
) -> Path:
    """A file around compressed frames, one fragment each, or around `data`: the value from the offset table on."""
    dataset = header(described, **values)
    dataset.add_new(0x7FE00010, "OB", encapsulate(list(streams)) if data is None else data)
    dataset["PixelData"].is_undefined_length = True
    return save(path, dataset, syntax)


def jpeg_ls(array: Array) -> bytes:
    """A lossless JPEG-LS stream as DICOM writers make it: without the SPIFF header that CharLS puts in front."""
    data = bytes(imagecodecs.jpegls_encode(array, out=2 * array.nbytes + 4096))
    while data[2:4] == b"\xff\xe8":
        data = data[:2] + data[4 + struct.unpack_from(">H", data, 4)[0] :]
    return data


def fragments(*parts: bytes, table: bytes = b"") -> bytes:
    """Items of encapsulated pixel data, the offset table first."""
    return b"".join(struct.pack("<HHI", 0xFFFE, 0xE000, len(part)) + part for part in (table, *parts))


def save(path: Path, dataset: Dataset, syntax: str) -> Path:
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = syntax
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    implicit, little = syntax == ImplicitVRLittleEndian, syntax != ExplicitVRBigEndian
    dataset.save_as(path, implicit_vr=implicit, little_endian=little, enforce_file_format=True)
    return path


def noise(*shape: int, dtype: str = "u1", bits: int | None = None, seed: int = 1) -> Array:
    """Synthetic noise over the whole range of `bits`."""
    dtype_ = np.dtype(dtype)
    bits = bits or dtype_.itemsize * 8
    low = -(1 << (bits - 1)) if dtype_.kind == "i" else 0
    return np.random.default_rng(seed).integers(low, low + (1 << bits), shape, dtype=dtype_)


def smooth(*shape: int, dtype: str = "u1", bits: int | None = None) -> Array:
    """A synthetic gradient with a few edges: what lossy codecs are made for."""
    rows, columns = shape[:2]
    top = (1 << (bits or np.dtype(dtype).itemsize * 8)) - 1
    grid = (np.add.outer(np.arange(rows), np.arange(columns)) % 64) / 63 * top * 0.8 + top * 0.1
    return (grid[..., None] * np.linspace(0.6, 1, 3) if len(shape) == 3 else grid).astype(dtype)
