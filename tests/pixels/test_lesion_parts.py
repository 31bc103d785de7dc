"""What a series is, where a drawn lesion lies on the grid, and the noise of a key."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.learn.objects import item
from gateway.pixels.generated_header import Generated, changes_of
from gateway.pixels.keyed_noise import keyed_noise
from gateway.pixels.lesion_masks import from_segmentation, from_structures
from gateway.pixels.lesion_sequences import sequence_of
from gateway.pixels.lesion_study import on_grid
from gateway.volumes import Stack, planes_of, sort, tilt, upright
from tests.lesion_series import structures

ROWS, COLUMNS, SLICES = 12, 10, 6
MM = (2.0, 3.0, 4.0)  # column, row, slice
SPACE = "2.25.5"


def mr(**values: Any) -> Dataset:
    return item(Modality="MR", ImageType=["ORIGINAL", "PRIMARY"], **values)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"RepetitionTime": 500, "EchoTime": 12}, "T1"),
        ({"RepetitionTime": 500, "EchoTime": 12, "ContrastBolusAgent": "GADOVIST"}, "T1c"),
        ({"RepetitionTime": 500, "EchoTime": 12, "SeriesDescription": "t1_mprage_KM"}, "T1c"),
        ({"RepetitionTime": 2300, "EchoTime": 3, "InversionTime": 900}, "T1"),
        ({"RepetitionTime": 5000, "EchoTime": 95}, "T2"),
        ({"RepetitionTime": 9000, "EchoTime": 120, "InversionTime": 2500}, "FLAIR"),
        ({"RepetitionTime": 9000, "EchoTime": 120, "InversionTime": 2500, "SeriesDescription": "T1"}, "FLAIR"),
        ({"SeriesDescription": "AX FLAIR"}, "FLAIR"),
        ({"SeriesDescription": "Ax T1 POST"}, "T1c"),
        ({"SeriesDescription": "T1 without contrast"}, "T1"),
        ({"SeriesDescription": "t1ce"}, "T1c"),
        ({"SeriesDescription": "T2*"}, None),
        ({"RepetitionTime": 3000, "EchoTime": 40}, None),  # proton density
        ({"RepetitionTime": 5000, "EchoTime": 95, "ImageType": ["DERIVED", "PRIMARY", "ADC"]}, None),
        ({"RepetitionTime": 5000, "EchoTime": 95, "DiffusionBValue": 1000.0}, None),
        ({"RepetitionTime": 8, "EchoTime": 4, "SeriesDescription": "localizer"}, None),
        ({"RepetitionTime": 600, "EchoTime": 20, "SeriesDescription": "T2* hemo"}, None),
        ({"RepetitionTime": 25, "EchoTime": 4, "SeriesDescription": "pd_tse"}, None),
        ({"SeriesDescription": "t1_mprage_sub"}, None),
    ],
)
def test_a_sequence_is_known_by_its_timing_else_by_its_name(values: dict[str, Any], name: str | None) -> None:
    dataset = mr()
    for keyword, value in values.items():
        setattr(dataset, keyword, value)
    assert sequence_of(dataset) == name


def test_times_of_enhanced_objects_lie_in_functional_groups() -> None:
    group = item(
        MREchoSequence=[item(EffectiveEchoTime=120.0)],
        MRTimingAndRelatedParametersSequence=[item(RepetitionTime=9000.0)],
        MRModifierSequence=[item(InversionTimes=[2500.0])],
    )
    assert sequence_of(mr(SharedFunctionalGroupsSequence=[group])) == "FLAIR"


def test_what_is_no_mr_is_no_sequence() -> None:
    assert sequence_of(item(Modality="CT", SeriesDescription="T1")) is None


# -- masks --------------------------------------------------------------------------------------------------------


def image(index: int) -> Dataset:
    """One slice of a grid whose origin is (-10, 20, 30)."""
    return item(
        SOPClassUID="1.2.840.10008.5.1.4.1.1.4",
        SOPInstanceUID=f"2.25.1{index}",
        SeriesInstanceUID="2.25.2",
        StudyInstanceUID="2.25.3",
        PatientID="P",
        FrameOfReferenceUID=SPACE,
        Rows=ROWS,
        Columns=COLUMNS,
        ImagePositionPatient=[-10, 20, 30 + MM[2] * index],
        ImageOrientationPatient=[1, 0, 0, 0, 1, 0],
        PixelSpacing=[MM[1], MM[0]],
        SliceThickness=MM[2],
    )


@pytest.fixture
def stack() -> Stack:
    (found,), _ = sort(plane for index in range(SLICES) for plane in planes_of(image(index), index))
    return found


def segmentation(
    frames: list[tuple[float, int]], spacing: tuple[float, float] = (MM[1], MM[0]), **more: Any
) -> Dataset:
    """Frames as (height in mm, segment); segment 1 is a lesion, 2 the brain."""
    segments = [
        item(SegmentNumber=1, SegmentLabel="a", SegmentedPropertyTypeCodeSequence=[code("52988006")]),
        item(SegmentNumber=2, SegmentLabel="b", SegmentedPropertyTypeCodeSequence=[code("12738006")]),
    ]
    used = {segment for _, segment in frames}
    first = image(0).ImagePositionPatient
    return item(
        FrameOfReferenceUID=SPACE,
        Rows=ROWS,
        Columns=COLUMNS,
        NumberOfFrames=len(frames),
        SegmentationType="BINARY",
        SegmentSequence=[one for one in segments if one.SegmentNumber in used],
        SharedFunctionalGroupsSequence=[
            item(
                PlaneOrientationSequence=[item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])],
                PixelMeasuresSequence=[item(PixelSpacing=list(spacing), SliceThickness=MM[2])],
            )
        ],
        PerFrameFunctionalGroupsSequence=[
            item(
                PlanePositionSequence=[item(ImagePositionPatient=[first[0], first[1], height])],
                SegmentIdentificationSequence=[item(ReferencedSegmentNumber=segment)],
            )
            for height, segment in frames
        ],
        **more,
    )


def code(value: str) -> Dataset:
    return item(CodeValue=value, CodingSchemeDesignator="SCT", CodeMeaning="x")


def block() -> NDArray[np.generic]:
    frame = np.zeros((ROWS, COLUMNS), np.uint8)
    frame[3:6, 4:8] = 1
    return frame


def test_a_frame_marks_the_slice_it_lies_in(stack: Stack) -> None:
    drawn = from_segmentation(segmentation([(30 + MM[2] * 2, 1)]), lambda _: block(), stack, (), "x")
    assert drawn is not None
    assert not drawn.others
    expected = np.zeros(stack.shape, np.bool_)
    expected[2] = block() > 0
    np.testing.assert_array_equal(drawn.mask, expected)


def test_a_mask_on_a_finer_grid_marks_the_voxels_whose_centre_it_covers(stack: Stack) -> None:
    """Half the pixel size about the same first centre: voxel (r, c) is pixel (2 r, 2 c) of the mask."""
    drawn = from_segmentation(segmentation([(30.0, 1)], (MM[1] / 2, MM[0] / 2)), lambda _: block(), stack, (), "x")
    assert drawn is not None
    assert {tuple(one) for one in np.argwhere(drawn.mask).tolist()} == {(0, 2, 2), (0, 2, 3)}


def test_what_is_drawn_beside_the_lesion_is_told_and_not_taken(stack: Stack) -> None:
    brain = np.ones((ROWS, COLUMNS), np.uint8)
    frames = {0: block(), 1: brain}
    drawn = from_segmentation(segmentation([(30.0, 1), (34.0, 2)]), frames.__getitem__, stack, (), "x")
    assert drawn is not None
    assert (drawn.others, int(drawn.mask.sum())) == (True, 12)
    assert from_segmentation(segmentation([(30.0, 2)]), lambda _: brain, stack, (), "x") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda one: setattr(one, "FrameOfReferenceUID", "2.25.6"),
        lambda one: setattr(one, "SegmentationType", "LABELMAP"),
        lambda one: setattr(
            one.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence[0],
            "ImageOrientationPatient",
            [0, 1, 0, 0, 0, -1],
        ),
        lambda one: setattr(
            one.PerFrameFunctionalGroupsSequence[0].PlanePositionSequence[0], "ImagePositionPatient", [-10, 20, 300]
        ),
        lambda one: delattr(one.PerFrameFunctionalGroupsSequence[0], "PlanePositionSequence"),
        lambda one: delattr(one.PerFrameFunctionalGroupsSequence[0], "SegmentIdentificationSequence"),
    ],
)
def test_a_mask_without_a_place_on_the_grid_holds(stack: Stack, change: Any) -> None:
    dataset = segmentation([(30.0, 1)])
    change(dataset)
    with pytest.raises(Hold, match="lesion_mask_unusable"):
        from_segmentation(dataset, lambda _: block(), stack, (), "x")


def ring(radius_mm: float, centre: tuple[float, float], height: float) -> NDArray[np.float64]:
    turns = np.linspace(0, 2 * math.pi, 60, endpoint=False)
    return np.stack(
        [centre[0] + radius_mm * np.cos(turns), centre[1] + radius_mm * np.sin(turns), np.full(60, height)], 1
    )


def test_contours_fill_and_inner_ones_cut_out(stack: Stack) -> None:
    height, centre = 30 + 3 * MM[2], (0.0, 38.0)  # column 5, row 6
    polygons = [ring(8.0, centre, height), ring(3.5, centre, height)]
    drawn = from_structures(structures(image(0), {"Tumour": polygons}), stack, (), "x")
    assert drawn is not None
    rows, columns = np.meshgrid(np.arange(ROWS), np.arange(COLUMNS), indexing="ij")
    distance = np.hypot(-10 + MM[0] * columns - centre[0], 20 + MM[1] * rows - centre[1])
    expected = np.zeros(stack.shape, np.bool_)
    expected[3] = (distance < 8.0) & (distance > 3.5)
    wrong = drawn.mask != expected
    assert wrong.sum() <= 2  # points on the rim
    assert not drawn.others


def test_a_target_is_known_by_its_kind_and_a_contour_beside_the_slices_holds(stack: Stack) -> None:
    dataset = structures(image(0), {"ROI 1": [ring(6.0, (0.0, 38.0), 34.0)], "Eye": [ring(3.0, (4.0, 30.0), 34.0)]})
    assert from_structures(dataset, stack, (), "x") is None
    dataset.RTROIObservationsSequence = [item(ReferencedROINumber=1, RTROIInterpretedType="GTV")]
    drawn = from_structures(dataset, stack, (), "x")
    assert drawn is not None
    assert drawn.others
    assert drawn.mask[1].any()
    between = structures(image(0), {"GTV": [ring(6.0, (0.0, 38.0), 300.0)]})
    with pytest.raises(Hold, match="lesion_mask_unusable"):
        from_structures(between, stack, (), "x")


def test_a_mask_goes_to_another_grid_of_the_same_space(stack: Stack) -> None:
    """The same rows and columns, slices at twice the distance: slice k is slice 2 k of the first."""
    (coarse,), _ = sort(plane for index in range(0, SLICES, 2) for plane in planes_of(image(index), index))
    mask = np.zeros(stack.shape, np.bool_)
    mask[2, 3:6, 4:8] = True
    there = on_grid(mask, stack, coarse)
    expected = np.zeros(coarse.shape, np.bool_)
    expected[1, 3:6, 4:8] = True
    np.testing.assert_array_equal(there, expected)
    assert on_grid(mask, stack, stack) is mask


# -- turning, noise, header ---------------------------------------------------------------------------------------


def test_indices_of_a_turned_grid_lie_where_they_did(stack: Stack) -> None:
    sagittal = np.eye(4)
    sagittal[:3, :3] = np.array([[0, 0, 3.0], [2.0, 0, 0], [0, -4.0, 0]])
    sagittal[:3, 3] = (5, 6, 7)
    for affine, shape in ((stack.affine, stack.shape), (sagittal, (4, 5, 6))):
        turn = upright(affine)
        values = np.arange(np.prod(shape)).reshape(shape)
        turned = turn.of(values)
        np.testing.assert_array_equal(turn.back(turned), values)
        matrix = turn.affine_of(affine, shape)
        for index in ((0, 0, 0), (1, 2, 3), (3, 3, 2)):
            z, y, x = (min(one, size - 1) for one, size in zip(index, turned.shape, strict=True))
            slice_, row, column = np.argwhere(values == turned[z, y, x])[0]
            np.testing.assert_allclose(matrix @ [z, y, x, 1], affine @ [column, row, slice_, 1])
        assert (matrix[2, 0], matrix[1, 1], matrix[0, 2]) == (abs(matrix[2, 0]), abs(matrix[1, 1]), abs(matrix[0, 2]))
        assert tilt(affine) < 1e-6


def test_noise_is_normal_repeats_itself_and_depends_on_key_and_purpose() -> None:
    shape = (40, 50, 60)
    one = keyed_noise(b"k" * 32)(shape, "background")
    assert one.shape == shape
    assert abs(float(one.mean())) < 0.02
    assert abs(float(one.std()) - 1) < 0.02
    assert bool((one == keyed_noise(b"k" * 32)(shape, "background")).all())
    for other in (keyed_noise(b"l" * 32)(shape, "background"), keyed_noise(b"k" * 32)(shape, "outline")):
        assert abs(float(np.corrcoef(one.flatten(), other.flatten())[0, 1])) < 0.02


def test_enhanced_frames_say_that_they_are_derived_and_old_drawings_go() -> None:
    frame = item(MRImageFrameTypeSequence=[item(FrameType=["ORIGINAL", "PRIMARY", "T1", "NONE"])])
    dataset = item(
        ImageType=["ORIGINAL", "PRIMARY", "T1", "NONE"],
        ContentQualification="PRODUCT",
        PerFrameFunctionalGroupsSequence=[frame],
        DeidentificationMethod="basic",
    )
    dataset.add_new(0x60003000, "OW", b"\0\0")
    changes = changes_of(dataset, Generated("lesion_preserving", "card", "a" * 64, "Anatomy", "Replaced it"))
    told = {f"{tag:08X}": value for tag, (_, value) in changes.set.items()}
    assert told["00080008"] == ["DERIVED", "PRIMARY", "T1", "NONE"]
    assert told["00189004"] == "RESEARCH"
    assert told["52009230"][0].MRImageFrameTypeSequence[0].FrameType[0] == "DERIVED"
    assert frame.MRImageFrameTypeSequence[0].FrameType[0] == "ORIGINAL"
    assert told["00120063"] == ["basic", "lesion_preserving card"]
    assert changes.remove == {0x60003000}
