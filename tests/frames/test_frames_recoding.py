"""A data set through other native encodings and back: no value, item or element changes (PS3.5 7, Annex A)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from gateway.frames import Changes, transcode
from tests.encoded_images import header, noise, save

TEXT = st.text("ABC xyz.12", min_size=1, max_size=9).map(str.strip)
VALUES: dict[str, st.SearchStrategy[Any]] = {  # one public attribute of each VR with words or text of its own kind
    "CodeValue": TEXT,
    "SeriesDescription": TEXT,
    "TextValue": st.text("äöü abc", min_size=1, max_size=20).map(str.strip),
    "PersonName": st.sampled_from(["Müller^Jürgen", "", "A^B"]),
    "RWavePointer": st.lists(st.integers(0, 65535), min_size=2, max_size=4),
    "SmallestImagePixelValue": st.integers(0, 32767),
    "ReferencedFrameNumber": st.integers(1, 9),
    "SimpleFrameList": st.lists(st.integers(1, 2**32 - 1), min_size=2, max_size=3),
    "RealWorldValueIntercept": st.floats(allow_nan=False, allow_infinity=False),
    "RecommendedDisplayFrameRateInFloat": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "FrameIncrementPointer": st.sampled_from([0x00181063, 0x00200013]),
    "ReferencedSOPInstanceUID": st.sampled_from(["1.2.3", "2.25.99999"]),
    "LUTData": st.binary(min_size=2, max_size=8).filter(lambda data: len(data) % 2 == 0),
    "EncapsulatedDocument": st.binary(min_size=2, max_size=8).filter(lambda data: len(data) % 2 == 0),
    "DoubleFloatRealWorldValueFirstValueMapped": st.floats(allow_nan=False, allow_infinity=False),
}
SEQUENCES = ("ReferencedImageSequence", "AnatomicRegionSequence", "ContentSequence")
VALUES = {keyword: values for keyword, values in VALUES.items() if pydicom.datadict.tag_for_keyword(keyword)}


@st.composite
def items(draw: st.DrawFn, depth: int = 0) -> Dataset:
    dataset = Dataset()
    for keyword in draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=5)):
        value = draw(VALUES[keyword])
        if keyword == "LUTData":
            dataset.add_new(0x00283006, "OW", value)
        else:
            setattr(dataset, keyword, value)
    if depth < 3:
        for keyword in draw(st.lists(st.sampled_from(SEQUENCES), unique=True, max_size=2)):
            inner = draw(st.lists(items(depth + 1), max_size=2))
            setattr(dataset, keyword, inner)
            dataset[keyword].is_undefined_length = draw(st.booleans())
            for item in inner:
                item.is_undefined_length_sequence_item = draw(st.booleans())
    return dataset


@settings(deadline=None, max_examples=30)
@given(
    dataset=items(),
    route=st.permutations([ImplicitVRLittleEndian, DeflatedExplicitVRLittleEndian, ExplicitVRLittleEndian]),
)
@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ExplicitVRBigEndian])
def test_any_data_set_comes_back_from_any_route(
    tmp_path_factory, dataset: Dataset, route: list[str], syntax: str
) -> None:
    folder: Path = tmp_path_factory.mktemp("route")
    whole = header(noise(2, 2), SpecificCharacterSet="ISO_IR 100")
    for keyword in ("Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "SamplesPerPixel"):
        delattr(whole, keyword)
    whole.update(dataset)
    path = save(folder / "a.dcm", whole, syntax)
    expected = pydicom.dcmread(path)
    for element in expected.iterall():
        if element.VR == "OW" and syntax == ExplicitVRBigEndian:  # pydicom gives OW as its bytes, in either order
            element.value = b"".join(element.value[at : at + 2][::-1] for at in range(0, len(element.value), 2))
    for step in (*route, ExplicitVRLittleEndian):
        transcode(path, path, step, Changes())
        assert pydicom.dcmread(path).file_meta.TransferSyntaxUID == step
    assert pydicom.dcmread(path) == expected
