"""`hidden_pixels`: what hides beside the picture goes and is counted; the picture stays, bit for bit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from gateway.errors import Hold
from gateway.frames import KEYWORDS, Changes, EncodedImage, transcode
from gateway.frames.syntaxes import JPEG_2000_LOSSLESS, JPEG_LOSSLESS, JPEG_LS_LOSSLESS, RLE
from gateway.gate.encoding import judge_encoding
from gateway.gate.reading import Pair
from gateway.pixels import STAGES, Instance, Scope, Work, run_stage
from gateway.pixels.hidden import HiddenPixels
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Outcome
from tests.encoded_images import compressed, fragments, jpeg_ls, native, noise, save

WORK = Work(Policy(name="hidden", header=HeaderPolicy(), gate=GatePolicy(study={})), b"s" * 32)
STAMPS = {"PatientIdentityRemoved": "YES", "DeidentificationMethod": "DEID_GW"}
SECRET = b"LEAK0001 ZZSYNTH^LEAKTEST"


def cleaned(candidate: Path) -> dict[str, int]:
    """Counts of the stage; the candidate passes the gate's check of its encoding, and a second run finds nothing."""
    original = candidate.with_name("original.dcm")
    shutil.copy(candidate, original)
    instance = Instance("00001", original, candidate)
    (step,) = run_stage("hidden_pixels", HiddenPixels(), [instance], WORK, candidate.parent / "store")
    verdict = judge_encoding([Pair("00001", original, candidate)])
    assert verdict.outcome is Outcome.PASS, verdict.findings
    after = candidate.read_bytes()
    (again,) = run_stage("hidden_pixels", HiddenPixels(), [instance], WORK, candidate.parent / "store")
    assert (dict(again.counts), candidate.read_bytes()) == ({}, after)
    return dict(step.counts)


def stored(path: Path) -> np.ndarray:
    with EncodedImage.open(path) as image:
        return np.stack([image.stored(frame) for frame in range(image.frames)])


def words(path: Path, dtype: str = "u2") -> np.ndarray:
    return np.frombuffer(pydicom.dcmread(path).PixelData, dtype)


def test_the_stage_is_known_to_policies_and_describes_itself() -> None:
    assert STAGES["hidden_pixels"] is HiddenPixels
    assert HiddenPixels.SCOPE is Scope.INSTANCE
    assert HiddenPixels().describe().startswith("Hidden pixels: overlays, curves and icons are removed")


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
@pytest.mark.parametrize(("dtype", "bits"), [("u1", 8), ("u2", 12), ("i2", 12), ("i2", 16)])
def test_an_image_that_hides_nothing_stays_byte_for_byte(tmp_path: Path, keyword: str, dtype: str, bits: int) -> None:
    path = native(tmp_path / "a.dcm", noise(3, 9, 11, dtype=dtype, bits=bits), BitsStored=bits, **STAMPS)
    transcode(path, path, KEYWORDS[keyword], Changes())
    before = stored(path)
    whole = path.read_bytes()
    assert cleaned(path) == {}
    assert path.read_bytes() == whole
    np.testing.assert_array_equal(stored(path), before)


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian])
def test_an_overlay_in_unused_bits_goes_and_its_group_with_it(tmp_path: Path, syntax: str) -> None:
    """PS3.5 8.1.2 (retired): bits 12 to 15 of each word are four overlays."""
    values = noise(2, 9, 11, dtype="u2", bits=12)
    overlay = np.zeros_like(values)
    overlay[1, 3:6, 2:9] = 1 << 15
    group = {"OverlayRows": (0x10, "US", 9), "OverlayBitPosition": (0x102, "US", 15), "OverlayType": (0x40, "CS", "G")}
    path = native(tmp_path / "a.dcm", values | overlay, syntax, BitsStored=12, **STAMPS)
    dataset = pydicom.dcmread(path)
    for element, vr, value in group.values():
        dataset.add_new(0x60000000 | element, vr, value)
    dataset.save_as(path)
    assert cleaned(path) == {"overlays": 3, "unused_bits": 1}
    after = pydicom.dcmread(path)
    assert not [element for element in after if element.tag.group == 0x6000]
    order = ">u2" if syntax == ExplicitVRBigEndian else "<u2"
    np.testing.assert_array_equal(words(path, order).reshape(values.shape), values)


def test_an_overlay_in_bits_of_the_values_is_held(tmp_path: Path) -> None:
    """Bit 11 of 12 is part of the value by the header: what it shows cannot be taken out."""
    path = native(tmp_path / "a.dcm", noise(9, 11, dtype="u2", bits=12), BitsStored=12, **STAMPS)
    dataset = pydicom.dcmread(path)
    dataset.add_new(0x60020102, "US", 11)
    dataset.save_as(path)
    with pytest.raises(Hold) as held:
        cleaned(path)
    assert (held.value.reason, held.value.at) == ("overlay_in_pixels", "60020102")


