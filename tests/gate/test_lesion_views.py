"""Where a lesion is drawn, what is cut out by it on both sides of a study, and what is no evidence."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import Dataset
from pydicom.uid import generate_uid
from releasing import write_card
from skimage.draw import polygon2mask

from gateway.errors import Hold
from gateway.evidence import distances
from gateway.gate.attackers import Folders
from gateway.gate.face_reading import Side, headers_of
from gateway.gate.lesion_drawn import Drawing, Mask, inside, lesions_in
from gateway.gate.lesion_views import cut, embed_lesion_views
from gateway.gate.reading import Pair
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_sample import BACKGROUND, LESION
from gateway.gate.release_views import ViewLimits
from gateway.gate.views import Embedded
from gateway.pixels.lesion_masks import from_segmentation
from gateway.policy import GatePolicy, HeaderPolicy, Policy
from gateway.volumes import Stack
from tests.lesion_series import modality_of, structures, write_study
from tests.lesion_studies import lesion_of

PERSON, OTHER = 1, 4
VOLUMES = "brain-audit-1"
POLICY = Policy(
    name="lesions",
    header=HeaderPolicy(),
    gate=GatePolicy(
        study={},
        release={"linkability": ReleaseLinkability(("near", VOLUMES), 0.5, views=ViewLimits(0.5, 0.5))},
    ),
)


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return write_card(tmp_path_factory.mktemp("models"), modalities=["MR"])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_study(tmp_path_factory.mktemp("in"), PERSON)


@pytest.fixture
def study(files: list[Path], tmp_path: Path) -> list[Pair]:
    """T1, FLAIR and a segmentation of one person, and the same as what would leave."""
    made = []
    for number, path in enumerate(files):
        names = [tmp_path / f"{number:05d}-{side}.dcm" for side in ("before", "after")]
        for name in names:
            shutil.copy(path, name)
        made.append(Pair(f"{number:05d}", *names))
    return made


def embedded(pairs: Sequence[Pair], cards: Folders, policy: Policy = POLICY) -> dict[str, dict[str, Embedded]]:
    found = embed_lesion_views(pairs, policy, cards, frozenset({"SEG", "RTSTRUCT"}))
    return {view: {one.card: one for one in made} for view, made in found.items()}


def change(path: Path, how: Callable[[Dataset], None]) -> None:
    dataset = pydicom.dcmread(path)
    how(dataset)
    dataset.save_as(path)


def of_modality(pairs: Sequence[Pair], modality: str) -> list[Pair]:
    return [pair for pair in pairs if modality_of(pair.original) == modality]


def drawing(pairs: Sequence[Pair]) -> tuple[Drawing, list[Stack]]:
    """The originals' side, and the stacks of MR images."""
    headers = headers_of(pairs)
    names = [pair.name for pair in pairs]
    side = Side([pair.original for pair in pairs], names, original=True)
    made = Drawing(headers.datasets, side, names, lesions_in(headers.datasets, names, ()))
    return made, [one for one in headers.stacks if headers.datasets[one.planes[0].instance].Modality == "MR"]


def masks(pairs: Sequence[Pair]) -> list[Mask]:
    made, stacks = drawing(pairs)
    return [made.mask(stack) for stack in stacks]


# -- where the lesion lies --------------------------------------------------------------------------------------------


def test_a_segmentation_marks_the_voxels_that_were_drawn(study: list[Pair]) -> None:
    found = masks(study)
    assert len(found) == 2
    for mask in found:
        np.testing.assert_array_equal(mask, lesion_of(PERSON))


def test_contours_mark_what_lies_within_them(study: list[Pair]) -> None:
    """A square drawn half a voxel around three by two voxels of one slice; a second one in it cuts a voxel out."""
    images = of_modality(study, "MR")
    _, (stack, *_) = drawing(study)
    corner = np.array([[8.5, 4.5], [11.5, 4.5], [11.5, 6.5], [8.5, 6.5]])  # column, row
    hole = np.array([[8.6, 4.6], [9.4, 4.6], [9.4, 5.4], [8.6, 5.4]])
    polygons = [
        (stack.affine[:3, :2] @ points.T + stack.affine[:3, 2:3] * 7 + stack.affine[:3, 3:]).T
        for points in (corner, hole)
    ]
    made = structures(pydicom.dcmread(images[0].original), {"GTV 1": polygons, "brain": polygons[:1]})
    path = images[0].original.with_name("rt.dcm")
    made.save_as(path, enforce_file_format=True)
    mask, _ = masks([*images, Pair("90000", path, path)])
    wanted = np.zeros(mask.shape, np.bool_)
    wanted[7, 5:7, 9:12] = True
    wanted[7, 5, 9] = False
    np.testing.assert_array_equal(mask, wanted)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 9))
