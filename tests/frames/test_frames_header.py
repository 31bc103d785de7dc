"""`change_header`, and what every writer does with the header: set, removed, appended; all else is copied."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from gateway.frames import KEYWORDS, Box, Changes, EncodedImage, change_header, redact, replace_frames
from gateway.frames.syntaxes import JPEG_LS_LOSSLESS
from tests.encoded_images import compressed, fragments, native, noise

CLEAN_PIXELS = ("113101", "DCM", "Clean Pixel Data Option")
BURNED_IN, METHOD_CODES = 0x00280301, 0x00120064
SYNTAXES = [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian, DeflatedExplicitVRLittleEndian]


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_a_header_change_leaves_every_other_element_alone(tmp_path: Path, syntax: str) -> None:
    array = noise(2, 6, 7, dtype="u2")
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = "113100", "DCM", "Basic Profile"
    path = native(
        tmp_path / "a.dcm",
        array,
        syntax,
        DeidentificationMethodCodeSequence=[code],
        SeriesDescription="T1",
        Laterality="L",
    )
    changes = Changes({BURNED_IN: ("CS", "NO")}, frozenset({0x0008103E}), (CLEAN_PIXELS, ("113100", "DCM", "again")))
    change_header(path, tmp_path / "b.dcm", changes)
    before, after = (pydicom.dcmread(tmp_path / name) for name in ("a.dcm", "b.dcm"))
    assert after.BurnedInAnnotation == "NO"
    codes = [(item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning) for item in after[METHOD_CODES]]
    assert codes == [("113100", "DCM", "Basic Profile"), CLEAN_PIXELS]
    assert "SeriesDescription" not in after
    for dataset in (before, after):
        for keyword in ("BurnedInAnnotation", "DeidentificationMethodCodeSequence", "SeriesDescription"):
            if keyword in dataset:
                delattr(dataset, keyword)
    assert before == after
    assert before.file_meta == after.file_meta


def test_the_bytes_of_what_stays_are_the_same_bytes(tmp_path: Path) -> None:
    """Sequences of undefined length, odd VRs and private blocks are copied, not written anew."""
    item = struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF) + struct.pack("<HHI", 0xFFFE, 0xE00D, 0)
    sequence = (
        struct.pack("<HH2sHI", 0x0008, 0x1140, b"SQ", 0, 0xFFFFFFFF) + item + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
    )
    path = native(tmp_path / "a.dcm", noise(6, 7, dtype="u2"))
    data = path.read_bytes()
    at = data.index(struct.pack("<HH2sH", 0x0010, 0x0010, b"PN", 4))
    path.write_bytes(data[:at] + sequence + data[at:])
    change_header(path, tmp_path / "b.dcm", Changes({BURNED_IN: ("CS", "NO")}))
    assert (tmp_path / "b.dcm").read_bytes().replace(struct.pack("<HH2sH", 0x28, 0x301, b"CS", 2) + b"NO", b"") == (
        path.read_bytes()
    )


def test_no_change_gives_the_same_file(tmp_path: Path) -> None:
    path = compressed(tmp_path / "a.dcm", [], noise(4, 4), JPEG_LS_LOSSLESS, data=fragments(b"\xff\xd8\xff\0"))
    with pytest.raises(Exception, match="pixels_unreadable"):  # a header change too wants pixels that can be followed
        change_header(path, tmp_path / "b.dcm", Changes())
    path = native(tmp_path / "a.dcm", noise(4, 4))
    change_header(path, tmp_path / "b.dcm", Changes())
    assert (tmp_path / "b.dcm").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
def test_the_target_may_be_the_source(tmp_path: Path, keyword: str) -> None:
    array = noise(2, 9, 9, dtype="u2")
    path = native(tmp_path / "a.dcm", array)
    replace_frames(path, path, array, Changes(), transfer_syntax=KEYWORDS[keyword])
    change_header(path, path, Changes({BURNED_IN: ("CS", "NO")}))
    redact(path, path, [Box(1, 0, 0, 2, 2)], Changes())
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.dcm"]
    with EncodedImage.open(path) as image:
        assert image.transfer_syntax == KEYWORDS[keyword]
        np.testing.assert_array_equal(image.stored(0), array[0])


def test_a_failure_leaves_the_source_and_no_target(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(3, 9, 9))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for target in (path, tmp_path / "b.dcm"):
        with pytest.raises(ValueError, match="fewer frames"):
            replace_frames(path, target, noise(2, 9, 9), Changes())
        with pytest.raises(ValueError, match="a frame that is not there"):
            redact(path, target, [Box(3, 0, 0, 1, 1)], Changes())
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.dcm"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


@pytest.mark.parametrize(
    ("frames", "fault"),
    [
        (noise(3, 9, 8), "another shape"),
        (noise(4, 9, 9), "one too many"),
        (noise(3, 9, 9).astype("f4"), "another shape or kind"),
        (noise(3, 9, 9, dtype="u2"), "beyond Bits Stored"),
        (noise(3, 9, 9).astype("i2") - 300, "beyond Bits Stored"),
    ],
)
def test_frames_that_do_not_fit_the_header_are_a_fault_of_the_caller(tmp_path: Path, frames, fault: str) -> None:
    path = native(tmp_path / "a.dcm", noise(3, 9, 9))
    with pytest.raises(ValueError, match=fault):
        replace_frames(path, tmp_path / "b.dcm", frames, Changes())


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize(("dtype", "bits"), [("u2", 12), ("i2", 12), ("u1", 8)])
def test_replaced_frames_are_what_peers_read(tmp_path: Path, syntax: str, dtype: str, bits: int) -> None:
    path = native(tmp_path / "a.dcm", noise(3, 9, 9, dtype=dtype, bits=bits), syntax, BitsStored=bits)
    frames = noise(3, 9, 9, dtype=dtype, bits=bits, seed=7)
    replace_frames(path, tmp_path / "b.dcm", frames, Changes())
    with EncodedImage.open(tmp_path / "b.dcm") as image:
        np.testing.assert_array_equal(np.stack([image.stored(frame) for frame in range(3)]), frames)
    if syntax != DeflatedExplicitVRLittleEndian:
        dataset = pydicom.dcmread(tmp_path / "b.dcm")
        order = ">" if syntax == ExplicitVRBigEndian else "<"
        words = np.frombuffer(dataset.PixelData, np.dtype(dtype).newbyteorder(order))[: frames.size]
        np.testing.assert_array_equal(words.reshape(frames.shape), frames)  # sign extended, as plain readers expect


def test_native_frames_may_come_in_another_colour_space_and_compressed_ones_not(tmp_path: Path) -> None:
    """Half chroma (PS3.3 C.7.6.3.1.2) has two bytes a pixel; new frames have three, and say what they are."""
    colours = noise(6, 8, 3)
    path = native(tmp_path / "a.dcm", colours, data=bytes(6 * 8 * 2), PhotometricInterpretation="YBR_FULL_422")
    replace_frames(path, tmp_path / "b.dcm", [colours], Changes(), photometric="RGB")
    dataset = pydicom.dcmread(tmp_path / "b.dcm")
    assert (dataset.PhotometricInterpretation, dataset.PlanarConfiguration) == ("RGB", 0)
    np.testing.assert_array_equal(dataset.pixel_array, colours)
    syntax = KEYWORDS["jpeg-ls-lossless"]
    with pytest.raises(ValueError, match="colour space"):
        replace_frames(path, tmp_path / "c.dcm", [colours], Changes(), transfer_syntax=syntax, photometric="RGB")


def test_text_is_set_in_the_declared_character_set(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(4, 4), SpecificCharacterSet="ISO_IR 100")
    change_header(path, tmp_path / "b.dcm", Changes({0x00081030: ("LO", "Schädel")}))
    assert pydicom.dcmread(tmp_path / "b.dcm").StudyDescription == "Schädel"
    assert "Schädel".encode("latin-1") in (tmp_path / "b.dcm").read_bytes()
