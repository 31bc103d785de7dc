"""QR and bar codes in pictures: written and read by zxing-cpp's own encoder and decoder, which are not ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pydicom.data
import pytest
import zxingcpp
from numpy.typing import NDArray
from text_objects import CT, US, group_of, run, save, stored, texture

from gateway.frames import EncodedImage
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.machine_codes import codes_in

PLANT = "LEAK0001 19500131"
SHAPE = (320, 640)
AT = (40, 60)
FORMATS = ("QRCode", "DataMatrix", "PDF417", "Code128")
Bytes = NDArray[np.uint8]


def code(name: str, scale: int = 2) -> Bytes:
    contents = {"EAN13": "4006381333931", "ITF": "19500131", "MicroQRCode": "LEAK0001"}
    made = zxingcpp.create_barcode(contents.get(name, PLANT), getattr(zxingcpp.BarcodeFormat, name))
    return np.asarray(zxingcpp.write_barcode_to_image(made, scale=scale), np.uint8)


def clean(seed: int = 7) -> Bytes:
    return np.clip(texture(SHAPE, seed), 0, 255).astype(np.uint8)


def labelled(name: str, picture: Bytes | None = None, turns: int = 0, **how: Any) -> tuple[Bytes, tuple[slice, slice]]:
    """A picture with a code in it, and where."""
    picture = clean() if picture is None else picture.copy()
    label = np.rot90(code(name, **how), turns)
    where = slice(AT[0], AT[0] + label.shape[0]), slice(AT[1], AT[1] + label.shape[1])
    picture[where] = label
    return picture, where


def around(where: tuple[slice, slice], room: int) -> NDArray[np.bool_]:
    outside = np.ones(SHAPE, bool)
    rows, columns = where
    outside[max(0, rows.start - room) : rows.stop + room, max(0, columns.start - room) : columns.stop + room] = False
    return outside


@pytest.mark.parametrize("name", FORMATS)
def test_a_code_goes_and_the_picture_around_it_stays(tmp_path: Path, name: str) -> None:
    before, where = labelled(name)
    assert zxingcpp.read_barcodes(before)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [before]))
    run(BurnedInText(), group)
    after = stored(group[0].candidate)
    assert not zxingcpp.read_barcodes(after)
    label = before[where] < 128  # its dark modules: half of them would be enough to guess the rest
    assert (after[where][label] == 0).all()
    assert (after[where][~label] < 128).mean() > 0.5
    outside = around(where, 12)
    assert np.array_equal(after[outside], before[outside])


@pytest.mark.parametrize("how", ["turned", "inverted", "mirrored", "dim", "large", "on one frame of many", "16 bits"])
def test_however_it_is_shown(tmp_path: Path, how: str) -> None:
    picture, where = labelled("QRCode", turns=how == "turned", scale=5 if how == "large" else 2)
    frames: list[NDArray[np.generic]] = [picture]
    if how == "inverted":
        picture[where] = 255 - picture[where]
    elif how == "mirrored":
        picture[where] = picture[where][:, ::-1]
    elif how == "dim":
        picture[where] = 100 + picture[where] // 17
    elif how == "on one frame of many":
        frames = [clean() for _ in range(5)]
        frames[3] = picture
    elif how == "16 bits":
        frames = [picture.astype(np.uint16) * 14 + 200]
    path = save(tmp_path / "a.dcm", frames, sop_class=US if len(frames) > 1 else CT)
    group = group_of(tmp_path, path)
    run(BurnedInText(), group)
    with EncodedImage.open(group[0].candidate) as image:
        shown = [image.shown(frame) for frame in range(image.frames)]
        assert not any(zxingcpp.read_barcodes(one) for one in shown)
        untouched = [np.array_equal(image.stored(at), one) for at, one in enumerate(frames)]
    assert untouched == [one is not picture and len(frames) > 1 for one in frames]


def test_colour_that_grey_does_not_show(tmp_path: Path) -> None:
    picture, where = labelled("QRCode")
    coloured = np.stack([picture] * 3, 2)
    dark = picture[where] < 128
    coloured[where][dark] = (200, 98, 100)
    coloured[where][~dark] = (100, 150, 100)  # as bright in the mean, and not in the brightest channel
    assert codes_in(coloured)


@pytest.mark.parametrize("name", ["Aztec", "Code39", "EAN13", "ITF", "MicroQRCode"])
def test_other_kinds_of_codes_are_read(name: str) -> None:
    assert codes_in(labelled(name)[0])


def test_pictures_without_a_code_have_none() -> None:
    folder = Path(pydicom.data.__file__).parent / "test_files"
    looked = 0
    for name in ("CT_small", "MR_small", "examples_ybr_color", "examples_palette", "SC_rgb_rle", "693_J2KI"):
        with EncodedImage.open(folder / f"{name}.dcm") as image:
            for frame in range(min(image.frames, 4)):
                assert codes_in(image.shown(frame)) == []
                looked += 1
    assert looked > 5


def test_a_doubtful_line_that_is_a_code_holds_nothing(tmp_path: Path) -> None:
    """Bars look like a line of some script: what goes with the code needs no person."""
    for name in ("Code128", "PDF417"):
        (tmp_path / name).mkdir()
        group = group_of(tmp_path / name, save(tmp_path / f"{name}.dcm", [labelled(name, scale=1)[0]]))
        run(BurnedInText(), group)  # raises Hold("text_uncertain") otherwise