@pytest.mark.parametrize("fill", ["zero", "sign"])
def test_either_way_to_fill_the_bits_of_signed_values_is_left_alone_unless_both_are_used(
    tmp_path: Path, fill: str
) -> None:
    values = noise(2, 9, 11, dtype="i2", bits=12)
    masked = (values.view("u2") & 0xFFF).view("i2")
    array = masked if fill == "zero" else values
    path = native(tmp_path / "a.dcm", array, BitsStored=12, PixelRepresentation=1, **STAMPS)
    assert cleaned(path) == {}
    mixed = array.copy()
    mixed[0, 4] = (values if fill == "zero" else masked)[0, 4]
    path = native(tmp_path / "b.dcm", mixed, BitsStored=12, PixelRepresentation=1, **STAMPS)
    assert cleaned(path) == {"unused_bits": 1}
    np.testing.assert_array_equal(stored(path), values)
    np.testing.assert_array_equal(words(path, "<i2").reshape(values.shape)[0], values[0])


@pytest.mark.parametrize("syntax", [RLE, JPEG_LOSSLESS, JPEG_LS_LOSSLESS, JPEG_2000_LOSSLESS])
def test_unused_bits_of_compressed_frames_go_without_loss(tmp_path: Path, syntax: str) -> None:
    values = noise(2, 9, 11, dtype="u2", bits=12)
    hidden = values.copy()
    hidden[1, 3:6, 2:9] |= 1 << 15
    transcode(native(tmp_path / "n.dcm", hidden), tmp_path / "a.dcm", syntax, Changes())
    path = tmp_path / "b.dcm"
    with EncodedImage.open(tmp_path / "a.dcm") as image:
        compressed(path, [image.fragment(frame) for frame in range(2)], values, syntax, BitsStored=12, **STAMPS)
    counts = cleaned(path)
    assert counts["unused_bits"] == 1
    np.testing.assert_array_equal(stored(path), values)
    with EncodedImage.open(path) as image:
        np.testing.assert_array_equal(np.stack([image.words(0), image.words(1)]), values)


def test_frames_beyond_number_of_frames_go(tmp_path: Path) -> None:
    array = noise(3, 9, 11)
    streams = [jpeg_ls(frame) for frame in array]
    path = compressed(tmp_path / "a.dcm", streams, array, JPEG_LS_LOSSLESS, NumberOfFrames=1, **STAMPS)
    assert cleaned(path) == {"extra_frames": 2}
    dataset = pydicom.dcmread(path)
    assert len(list(pydicom.encaps.generate_fragments(dataset.PixelData[4 + 4 + 4 :]))) == 1
    np.testing.assert_array_equal(stored(path), array[:1])


@pytest.mark.parametrize(("more", "count"), [(b"ab" * 500, 1000), (b"\0" * 100, 100), (SECRET[:24], 24)])
def test_bytes_behind_native_pixels_go(tmp_path: Path, more: bytes, count: int) -> None:
    array = noise(2, 9, 10)
    path = native(tmp_path / "a.dcm", array, data=array.tobytes() + more, **STAMPS)
    assert cleaned(path) == {"trailing_bytes": count}
    assert pydicom.dcmread(path).PixelData == array.tobytes()


def test_the_pad_byte_and_the_bits_behind_the_last_one_become_0(tmp_path: Path) -> None:
    array = noise(3, 3, 3)
    path = native(tmp_path / "a.dcm", array, data=array.tobytes() + b"\x41", **STAMPS)
    assert cleaned(path) == {"trailing_bytes": 1}
    assert pydicom.dcmread(path).PixelData == array.tobytes() + b"\0"
    bits = noise(1, 3, 5, bits=1)[0]
    packed = np.packbits(np.append(bits.reshape(-1), 1), bitorder="little").tobytes()
    path = native(tmp_path / "b.dcm", bits, data=packed, BitsAllocated=1, BitsStored=1, **STAMPS)
    assert cleaned(path) == {"trailing_bytes": 1}
    np.testing.assert_array_equal(stored(path)[0], bits)
    assert pydicom.dcmread(path).PixelData[1] & 0x80 == 0


def test_icons_curves_and_overlays_go(tmp_path: Path) -> None:
    icon = Dataset()
    icon.add_new(0x7FE00010, "OB", bytes(64))
    path = native(tmp_path / "a.dcm", noise(8, 8), IconImageSequence=[icon], **STAMPS)
    dataset = pydicom.dcmread(path)
    dataset.add_new(0x50003000, "OW", bytes(8))
    dataset.add_new(0x60023000, "OW", bytes(8))
    save(path, dataset, ExplicitVRLittleEndian)
    before = pydicom.dcmread(path).PixelData
    assert cleaned(path) == {"curves": 1, "icons": 1, "overlays": 1}
    after = pydicom.dcmread(path)
    assert after.PixelData == before
    assert not {0x00880200, 0x50003000, 0x60023000} & set(after.keys())


def test_a_document_without_pixels_is_left_alone(tmp_path: Path) -> None:
    dataset = pydicom.dcmread(native(tmp_path / "a.dcm", noise(8, 8), **STAMPS))
    del dataset.PixelData
    path = save(tmp_path / "a.dcm", dataset, ExplicitVRLittleEndian)
    assert cleaned(path) == {}


def test_fragments_behind_the_last_frame_go(tmp_path: Path) -> None:
    array = noise(9, 11)
    data = jpeg_ls(array)
    data += bytes(len(data) & 1)
    path = compressed(tmp_path / "a.dcm", [], array, JPEG_LS_LOSSLESS, data=fragments(data, SECRET + b"\0"), **STAMPS)
    counts = cleaned(path)
    assert sum(counts.values()) == 1
    assert SECRET not in path.read_bytes()
    np.testing.assert_array_equal(stored(path)[0], array)
