"""`transcode`: what is forwarded is in the syntax that the policy asks for, without loss, and passes the gate."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import get_args

import imagecodecs
import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from gateway.errors import Hold
from gateway.frames import KEYWORDS, EncodedImage
from gateway.frames.syntaxes import JPEG_BASELINE
from gateway.gate.encoding import judge_encoding
from gateway.gate.reading import Pair
from gateway.pixels import STAGES, Estimate, Instance, Scope, Work, run_stage
from gateway.pixels.transcode import Keyword, Transcode
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Outcome
from tests.encoded_images import compressed, header, native, noise, save, smooth

WORK = Work(Policy(name="transcoding", header=HeaderPolicy(), gate=GatePolicy(study={})), b"s" * 32)
STAMPS = {"PatientIdentityRemoved": "YES", "DeidentificationMethod": "DEID_GW"}


def transcoded(candidate: Path, keyword: str, otherwise: str = "explicit-little") -> dict[str, int]:
    """Counts of the stage's one step; the candidate is replaced, the original stays beside it."""
    original = candidate.with_name("original.dcm")
    shutil.copy(candidate, original)
    stage = Transcode(to=keyword, otherwise=otherwise)
    (step,) = run_stage("transcode", stage, [Instance("00001", original, candidate)], WORK, candidate.parent / "store")
    assert (step.stage, step.version, step.dropped) == ("transcode", Transcode.VERSION, "")
    verdict = judge_encoding([Pair("00001", original, candidate)])
    assert verdict.outcome is Outcome.PASS, verdict.findings
    return dict(step.counts)


def stored(path: Path) -> np.ndarray:
    with EncodedImage.open(path) as image:
        return np.stack([image.stored(frame) for frame in range(image.frames)])


def test_the_policy_may_ask_for_every_syntax_that_is_written_without_loss() -> None:
    assert set(get_args(Keyword)) == set(KEYWORDS)
    assert STAGES["transcode"] is Transcode
    assert Transcode.SCOPE is Scope.INSTANCE
    assert "as jpeg-ls-lossless, without loss" in Transcode(to="jpeg-ls-lossless").describe()


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian])
@pytest.mark.parametrize(("shape", "dtype", "bits"), [((3, 9, 11), "i2", 12), ((9, 11, 3), "u1", 8)])
def test_images_change_syntax_and_nothing_else(
    tmp_path: Path, keyword: str, syntax: str, shape, dtype: str, bits: int
) -> None:
    array = noise(*shape, dtype=dtype, bits=bits)
    path = native(tmp_path / "a.dcm", array, syntax, BitsStored=bits, **STAMPS)
    before = pydicom.dcmread(path)
    frames = 3 if len(shape) == 3 and shape[-1] != 3 else 1
    assert transcoded(path, keyword) == ({} if KEYWORDS[keyword] == syntax else {"frames": frames})
    after = pydicom.dcmread(path)
    assert after.file_meta.TransferSyntaxUID == KEYWORDS[keyword]
    np.testing.assert_array_equal(stored(path).reshape(array.shape), array)
    for dataset in (before, after):
        del dataset.PixelData, dataset.PhotometricInterpretation
        if "PlanarConfiguration" in dataset:
            del dataset.PlanarConfiguration
    assert after == before  # the SOP Instance UID too: a lossless step is the same image (PS3.3 C.12.4.1.1)


def test_what_was_lossy_still_says_so(tmp_path: Path) -> None:
    data = bytes(imagecodecs.jpeg8_encode(smooth(16, 16, 3), level=80, colorspace="YCBCR", outcolorspace="YCBCR"))
    path = compressed(
        tmp_path / "a.dcm", [data], smooth(16, 16, 3), JPEG_BASELINE, PhotometricInterpretation="YBR_FULL_422", **STAMPS
    )
    before = stored(path)
    assert transcoded(path, "jpeg-ls-lossless") == {"frames": 1}
    dataset = pydicom.dcmread(path)
    assert (dataset.LossyImageCompression, dataset.LossyImageCompressionMethod) == ("01", "ISO_10918_1")
    assert float(dataset.LossyImageCompressionRatio) == round(16 * 16 * 3 / (len(data) + len(data) % 2), 2)
    assert dataset.PhotometricInterpretation == "YBR_FULL"
    np.testing.assert_array_equal(stored(path), before)


