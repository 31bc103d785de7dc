"""Stored values that show as the same become the same, so that no text waits between them; nothing shown changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pydicom
import pytest

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.frames.syntaxes import JPEG_BASELINE, JPEG_LS_LOSSLESS
from gateway.pixels import Estimate, Instance, Work
from gateway.pixels.hidden import HiddenPixels
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from tests.encoded_images import compressed, jpeg_ls, native, noise, smooth

WORK = Work(Policy(name="hidden", header=HeaderPolicy(), gate=GatePolicy(study={})), b"s" * 32)


def cleaned(path: Path, stage: HiddenPixels = HiddenPixels()) -> dict[str, int]:  # noqa: B008 - frozen
    shutil.copy(path, path.with_name("original.dcm"))
    (step,) = stage.apply([Instance("00001", path, path)], WORK, Estimate())
    return dict(step.counts)


def palette(entries: list[int], *, bits: int = 16, first: int = 0) -> dict[str, Any]:
    """A grey palette of these entries."""
    values: dict[str, Any] = {"PhotometricInterpretation": "PALETTE COLOR"}
    data = np.array(entries, "<u2" if bits == 16 else "u1").tobytes()
    for colour in ("Red", "Green", "Blue"):
        values[f"{colour}PaletteColorLookupTableDescriptor"] = [len(entries), first, bits]
        values[f"{colour}PaletteColorLookupTableData"] = data + bytes(len(data) & 1)
    return values


def picture(text: int, background: int, dtype: str = "u1") -> np.ndarray:
    """Synthetic: a letter drawn with one value on another."""
    array = np.full((12, 12), background, dtype)
    array[2:10, 3] = array[2, 3:8] = array[6, 3:7] = text
    return array


def test_text_in_two_values_of_one_colour_goes_and_nothing_shown_changes(tmp_path: Path) -> None:
    array = picture(7, 3)
    array[0, 0] = 1
    entries = [0x1000 * index for index in range(8)]
    entries[7] = entries[3]
    path = native(tmp_path / "a.dcm", array, **palette(entries))
    with EncodedImage.open(path) as image:
        before = image.shown(0)
    assert cleaned(path) == {"altered_values": 1}
    expected = np.full((12, 12), 3, "u1")
    expected[0, 0] = 1
    with EncodedImage.open(path) as image:
        np.testing.assert_array_equal(image.stored(0), expected)
        np.testing.assert_array_equal(image.shown(0), before)


def test_a_policy_may_keep_values_that_look_alike(tmp_path: Path) -> None:
    array = picture(7, 3)
    keeping = HiddenPixels(look_alikes="keep")
    assert cleaned(native(tmp_path / "a.dcm", array, **palette([0x1000] * 8)), keeping) == {}
    assert keeping.describe().endswith("a palette or a padding range hides stay.")


def test_colours_that_differ_below_what_is_displayed_are_one(tmp_path: Path) -> None:
    """16-bit entries 8000 and 80FF both show as 128 of 255."""
    path = native(tmp_path / "a.dcm", picture(1, 0), **palette([0x8000, 0x80FF]))
    assert cleaned(path) == {"altered_values": 1}
    with EncodedImage.open(path) as image:
        assert len(np.unique(image.stored(0))) == 1


def test_colours_that_show_differently_stay_even_by_one_step(tmp_path: Path) -> None:
    array = picture(1, 0)
    path = native(tmp_path / "a.dcm", array, **palette([0x8000, 0x8100]))
    assert cleaned(path) == {}
    with EncodedImage.open(path) as image:
        np.testing.assert_array_equal(image.stored(0), array)


def test_values_beyond_the_palette_are_its_last_entry(tmp_path: Path) -> None:
    """PS3.3 C.7.6.3.1.5: text in 200 on 100, where the palette ends at 3."""
    path = native(tmp_path / "a.dcm", picture(200, 100), **palette([0, 0x4000, 0x8000, 0xC000]))
    assert cleaned(path) == {"altered_values": 1}
    with EncodedImage.open(path) as image:
        assert np.unique(image.stored(0)).tolist() == [3]


def test_a_value_of_a_segment_is_its_name_and_stays(tmp_path: Path) -> None:
    array = picture(7, 3)
    values = palette([0x1000] * 8) | {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.66.7"}
    path = native(tmp_path / "a.dcm", array, **values)
    assert cleaned(path) == {}
    with EncodedImage.open(path) as image:
        np.testing.assert_array_equal(image.stored(0), array)


def test_a_palette_that_cannot_be_read_is_held(tmp_path: Path) -> None:
    values = palette([0, 1]) | {"RedPaletteColorLookupTableDescriptor": [2, 0]}
    with pytest.raises(Hold, match="the palette"):
        cleaned(native(tmp_path / "a.dcm", picture(1, 0), **values))


@pytest.mark.parametrize("syntax", ["", JPEG_LS_LOSSLESS])
def test_text_within_the_padding_range_goes(tmp_path: Path, syntax: str) -> None:
    """PS3.3 C.7.5.1.1.2: values from -2000 to -1500 are no picture, in whatever they are written."""
    array = picture(-1600, -2000, "i2")
    array[0, :] = np.arange(12) * 100 - 1000
    padding = {"PixelPaddingValue": -2000, "PixelPaddingRangeLimit": -1500}
    if syntax:
        data = jpeg_ls(array.view("u2"))
        path = compressed(tmp_path / "a.dcm", [data], array, syntax, **padding)
    else:
        path = native(tmp_path / "a.dcm", array, **padding)
    assert cleaned(path) == {"altered_values": 1}
    expected = np.full((12, 12), -2000, "i2")
    expected[0] = array[0]
    with EncodedImage.open(path) as image:
        assert image.transfer_syntax == (syntax or "1.2.840.10008.1.2.1")
        np.testing.assert_array_equal(image.stored(0), expected)


def test_padding_of_one_value_hides_nothing(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", picture(-1600, -2000, "i2"), PixelPaddingValue=-2000)
    assert cleaned(path) == {}


def test_dct_coded_frames_keep_their_values(tmp_path: Path) -> None:
    """They cannot change without a second loss, and what is in a padding range there is noise of the first."""
    data = bytes(imagecodecs.jpeg8_encode(smooth(16, 16), level=90))
    padding = {"PixelPaddingValue": 0, "PixelPaddingRangeLimit": 50}
    path = compressed(tmp_path / "a.dcm", [data], smooth(16, 16), JPEG_BASELINE, **padding)
    whole = path.read_bytes()
    assert cleaned(path) == {}
    assert path.read_bytes() == whole


def test_only_frames_that_hide_something_change(tmp_path: Path) -> None:
    array = np.stack([picture(3, 3), picture(7, 3), picture(2, 3)])
    entries = [0x1000 * index for index in range(8)]
    entries[7] = entries[3]
    streams = [jpeg_ls(frame) for frame in array]
    path = compressed(tmp_path / "a.dcm", streams, array, JPEG_LS_LOSSLESS, **palette(entries))
    assert cleaned(path) == {"altered_values": 1}
    frames = list(pydicom.encaps.generate_frames(pydicom.dcmread(path).PixelData, number_of_frames=3))
    assert [frame.rstrip(b"\0") == data.rstrip(b"\0") for frame, data in zip(frames, streams, strict=True)] == [
        *(True, False, True)
    ]


def test_grey_values_are_never_merged(tmp_path: Path) -> None:
    array = noise(12, 12)
    path = native(tmp_path / "a.dcm", array)
    assert cleaned(path) == {}