def test_polygons_are_filled_as_another_reader_fills_them(seed: int, corners: int) -> None:
    points = np.random.default_rng(seed).uniform(-3, 23, (corners, 2))
    wanted = polygon2mask((20, 17), points)  # type: ignore[no-untyped-call]
    np.testing.assert_array_equal(inside(points[:, 0], points[:, 1], 20, 17), wanted)


def test_a_mask_of_another_grid_lies_where_the_scrubber_s_own_reader_finds_it(study: list[Pair]) -> None:
    """Frames of 5 x 4 mm, shifted: the two readers share no code beyond where a plane lies."""
    (seg,) = of_modality(study, "SEG")
    fine = pydicom.dcmread(seg.original)
    generator = np.random.default_rng(0)
    bits = generator.random((int(fine.NumberOfFrames), 40, 30)) < 0.4
    fine.Rows, fine.Columns, fine.PixelData = 40, 30, np.packbits(bits.ravel(), bitorder="little").tobytes()
    shared = fine.SharedFunctionalGroupsSequence[0]
    shared.PixelMeasuresSequence[0].PixelSpacing = [5, 4]
    for group in fine.PerFrameFunctionalGroupsSequence:
        place = group.PlanePositionSequence[0]
        place.ImagePositionPatient = [
            float(one) + shift for one, shift in zip(place.ImagePositionPatient, (9.5, 7.3, 0), strict=True)
        ]
    fine.save_as(seg.original)
    _, (stack, *_) = drawing(study)
    wanted = from_segmentation(fine, lambda frame: bits[frame], stack, (), "")
    assert wanted is not None
    assert 0 < wanted.mask.sum() < wanted.mask.size
    np.testing.assert_array_equal(masks(study)[0], wanted.mask)


def test_what_is_drawn_beside_lesions_is_background(study: list[Pair]) -> None:
    (seg,) = of_modality(study, "SEG")

    def brain(dataset: Dataset) -> None:
        segment = dataset.SegmentSequence[0]
        segment.SegmentLabel = "brain"
        for word, code in (("Category", "123037004"), ("Type", "12738006")):
            segment[f"SegmentedProperty{word}CodeSequence"][0].CodeValue = code

    change(seg.original, brain)
    datasets = [pydicom.dcmread(pair.original, stop_before_pixels=True) for pair in study]
    assert lesions_in(datasets, [pair.name for pair in study], ()) == {}
    named = lesions_in(datasets, [pair.name for pair in study], ("Brain",))
    assert list(named.values()) == [frozenset({1})]


# -- what is cut out by it --------------------------------------------------------------------------------------------


def test_views_are_cut_as_they_are_named() -> None:
    pixels = np.array([[0, 0.2, 0.4], [0.9, 0.8, 0.6]], np.float32)
    lesion = np.array([[False, False, False], [True, True, False]])
    np.testing.assert_allclose(cut(pixels, lesion, LESION), [[0, 0, 0], [0.9, 0.8, 0]])
    np.testing.assert_allclose(cut(pixels, lesion, BACKGROUND), [[0, 0.2, 0.4], [0.4, 0.4, 0.6]], rtol=1e-6)
    assert not cut(pixels, np.ones_like(lesion), BACKGROUND).any()


def test_an_untouched_study_is_itself_in_every_view(study: list[Pair], cards: Folders) -> None:
    found = embedded(study, cards)
    assert {view: set(by_card) for view, by_card in found.items()} == {
        view: {"near", VOLUMES} for view in (BACKGROUND, LESION)
    }
    for by_card in found.values():
        for one in by_card.values():
            assert len(one.originals) == len(one.released) == len(one.names) == 2
            np.testing.assert_array_equal(one.originals, one.released)
    for card in ("near", VOLUMES):
        apart = distances(found[LESION][card].originals, found[BACKGROUND][card].originals, "cosine")
        assert np.diag(apart).min() > 0.01


@pytest.mark.parametrize(("kept", "near", "far"), [(LESION, LESION, BACKGROUND), (BACKGROUND, BACKGROUND, LESION)])
def test_what_stays_is_seen_in_its_own_view(
    study: list[Pair], cards: Folders, tmp_path: Path, kept: str, near: str, far: str
) -> None:
    """Of each slice only the lesion, or only what is around it, stays; the rest is another person's, or turned."""
    spare = write_study(tmp_path / "other", OTHER)
    others = {_place(path): pydicom.dcmread(path).pixel_array for path in spare if modality_of(path) == "MR"}
    made, stacks = drawing(study)
    for stack in stacks:
        for plane, lesion in zip(stack.planes, made.mask(stack), strict=True):
            pair = study[plane.instance]
            original = pydicom.dcmread(pair.original).pixel_array
            if kept == LESION:
                values = np.where(lesion, original, others[_place(pair.original)])
            else:
                values = np.where(
                    lesion, original * np.random.default_rng(plane.frame).random(original.shape), original
                )
            left = pydicom.dcmread(pair.candidate)
            left.PixelData = values.astype(original.dtype).tobytes()
            left.save_as(pair.candidate)
    found = embedded(study, cards)
    for card in ("near", VOLUMES):
        apart = {
            view: np.diag(distances(by_card[card].originals, by_card[card].released, "cosine")).max()
            for view, by_card in found.items()
        }
        assert apart[near] < 0.2 * apart[far], apart


