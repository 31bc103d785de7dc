"""Photographs in colour through `resynthesize`: made anew and stored as they came, and their colours are right."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.pixels import convert_color_space
from pydicom.uid import JPEG2000Lossless, JPEGBaseline8Bit, RLELossless

from gateway.frames import Changes, EncodedImage, transcode
from gateway.pixels.resynthesize_planes import planes_of, stored_of
from tests.adjustable_cards import changed, instances, run, work_of
from tests.adjustable_eyes import CARD, SIDE, eye, write_eye

KEPT = (
    *("Rows", "Columns", "SamplesPerPixel", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation"),
    *("ImageLaterality", "SOPInstanceUID", "SOPClassUID", "NumberOfFrames", "PixelSpacing"),
)


def made(cards: Path, path: Path, folder: Path) -> tuple[Dataset, Dataset, bytes]:
    """Headers and pixels before and after, and the bytes after."""
    (one,) = group = instances([path], folder)
    (step,) = run(group, work_of(cards), folder / "estimates", card=CARD)
    assert step.counts["frames"] == 1
    return pydicom.dcmread(path), pydicom.dcmread(one.candidate), one.candidate.read_bytes()


def rgb(dataset: Dataset) -> np.ndarray:
    """As pydicom shows it, of YBR too: an independent reader of colour."""
    return np.asarray(dataset.pixel_array, np.float64)


def whole(dataset: Dataset) -> np.ndarray:
    """RGB of the field of a photograph, without its black frame."""
    y, x = np.mgrid[:SIDE, :SIDE] / (SIDE - 1) - 0.5
    return rgb(dataset)[np.hypot(x, y) < 0.4]


def test_a_photograph_is_made_anew_and_says_so_in_a_valid_object(cards: Path, photograph: Path, tmp_path: Path) -> None:
    before, after, body = made(cards, photograph, tmp_path / "out")
    assert (before.PhotometricInterpretation, after.PhotometricInterpretation) == ("RGB", "RGB")
    assert (before.Modality, before.ImageLaterality) == ("OP", "L")
    assert all(after.get(keyword) == before.get(keyword) for keyword in (*KEPT, "PlanarConfiguration"))
    assert (after.ImageType, after.SyntheticData) == (["DERIVED", "PRIMARY", "SYNTHETIC"], "YES")
    assert list(after.SourceImageSequence) == []  # type 2C of what is derived
    assert CARD in after.DerivationDescription
    assert after.ImageComments.startswith("NOT FOR DIAGNOSIS")
    assert (whole(before) != whole(after)).any(-1).mean() > 0.9
    assert made(cards, photograph, tmp_path / "again")[2] == body
    assert faults(tmp_path / "out/0000.dcm") <= faults(photograph)


@pytest.mark.parametrize(
    ("kinds", "then"),
    [
        (["ORIGINAL", "PRIMARY", "", "COLOR"], ["DERIVED", "PRIMARY", "SYNTHETIC", "COLOR"]),
        (["DERIVED", "PRIMARY", "MONTAGE"], ["DERIVED", "PRIMARY", "MONTAGE"]),
    ],
)
def test_the_kind_of_a_photograph_is_kept(
    cards: Path, photograph: Path, tmp_path: Path, kinds: list[str], then: list[str]
) -> None:
    path = changed(photograph, tmp_path / "kind.dcm", lambda one: setattr(one, "ImageType", kinds))
    assert made(cards, path, tmp_path / "out")[1].ImageType == then


# dciodvfy knows no (0008,001C), wants an item in Source Image Sequence (General Reference, type 3) even where the class
# has it as 2C, and by-plane of what is run-length encoded is how this gateway writes it (PS3.5 Annex G).
CONTRADICTED = ("(0008,001c)", "SourceImageSequence", "PlanarConfiguration")


def faults(path: Path) -> set[str]:
    """What dciodvfy calls an error of the IOD; none where it is not installed."""
    if shutil.which("dciodvfy") is None:
        return set()
    done = subprocess.run(["dciodvfy", "-new", path], capture_output=True, check=False, text=True)
    lines = {line for line in done.stderr.splitlines() if line.startswith("Error")}
    return {line for line in lines if not any(one in line for one in CONTRADICTED)}


def by_plane(dataset: Dataset) -> None:
    dataset.PixelData = np.moveaxis(dataset.pixel_array, -1, 0).tobytes()
    dataset.PlanarConfiguration = 1


def in_16_bits(dataset: Dataset) -> None:
    values = dataset.pixel_array.astype("<u2") * 257
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.77.1.5.2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 16, 16, 15
    dataset["PixelData"].VR = "OW"
    dataset.PixelData = values.tobytes()


def in_ybr(dataset: Dataset) -> None:
    dataset.PixelData = convert_color_space(dataset.pixel_array, "RGB", "YBR_FULL").astype(np.uint8).tobytes()
    dataset.PhotometricInterpretation = "YBR_FULL"


def jpeg(dataset: Dataset) -> None:
    stream = BytesIO()
    Image.fromarray(dataset.pixel_array).save(stream, "JPEG", quality=95, subsampling="4:2:2")
    dataset.PixelData = encapsulate([stream.getvalue()])
    dataset["PixelData"].VR, dataset["PixelData"].is_undefined_length = "OB", True
    dataset.PhotometricInterpretation, dataset.LossyImageCompression = "YBR_FULL_422", "01"
    dataset.file_meta.TransferSyntaxUID = JPEGBaseline8Bit


@pytest.mark.parametrize(
    ("store", "photometric", "planar"),
    [
        (by_plane, "RGB", 1),
        (in_16_bits, "RGB", 0),
        (in_ybr, "YBR_FULL", 0),
        (RLELossless, "RGB", 1),
        (JPEG2000Lossless, "YBR_RCT", 0),
        (jpeg, "RGB", 0),  # native, where YBR_FULL, which it would be, is not allowed
    ],
)
def test_however_it_is_stored_the_same_picture_comes_out_stored_so(
    cards: Path,
    photograph: Path,
    tmp_path: Path,
    store: Callable[[Dataset], None] | str,
    photometric: str,
    planar: int,
) -> None:
    plain = made(cards, photograph, tmp_path / "plain")[1]
    path = tmp_path / "stored.dcm"
    if isinstance(store, str):
        transcode(photograph, path, store, Changes())
    else:
        changed(photograph, path, store)
    before, after, _ = made(cards, path, tmp_path / "out")
    assert (after.PhotometricInterpretation, after.PlanarConfiguration) == (photometric, planar)
    assert all(after.get(keyword) == before.get(keyword) for keyword in KEPT)
    assert after.get("LossyImageCompression") == before.get("LossyImageCompression")
    if store is not jpeg:
        assert after.file_meta.TransferSyntaxUID == before.file_meta.TransferSyntaxUID
    step = 257 if after.BitsStored == 16 else 1
    if store in (in_ybr, jpeg):  # other values went in: other places may be blocked
        assert np.abs(rgb(after).mean((0, 1)) - rgb(plain).mean((0, 1))).max() < 20
    else:
        assert np.abs(rgb(after) / step - rgb(plain)).max() <= (0 if step == 1 else 0.5)
    assert faults(tmp_path / "out/0000.dcm") <= faults(path)


def test_colour_spaces_are_those_of_an_independent_reader(photograph: Path) -> None:
    """PS3.3 C.7.6.3.1.2, against pydicom's own matrices; whole numbers come back as they were."""
    generator = np.random.default_rng(3)
    colours = generator.integers(0, 256, (16, 16, 3), np.uint8)
    with EncodedImage.open(photograph) as image:
        assert image.layout is not None
        layout = image.layout
        ybr = replace(layout, photometric="YBR_FULL")
    stored = convert_color_space(colours, "RGB", "YBR_FULL").astype(np.uint8)
    theirs = convert_color_space(stored, "YBR_FULL", "RGB").astype(float)
    assert np.abs(np.moveaxis(planes_of(stored, ybr), 0, -1) - theirs).max() <= 1
    assert np.array_equal(stored_of(planes_of(colours, layout), layout), colours)
    assert np.abs(stored_of(planes_of(colours, layout), ybr).astype(int) - stored).max() <= 1
    assert np.array_equal(planes_of(colours, layout)[0], colours[..., 0])  # red first


