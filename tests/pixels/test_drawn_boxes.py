"""Boxes that a person drew: on every frame, in every encoding, nothing else touched, the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pydicom
import pytest
from encoded_images import compressed, jpeg_ls, native, noise, smooth
from pydicom.uid import JPEG2000Lossless, JPEGBaseline8Bit, JPEGLSLossless

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.pixels import Instance, Work, run_stage
from gateway.pixels.drawn import NAME, DrawnBoxes
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Step

WORK = Work(Policy(name="drawn", header=HeaderPolicy(), gate=GatePolicy(study={})), b"s" * 32)
BOX = (4, 8, 20, 24)


def three(path: Path, kind: str) -> Path:
    """Three frames of 32 x 40."""
    frames = noise(3, 32, 40, dtype="u2", bits=12)
    if kind == "native":
        return native(path, frames, BitsStored=12)
    if kind == "colour":
        return native(path, noise(3, 32, 40, 3))
    if kind == "jpeg-ls":
        return compressed(path, [jpeg_ls(frame) for frame in frames], frames, JPEGLSLossless, BitsStored=12)
    if kind == "jpeg-2000":
        streams = [imagecodecs.jpeg2k_encode(f, level=0, codecformat="j2k", bitspersample=12) for f in frames]
        return compressed(path, streams, frames, JPEG2000Lossless, BitsStored=12)
    grey = np.stack([np.roll(smooth(32, 40), shift) for shift in range(3)])
    return compressed(path, [imagecodecs.jpeg8_encode(f, level=90) for f in grey], grey, JPEGBaseline8Bit)


def stored(path: Path) -> Any:
    with EncodedImage.open(path) as image:
        return np.stack([image.stored(frame) for frame in range(image.frames)])


def redact(path: Path, tmp_path: Path, *boxes: tuple[int, int, int, int]) -> Step:
    (step,) = run_stage(NAME, DrawnBoxes(boxes), [Instance("00001", path, path)], WORK, tmp_path / "estimates")
    return step


@pytest.mark.parametrize("kind", ["native", "colour", "jpeg-ls", "jpeg-2000", "jpeg"])
def test_a_box_is_black_on_every_frame_and_the_rest_is_as_it_was(tmp_path: Path, kind: str) -> None:
    path = three(tmp_path / "a.dcm", kind)
    before = stored(path)
    step = redact(path, tmp_path, BOX)
    after = stored(path)
    assert dict(step.counts) == {"boxes": 1, "frames": 3}
    top, left, bottom, right = BOX
    assert not after[:, top:bottom, left:right].any()
    outside = np.ones(before.shape, bool)
    outside[:, top:bottom, left:right] = False  # blocks of 8 for JPEG, and BOX lies on none of their edges
    if kind == "jpeg":
        outside[:, :24] = False
    np.testing.assert_array_equal(after[outside], before[outside])


def test_the_same_boxes_give_the_same_bytes_in_whatever_order(tmp_path: Path) -> None:
    one, other = (three(tmp_path / name, "native") for name in ("a.dcm", "b.dcm"))
    boxes = (BOX, (0, 0, 2, 2), (30, 30, 32, 40))
    redact(one, tmp_path, *boxes)
    redact(other, tmp_path, *boxes[::-1], BOX)
    assert one.read_bytes() == other.read_bytes()


def test_what_was_drawn_is_stored_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = three(tmp_path / "a.dcm", "native")
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        raise Hold("pixels_unreadable")

    monkeypatch.setattr("gateway.pixels.drawn.redact", refuse)
    with pytest.raises(Hold):
        redact(path, tmp_path, BOX)
    (folder,) = (tmp_path / "estimates").iterdir()
    assert (folder / "facts.json").read_bytes() == b'{"boxes":[[4,8,20,24]]}'
    assert path.read_bytes() == before


@pytest.mark.parametrize("box", [(0, 0, 33, 8), (0, 0, 8, 41), (40, 50, 41, 51), (-1, 0, 8, 8), (4, 8, 4, 24)])
def test_a_box_that_does_not_lie_on_the_picture_holds_and_nothing_is_called_clean(
    tmp_path: Path, box: tuple[int, int, int, int]
) -> None:
    """Cut to the picture it would cover less than a person saw covered, or nothing."""
    path = three(tmp_path / "a.dcm", "native")
    before = path.read_bytes()
    with pytest.raises(Hold, match="stage_failed"):
        redact(path, tmp_path, BOX, box)
    assert path.read_bytes() == before


def test_an_object_without_pixels_stays_as_it_is(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(4, 4))
    ds = pydicom.dcmread(path)
    del ds.PixelData
    ds.save_as(path)
    before = path.read_bytes()
    assert dict(redact(path, tmp_path, BOX).counts) == {}
    assert path.read_bytes() == before


def test_the_header_says_that_pixels_were_cleaned_and_claims_no_more(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(40, 40), BurnedInAnnotation="YES")
    redact(path, tmp_path, BOX)
    ds = pydicom.dcmread(path)
    assert [item.CodeValue for item in ds.DeidentificationMethodCodeSequence] == ["113101"]
    assert ds.BurnedInAnnotation == "YES"
