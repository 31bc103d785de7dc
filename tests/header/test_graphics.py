"""Clean Graphics (PS3.15 E.3.3): drawings stay, words go; overlays and curves are pictures and go as they did."""

from __future__ import annotations

from pathlib import Path

import pytest
from header_objects import BASIC, SYNTAXES, Scrubbed, ct_base, one, policy, scrub
from pydicom.dataset import Dataset

from gateway.header import describe

CLEAN = policy("clean-graphics")
GSPS = "1.2.840.10008.5.1.4.1.1.11.1"


def drawing() -> Dataset:
    return one(
        GraphicAnnotationUnits="PIXEL",
        GraphicDimensions=2,
        NumberOfGraphicPoints=2,
        GraphicData=[1.0, 2.0, 3.5, 4.5],
        GraphicType="POLYLINE",
        GraphicFilled="N",
    )


def words() -> Dataset:
    return one(UnformattedTextValue="Leaktest, Zzsynth", AnchorPoint=[1.0, 2.0], AnchorPointVisibility="Y")


def annotation(layer: str, **parts: list[Dataset]) -> Dataset:
    return one(GraphicLayer=layer, **parts)


def state(*annotations: Dataset) -> Dataset:
    ds = ct_base()
    ds.SOPClassUID, ds.Modality = GSPS, "PR"
    del ds.PixelData
    ds.PresentationCreationDate, ds.PresentationCreationTime = "20200131", "101500"
    ds.GraphicAnnotationSequence = list(annotations)
    ds.GraphicLayerSequence = [one(GraphicLayer="L1", GraphicLayerOrder=1, GraphicLayerDescription="for Zzsynth")]
    return ds


def claims(out: Scrubbed) -> set[str]:
    return {code.CodeValue for code in out.ds.DeidentificationMethodCodeSequence}


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_vector_graphics_stay_as_they_are_and_text_objects_go(tmp_path: Path, syntax: str) -> None:
    both = annotation("L1", TextObjectSequence=[words()], GraphicObjectSequence=[drawing()])
    compound = annotation("L1", CompoundGraphicSequence=[one(CompoundGraphicType="ARROW", GraphicData=[1.0, 2.0])])
    out = scrub(tmp_path, state(both, annotation("L1", TextObjectSequence=[words()]), compound), CLEAN, syntax)
    first, second = out.ds.GraphicAnnotationSequence
    assert first.GraphicObjectSequence[0] == drawing()
    assert "TextObjectSequence" not in first
    assert second.CompoundGraphicSequence[0].GraphicData == [1.0, 2.0]
    assert out.has_plant() == []
    assert b"Zzsynth" not in out.bytes
    assert "113103" in claims(out)
    assert out.ds.GraphicLayerSequence[0].GraphicLayer == "L1"


def test_with_clean_descriptors_text_objects_stay_cleaned(tmp_path: Path) -> None:
    said = words()
    said.UnformattedTextValue = "left lung, Zzsynth"
    header = policy("clean-graphics", "clean-descriptors")
    out = scrub(tmp_path, state(annotation("L1", TextObjectSequence=[said])), header)
    (kept,) = out.ds.GraphicAnnotationSequence[0].TextObjectSequence
    assert kept.UnformattedTextValue == "left lung"
    assert kept.AnchorPoint == [1.0, 2.0]
    assert {"113103", "113105"} <= claims(out)


def test_annotations_that_are_nothing_but_text_leave_no_empty_sequence_and_no_claim(tmp_path: Path) -> None:
    out = scrub(tmp_path, state(annotation("L1", TextObjectSequence=[words()])), CLEAN)
    assert "GraphicAnnotationSequence" not in out.ds
    assert claims(out) == {"113100"}


def test_references_of_an_annotation_follow_their_images(tmp_path: Path) -> None:
    shown = annotation("L1", GraphicObjectSequence=[drawing()])
    image = scrub(tmp_path, ct_base(), CLEAN).ds
    shown.ReferencedImageSequence = [
        one(ReferencedSOPClassUID=image.SOPClassUID, ReferencedSOPInstanceUID=ct_base().SOPInstanceUID)
    ]
    out = scrub(tmp_path, state(shown), CLEAN).ds.GraphicAnnotationSequence[0]
    assert out.ReferencedImageSequence[0].ReferencedSOPInstanceUID == image.SOPInstanceUID


def test_without_the_option_graphic_annotations_go(tmp_path: Path) -> None:
    out = scrub(tmp_path, state(annotation("L1", GraphicObjectSequence=[drawing()])), BASIC)
    assert "GraphicAnnotationSequence" not in out.ds
    assert claims(scrub(tmp_path, ct_base(), CLEAN)) == {"113100"}


@pytest.mark.parametrize("group", [0x5000, 0x6000, 0x601E])
def test_overlays_and_curves_go_and_take_the_claim_with_them(tmp_path: Path, group: int) -> None:
    """A bitmap may have text drawn in it: it cannot be told clean here, so the option was not carried out on it."""
    ds = state(annotation("L1", GraphicObjectSequence=[drawing()]))
    ds.add_new((group, 0x3000), "OW", b"LEAKTEST")
    ds.add_new((group, 0x4000), "LT", "ZZSYNTH")
    out = scrub(tmp_path, ds, CLEAN)
    assert not [e for e in out.ds if e.tag.group == group]
    assert out.has_plant() == []
    assert "GraphicAnnotationSequence" in out.ds
    assert claims(out) == {"113100"}


def test_explain_says_what_stays() -> None:
    says = {line.keyword: line.action for line in describe(CLEAN)}
    assert says["GraphicAnnotationSequence"] == "kept; its drawings stay, its text goes"
    assert {line.keyword: line.action for line in describe(BASIC)}["GraphicAnnotationSequence"] == "removed"
