"""Series as volumes: what makes a regular grid, what is refused and why (PS3.3 C.7.6.2.1.1, C.7.6.16.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.volumes import Plane, Unplaced, only_stack, planes_of, read, sort

AXIAL, SAGITTAL = (1, 0, 0, 0, 1, 0), (0, 1, 0, 0, 0, -1)


def header(position: Any, orientation: Any = AXIAL, **more: Any) -> Dataset:
    dataset = Dataset()
    dataset.Rows, dataset.Columns = 4, 5
    dataset.ImagePositionPatient, dataset.ImageOrientationPatient = list(position), list(orientation)
    dataset.PixelSpacing, dataset.SliceThickness = [2, 3], 4
    dataset.SeriesInstanceUID, dataset.FrameOfReferenceUID = "1.2.3", "1.2.4"
    for keyword, value in more.items():
        setattr(dataset, keyword, value)
    return dataset


def planes(headers: list[Dataset]) -> list[Plane | Unplaced]:
    return [plane for number, dataset in enumerate(headers) for plane in planes_of(dataset, number)]


def names(headers: list[Dataset]) -> list[str]:
    return [f"{number:04d}" for number in range(len(headers))]


def test_the_affine_is_the_one_of_the_standard() -> None:
    """PS3.3 C.7.6.2.1.1: x grows with the column index by the column spacing, the second value of Pixel Spacing."""
    stack = only_stack(planes([header((10, 20, 4 * n)) for n in range(4)]), [])
    assert np.allclose(stack.affine @ [1, 0, 0, 1], [13, 20, 0, 1])
    assert np.allclose(stack.affine @ [0, 1, 0, 1], [10, 22, 0, 1])
    assert np.allclose(stack.affine @ [0, 0, 1, 1], [10, 20, 4, 1])
    assert stack.spacing_mm == (3, 2, 4)


@given(st.permutations(range(6)), st.sampled_from([AXIAL, SAGITTAL]))
def test_slices_come_in_the_order_of_space_whatever_the_order_of_arrival(order: list[int], orientation: Any) -> None:
    normal = np.cross(orientation[:3], orientation[3:])
    headers = [header(normal * 4.0 * place, orientation, InstanceNumber=9) for place in order]
    stack = only_stack(planes(headers), names(headers))
    assert [plane.instance for plane in stack.planes] == [order.index(place) for place in range(6)]


def test_a_missing_slice_is_refused() -> None:
    headers = [header((0, 0, 4 * n)) for n in (0, 1, 2, 4, 5)]
    with pytest.raises(Hold, match=r"geometry_unsuitable: .* at 0000 frame 0: slices are missing or uneven"):
        only_stack(planes(headers), names(headers))


def test_gantry_tilt_is_refused() -> None:
    headers = [header((0, n, 4 * n)) for n in range(5)]
    with pytest.raises(Hold, match="gantry tilt"):
        only_stack(planes(headers), names(headers))


def test_positions_rounded_to_a_hundredth_are_one_grid() -> None:
    step = 1.0 / 3
    headers = [header((0, 0, round(step * n, 2)), SliceThickness=step) for n in range(30)]
    assert len(only_stack(planes(headers), names(headers)).planes) == 30


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ImageOrientationPatient": list(SAGITTAL)}, "mixed orientations"),
        ({"Rows": 8}, "mixed sizes"),
        ({"FrameOfReferenceUID": "1.2.9"}, "mixed frames of reference"),
    ],
)
def test_what_does_not_belong_together_is_refused_with_the_reason(change: dict[str, Any], why: str) -> None:
    headers = [header((0, 0, 4 * n)) for n in range(5)]
    for keyword, value in change.items():
        setattr(headers[2], keyword, value)
    with pytest.raises(Hold, match=why):
        only_stack(planes(headers), names(headers))


def test_three_planes_of_a_localiser_are_strays_and_no_volume() -> None:
    coronal = (1, 0, 0, 0, 0, -1)
    stacks, strays = sort(planes([header((0, 0, 0), one) for one in (AXIAL, SAGITTAL, coronal)]))
    assert not stacks
    assert [stray.why for stray in strays] == ["too few slices"] * 3
    assert all(stray.plane is not None for stray in strays)


@pytest.mark.parametrize("keyword", ["EchoTime", "TemporalPositionIdentifier", "AcquisitionNumber"])
def test_a_series_over_time_or_echoes_is_several_volumes_of_one_grid(keyword: str) -> None:
    headers = [header((0, 0, 4 * n), **{keyword: time, "InstanceNumber": n}) for n in range(4) for time in (7, 3)]
    stacks, strays = sort(planes(headers))
    assert not strays
    assert len(stacks) == 2
    assert np.array_equal(stacks[0].affine, stacks[1].affine)
    assert {getattr(headers[plane.instance], keyword) for plane in stacks[0].planes} == {3}


def test_positions_that_repeat_unevenly_make_no_volume() -> None:
    headers = [header((0, 0, 4 * n)) for n in (0, 1, 2, 3, 3)]
    stacks, strays = sort(planes(headers))
    assert not stacks
    assert {stray.why for stray in strays} == {"positions repeat unevenly"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ImagePositionPatient": None}, "no position"),
        ({"ImageOrientationPatient": [1, 0, 0]}, "no orientation"),
        ({"ImageOrientationPatient": [1, 0, 0, 1, 0, 0]}, "orientation is not at right angles"),
        ({"PixelSpacing": [0, 1]}, "pixel spacing"),
        ({"SamplesPerPixel": 3}, "colour"),
        ({"NumberOfFrames": 2}, "several frames without a place each"),
        ({"ImageType": ["ORIGINAL", "PRIMARY", "MOSAIC"]}, "mosaic of slices"),
        ({"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"], "Modality": "CT"}, "projection"),
    ],
)
def test_a_frame_without_a_place_says_why(change: dict[str, Any], why: str) -> None:
    (first, *_) = planes_of(header((0, 0, 0), **change), 0)
    assert isinstance(first, Unplaced)
    assert first.why == why


def enhanced(order: list[int]) -> Dataset:
    """Positions in per-frame groups, everything else shared."""
    dataset = Dataset()
    dataset.Rows, dataset.Columns, dataset.NumberOfFrames = 4, 5, len(order)
    dataset.SeriesInstanceUID, dataset.FrameOfReferenceUID = "1.2.3", "1.2.4"
    shared, measures, orientation, transform = Dataset(), Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [2, 3], 4
    orientation.ImageOrientationPatient = list(AXIAL)
    transform.RescaleSlope, transform.RescaleIntercept = 2, -100
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [orientation]
    shared.PixelValueTransformationSequence = [transform]
    dataset.SharedFunctionalGroupsSequence = [shared]
    groups = []
    for place in order:
        group, position = Dataset(), Dataset()
        position.ImagePositionPatient = [0, 0, 4 * place]
        group.PlanePositionSequence = [position]
        groups.append(group)
    dataset.PerFrameFunctionalGroupsSequence = groups
    return dataset


def test_an_enhanced_object_is_the_same_volume_as_single_slices() -> None:
    order = [2, 0, 3, 1]
    stack = only_stack(planes_of(enhanced(order), 0), ["0000"])
    single = only_stack(planes([header((0, 0, 4 * n)) for n in range(4)]), names([Dataset()] * 4))
    assert np.allclose(stack.affine, single.affine)
    assert [plane.frame for plane in stack.planes] == [1, 3, 0, 2]


def test_values_are_rescaled_and_lie_where_the_affine_says() -> None:
    stack = only_stack(planes_of(enhanced([2, 0, 3, 1]), 0), ["0000"])
    volume = read(stack, lambda plane: np.full((4, 5), plane.position[2], np.int16))
    assert volume.values.shape == (4, 4, 5)
    assert volume.values[:, 0, 0].tolist() == [-100, -92, -84, -76]


def test_reading_coarsely_averages_whole_voxels_and_moves_the_origin() -> None:
    headers = [header((0, 0, n), PixelSpacing=[1, 1], SliceThickness=1) for n in range(4)]
    stack = only_stack(planes(headers), names(headers))
    volume = read(stack, lambda plane: np.arange(20).reshape(4, 5) + 100 * plane.position[2], 2.0)
    assert volume.values.shape == (2, 2, 2)
    assert volume.values[0, 0, 0] == np.mean([0, 1, 5, 6]) + 50
    assert np.allclose(volume.affine @ [0, 0, 0, 1], [0.5, 0.5, 0.5, 1])
    assert np.allclose(volume.spacing_mm, 2)


def test_a_frame_of_another_size_than_its_header_is_refused() -> None:
    headers = [header((0, 0, 4 * n)) for n in range(3)]
    stack = only_stack(planes(headers), names(headers))
    with pytest.raises(Hold, match="not the size that the header states"):
        read(stack, lambda _: np.zeros((4, 6)))


def test_no_value_of_the_data_set_is_in_a_refusal() -> None:
    headers = [header((0, 0, 4 * n), PatientName="LEAK^NAME", FrameOfReferenceUID=f"1.2.{n}") for n in range(3)]
    with pytest.raises(Hold) as refused:
        only_stack(planes(headers), names(headers))
    assert "LEAK" not in str(refused.value)
    assert "1.2.1" not in str(refused.value)