def _place(path: Path) -> tuple[str, float]:
    one = pydicom.dcmread(path, stop_before_pixels=True)
    return str(one.SeriesDescription), float(one.ImagePositionPatient[2])


def test_a_policy_that_names_no_view_embeds_none(study: list[Pair], cards: Folders) -> None:
    checks = {"linkability": ReleaseLinkability(("near",), 0.5)}
    policy = POLICY.model_copy(update={"gate": GatePolicy(study={}, release=checks)})
    assert embed_lesion_views(study, policy, cards) == {}


def test_only_the_cards_of_a_check_embed_the_views_that_it_names(study: list[Pair], cards: Folders) -> None:
    checks = {
        "linkability": ReleaseLinkability(("near",), 0.5, views=ViewLimits(lesion=0.5)),
        "attribute": ReleaseLinkability((VOLUMES,), 0.5),
    }
    policy = POLICY.model_copy(update={"gate": GatePolicy(study={}, release=checks)})
    assert {view: set(found) for view, found in embedded(study, cards, policy).items()} == {LESION: {"near"}}


# -- no evidence ------------------------------------------------------------------------------------------------------


def held(pairs: Sequence[Pair], cards: Folders, policy: Policy = POLICY) -> str:
    with pytest.raises(Hold) as error:
        embedded(pairs, cards, policy)
    assert error.value.reason == "lesion_undrawn"
    return error.value.at


def test_a_study_whose_mask_does_not_leave_is_held(study: list[Pair], cards: Folders) -> None:
    assert held(of_modality(study, "MR"), cards) == "no lesion is drawn in what would leave"


def _elsewhere(dataset: Dataset) -> None:
    dataset.FrameOfReferenceUID = generate_uid(entropy_srcs=["elsewhere"])


def _moved(dataset: Dataset) -> None:
    dataset.ImagePositionPatient = [float(one) + 3 for one in dataset.ImagePositionPatient]


def _emptied(dataset: Dataset) -> None:
    dataset.PixelData = bytes(len(dataset.PixelData))


def _label_map(dataset: Dataset) -> None:
    dataset.SegmentationType = "LABELMAP"


@pytest.mark.parametrize(
    ("modality", "how", "says"),
    [
        ("SEG", _elsewhere, "another frame of reference"),
        ("SEG", _emptied, "on one side only"),
        ("SEG", _label_map, "segmentation type"),
        ("MR", _elsewhere, "another frame of reference"),
        ("MR", _moved, "elsewhere than before"),
    ],
)
def test_a_mask_that_leaves_without_its_place_is_no_evidence(
    study: list[Pair], cards: Folders, modality: str, how: Callable[[Dataset], None], says: str
) -> None:
    for pair in of_modality(study, modality):
        change(pair.candidate, how)
    assert says in held(study, cards)


def test_masks_of_nothing_on_both_sides_are_no_evidence(study: list[Pair], cards: Folders) -> None:
    (seg,) = of_modality(study, "SEG")
    for path in (seg.original, seg.candidate):
        change(path, _emptied)
    assert held(study, cards) == f"no image of {VOLUMES} shows a lesion"
    checks = {"linkability": ReleaseLinkability(("near",), 0.5, views=ViewLimits(background=0.5))}
    policy = POLICY.model_copy(update={"gate": GatePolicy(study={}, release=checks)})
    assert held(study, cards, policy) == "no image of near shows a lesion"


def test_an_image_without_a_volume_has_no_place_for_the_mask(study: list[Pair], cards: Folders, tmp_path: Path) -> None:
    localiser = pydicom.dcmread(study[0].original)
    localiser.SeriesInstanceUID, localiser.SOPInstanceUID = generate_uid(), generate_uid()
    localiser.file_meta.MediaStorageSOPInstanceUID = localiser.SOPInstanceUID
    path = tmp_path / "localiser.dcm"
    localiser.save_as(path)
    assert held([*study, Pair("90000", path, path)], cards) == "90000: an image that is no volume"