def nested() -> Dataset:
    """A synthetic report: nesting, private blocks, text in a charset, VRs of every width."""
    dataset = header(noise(2, 2), SpecificCharacterSet="ISO_IR 100", **STAMPS)
    for keyword in ("Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "SamplesPerPixel"):
        delattr(dataset, keyword)
    inner = Dataset()
    inner.add_new(0x00280106, "SS", -5)  # US or SS by Pixel Representation, which is outside
    inner.add_new(0x00409224, "FD", 0.125)
    inner.add_new(0x00081140, "SQ", [Dataset()])
    inner.PersonName = "Müller^Jürgen"
    dataset.PixelRepresentation = 1
    dataset.add_new(0x00082218, "SQ", [inner, Dataset()])
    dataset.add_new(0x0072007A, "US", [1, 258])
    dataset.add_new(0x00189087, "FD", [1.5, -2.5])
    dataset.add_new(0x00280009, "AT", [0x00181063, 0x00200013])
    dataset.add_new(0x00290010, "LO", "ACME 1.1")
    dataset.add_new(0x00291001, "DS", "1.25")
    return dataset


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian])
def test_objects_without_pixels_change_between_native_syntaxes(tmp_path: Path, keyword: str, syntax: str) -> None:
    path = save(tmp_path / "a.dcm", nested(), syntax)
    assert transcoded(path, keyword) in ({"frames": 0}, {})
    after = pydicom.dcmread(path)
    encapsulated = keyword not in ("explicit-little", "implicit-little", "deflated")
    assert after.file_meta.TransferSyntaxUID == (ExplicitVRLittleEndian if encapsulated else KEYWORDS[keyword])
    expected = nested()
    for element in expected.iterall():
        if element.tag.is_private and not element.tag.is_private_creator:
            continue  # of implicit VR nobody knows their VR: below
        if element.VR == "SQ":
            assert len((after if element.tag in after else after[0x00082218][0])[element.tag].value) == len(
                element.value
            )
            continue
        found = (after if element.tag in after else after[0x00082218][0])[element.tag]
        value = found.value - 0x10000 if found.VR == "US" and element.VR == "SS" else found.value
        assert value == element.value, element.tag
        assert found.VR == element.VR or keyword == "implicit-little", element.tag
    private = after.get_item(0x00291001)
    assert private.value.strip() == b"1.25"
    assert private.VR in {ImplicitVRLittleEndian: ("UN", None)}.get(syntax, ("DS", None))


def test_unknown_values_in_big_endian_are_held(tmp_path: Path) -> None:
    dataset = nested()
    dataset.add_new(0x00291002, "UN", b"\1\2\3\4")
    path = save(tmp_path / "a.dcm", dataset, ExplicitVRBigEndian)
    with pytest.raises(Hold) as held:
        transcoded(path, "explicit-little")
    assert (held.value.reason, held.value.at) == ("transcoding_failed", "00291002: byte order of an unknown value")


@pytest.mark.parametrize("keyword", ["rle", "jpeg-ls-lossless"])
def test_a_segmentation_that_no_codec_holds_unchanged_goes_native(tmp_path: Path, keyword: str) -> None:
    bits = noise(2, 3, 5, bits=1)
    data = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    path = native(tmp_path / "a.dcm", bits, ImplicitVRLittleEndian, data=data, BitsAllocated=1, BitsStored=1, **STAMPS)
    assert transcoded(path, keyword) == {"frames": 2, "otherwise": 1}
    after = pydicom.dcmread(path)
    assert after.file_meta.TransferSyntaxUID == ExplicitVRLittleEndian
    assert after.PixelData[: len(data)] == data


@pytest.mark.parametrize("keyword", ["rle", "jpeg-ls-lossless"])
def test_what_no_codec_holds_unchanged_is_held_where_the_policy_says_so(tmp_path: Path, keyword: str) -> None:
    bits = noise(2, 3, 5, bits=1)
    data = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    path = native(tmp_path / "a.dcm", bits, data=data, BitsAllocated=1, BitsStored=1, **STAMPS)
    whole = path.read_bytes()
    with pytest.raises(Hold, match="transcoding_failed"):
        transcoded(path, keyword, otherwise="hold")
    assert path.read_bytes() == whole
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.dcm", "original.dcm", "store"]


def test_more_pixels_than_a_native_element_holds_are_held(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("gateway.frames.placing.MAX_NATIVE_BYTES", 500)
    path = native(tmp_path / "a.dcm", noise(3, 16, 16), **STAMPS)
    assert transcoded(path, "rle") == {"frames": 3}
    with pytest.raises(Hold, match="too long for a native element"):
        transcoded(path, "explicit-little")


def test_a_compressed_icon_of_another_syntax_is_held(tmp_path: Path) -> None:
    icon = Dataset()
    icon.add_new(
        0x7FE00010, "OB", b"\xfe\xff\x00\xe0" + bytes(4) + b"\xfe\xff\x00\xe0" + struct.pack("<I", 2) + b"\0\0"
    )
    icon["PixelData"].is_undefined_length = True
    array = noise(8, 8)
    data = bytes(imagecodecs.jpegls_encode(array))
    path = compressed(
        tmp_path / "a.dcm", [data], array, KEYWORDS["jpeg-ls-lossless"], IconImageSequence=[icon], **STAMPS
    )
    with pytest.raises(Hold, match="compressed pixels in an item"):
        transcoded(path, "explicit-little")


def test_video_is_held(tmp_path: Path) -> None:
    path = compressed(tmp_path / "a.dcm", [b"\0\0\1\xba"], noise(8, 8), "1.2.840.10008.1.2.4.102", **STAMPS)
    with pytest.raises(Hold, match="video_unsupported"):
        transcoded(path, "explicit-little")


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for keyword, syntax in KEYWORDS.items():
        outputs = set()
        for name in ("a.dcm", "b.dcm"):
            path = native(tmp_path / name, noise(3, 9, 9, dtype="u2"), **STAMPS)
            Transcode(to=keyword).apply([Instance("00001", path, path)], WORK, Estimate())
            outputs.add(path.read_bytes())
        assert len(outputs) == 1, syntax