def test_the_eye_that_the_header_names_is_the_one_that_is_shown(cards: Path, photograph: Path, tmp_path: Path) -> None:
    left = made(cards, photograph, tmp_path / "left")[1]
    path = changed(photograph, tmp_path / "right.dcm", lambda one: setattr(one, "ImageLaterality", "R"))
    right = made(cards, path, tmp_path / "right")[1]
    assert (left.ImageLaterality, right.ImageLaterality) == ("L", "R")
    assert np.array_equal(left.pixel_array, right.pixel_array[:, ::-1])


def test_the_side_is_drawn_in_every_channel_where_a_policy_asks(cards: Path, tmp_path: Path) -> None:
    def larger(dataset: Dataset) -> None:
        values = np.kron(dataset.pixel_array, np.ones((8, 8, 1)))
        dataset.Rows, dataset.Columns = values.shape[:2]
        dataset.PixelData = values.astype(np.uint8).tobytes()

    path, pictures = changed(write_eye(tmp_path / "in"), tmp_path / "larger.dcm", larger), {}
    for markers in ("drop", "redraw"):
        group = instances([path], tmp_path / markers)
        run(group, work_of(cards), tmp_path / "estimates", card=CARD, markers=markers)
        pictures[markers] = rgb(pydicom.dcmread(group[0].candidate))
    rows, columns, channels = np.nonzero(pictures["drop"] != pictures["redraw"])
    assert set(channels) == {0, 1, 2}
    assert rows.max() < 32
    assert columns.max() < 64


def test_the_cohort_writes_what_it_shows(photograph: Path) -> None:
    assert np.array_equal(pydicom.dcmread(photograph).pixel_array, np.rint(eye(1, 0) * 255))
