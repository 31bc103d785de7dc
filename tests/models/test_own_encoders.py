"""Our own encoders: what they make of pixels, that their cards are whole, and that they beat what is untrained."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from gateway.embed import open_embedder
from gateway.gate.attackers import folders_of
from gateway.gate.same_scan import SameScan
from models.audit_encoders import BASELINES, ENCODERS
from models.audit_encoders.gradients import histograms
from models.audit_encoders.inputs import NotPrepared
from models.audit_encoders.own_adaptive import WAYS, TwoWays, texture
from models.audit_encoders.own_brains import CUBE, VOXEL_MM, head_cube, planes
from models.audit_encoders.own_eyes import eye
from models.audit_encoders.own_films import film
from models.audit_encoders.own_network import IdentityNetwork, embed_planes, gradients_of, takes, unit
from models.cards import SHIPPED, Card, CardError, find_card, people_hash, read_people, weights_of

OWN = ("chest-audit-1", "fundus-audit-1", "brain-audit-1")
LARGEST_BYTES = 5 * 2**20


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Networks this small are slower on two threads, and much slower beside other tests."""
    torch.set_num_threads(1)


def picture(seed: int, shape: tuple[int, ...] = (80, 72)) -> NDArray[np.float32]:
    smooth = gaussian_filter(np.random.default_rng(seed).random(shape), 3)
    return ((smooth - smooth.min()) / np.ptp(smooth)).astype(np.float32)


def head(centre_mm: tuple[float, float, float], spacing_mm: tuple[float, float, float]) -> NDArray[np.float32]:
    """An ellipsoid of 90 x 100 x 75 mm half axes with a dent, in a field of 240 mm, on a column of neck."""
    shape = tuple(round(240 / one) for one in spacing_mm)
    z, y, x = (
        (np.arange(n) * mm - c).reshape([-1 if a == axis else 1 for a in range(3)])
        for axis, (n, mm, c) in enumerate(zip(shape, spacing_mm, centre_mm, strict=True))
    )
    skull = (z / 90) ** 2 + (y / 100) ** 2 + (x / 75) ** 2 < 1
    neck = (z < 0) & (y**2 + x**2 < 55**2)
    dent = (z - 20) ** 2 + (y - 20) ** 2 + (x - 30) ** 2 < 25**2
    return np.where((skull | neck) & ~dent, 0.8, 0.0).astype(np.float32)


def tiny() -> tuple[Card, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    network = IdentityNetwork(1, 4, 8)
    tensors = {f"network.{name}": one for name, one in network.state_dict().items()}
    tensors |= {"gradients.mean": torch.zeros(1764), "gradients.matrix": torch.randn(1764, 6)}
    card = Card(
        name="tiny-1",
        role="attacker",
        algorithm="own_films",
        modalities=("CR",),
        dimensions=14,
        parameters={"side": 32, "width": 4, "shift": 2},
        intended_use="a test",
        limits="all",
        licence="none",
        source="here",
    )
    return card, tensors


@pytest.mark.parametrize(("said", "share"), [({}, 0.5), ({"gradients": 0.8}, 0.8), ({"gradients": 0}, 0.0)])
def test_an_embedding_has_two_parts_by_their_shares(said: dict[str, float], share: float) -> None:
    card, tensors = tiny()
    card = card.model_copy(update={"parameters": {**card.parameters, **said}})
    found = ENCODERS["own_films"](card, tensors)(picture(0))
    np.testing.assert_allclose([np.sum(found[:8] ** 2), np.sum(found[8:] ** 2)], [1 - share, share], atol=1e-5)


@pytest.mark.parametrize("share", [1.5, -0.1, "much"])
def test_a_share_that_is_none_is_refused(share: object) -> None:
    card, tensors = tiny()
    card = card.model_copy(update={"parameters": {**card.parameters, "gradients": share}})
    with pytest.raises(CardError, match="gradients"):
        ENCODERS["own_films"](card, tensors)


@given(st.floats(0.1, 0.5), st.floats(0, 0.5))
@settings(deadline=None, max_examples=6)
def test_brightness_and_contrast_are_no_identity(factor: float, offset: float) -> None:
    card, tensors = tiny()
    encoder = ENCODERS["own_films"](card, tensors)
    np.testing.assert_allclose(
        encoder(picture(1)), encoder(picture(1) * np.float32(factor) + np.float32(offset)), atol=2e-3
    )


def test_a_blank_film_has_a_finite_embedding() -> None:
    card, tensors = tiny()
    assert np.isfinite(ENCODERS["own_films"](card, tensors)(np.zeros((40, 40), np.float32))).all()


def test_what_is_in_the_batch_does_not_change_an_embedding() -> None:
    torch.manual_seed(1)
    network = IdentityNetwork(3, 4, 8).eval()
    batch = torch.randn(5, 2, 3, 32, 32)
    alone = torch.cat([embed_planes(network, one[None], 2) for one in batch])
    torch.testing.assert_close(embed_planes(network, batch, 2), alone, atol=1e-5, rtol=1e-4)


def test_planes_of_a_scan_are_averaged_whatever_their_order() -> None:
    torch.manual_seed(2)
    network = IdentityNetwork(1, 4, 8).eval()
    scan = torch.randn(1, 3, 1, 32, 32)
    one = embed_planes(network, scan, 1)
    torch.testing.assert_close(one, embed_planes(network, scan[:, [2, 0, 1]], 1), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(one.norm(dim=1), torch.ones(1))


def test_takes_move_the_planes_and_repeat_the_edge() -> None:
    x = torch.arange(16.0).reshape(1, 1, 1, 4, 4)
    found = takes(x, 1)
    assert torch.equal(found[0], x)
    rows = {(0, 0, 4, 8): -1, (0, 4, 8, 12): 0, (4, 8, 12, 12): 1}
    columns = {(0, 0, 1, 2): -1, (0, 1, 2, 3): 0, (1, 2, 3, 3): 1}
    moves = set()
    for take in found:
        plane = take[0, 0, 0]
        down, right = (plane[:, 0] - plane[0, 0]).tolist(), (plane[0] - plane[0, 0]).tolist()
        corner = int(plane[0, 0])
        moves.add(
            (
                rows[tuple(int(one) + corner - corner % 4 for one in down)],
                columns[tuple(int(one) + corner % 4 for one in right)],
            )
        )
    assert moves == {(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)}


def test_gradients_are_averaged_over_the_takes() -> None:
    planes_ = film(picture(5, (64, 64)), None, 64)
    alone = [gradients_of(take[0]) for take in takes(planes_[None], 3)]
    np.testing.assert_allclose(gradients_of(planes_, 3), np.mean(alone, axis=0), atol=1e-6)


@pytest.mark.parametrize("missing", ["gradients.matrix", "network.out.bias"])
def test_weights_that_are_not_whole_are_refused(missing: str) -> None:
    card, tensors = tiny()
    del tensors[missing]
    with pytest.raises(CardError, match="tiny-1"):
        ENCODERS["own_films"](card, tensors)


def test_a_film_is_no_volume_and_a_head_no_film() -> None:
    with pytest.raises(NotPrepared):
        film(np.zeros((4, 4, 4), np.float32), None, 32)
    with pytest.raises(NotPrepared):
        planes(np.zeros((4, 4), np.float32), (1, 1, 1), 96)
    with pytest.raises(NotPrepared, match="mm"):
        planes(np.zeros((4, 4, 4), np.float32), None, 96)


def test_a_film_is_averaged_over_areas() -> None:
    image = np.kron(picture(3, (32, 32)), np.ones((3, 2), np.float32))
    np.testing.assert_allclose(film(image, None, 32)[0, 0], film(picture(3, (32, 32)), None, 32)[0, 0], atol=1e-4)


@pytest.mark.parametrize("spacing_mm", [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (3.0, 1.5, 1.5)])
def test_the_cube_is_about_the_head_wherever_it_lies_and_however_it_was_sampled(
    spacing_mm: tuple[float, float, float],
) -> None:
    reference = head_cube(head((120, 120, 120), (2.0, 2.0, 2.0)), (2.0, 2.0, 2.0))
    moved = head_cube(head((132, 110, 126), spacing_mm), spacing_mm)
    assert moved.shape == (CUBE, CUBE, CUBE)
    inside, found = reference > 0.4, moved > 0.4
    overlap = 2 * (inside & found).sum() / (inside.sum() + found.sum())
    assert overlap > 0.96
    middle = np.argwhere(found[CUBE // 2 :]).mean(0)  # the upper half: the neck is asymmetric in nothing but z
    assert np.abs(middle[1:] - (CUBE - 1) / 2).max() * VOXEL_MM < 4


def test_planes_are_axial_coronal_sagittal_through_the_cube() -> None:
    volume = head((120, 120, 120), (2.0, 2.0, 2.0))
    cube = head_cube(volume, (2.0, 2.0, 2.0))
    found = planes(volume, (2.0, 2.0, 2.0), CUBE).numpy()
    assert found.shape == (3, 3, CUBE, CUBE)
    for axis in range(3):
        cut = np.take(cube, CUBE // 2, axis)
        assert np.corrcoef(found[axis, 1].ravel(), cut.ravel())[0, 1] > 0.999
    np.testing.assert_allclose(found.mean((1, 2, 3)), 0, atol=1e-4)
    np.testing.assert_allclose(found.std((1, 2, 3)), 1, atol=1e-3)


def test_an_eye_is_its_local_contrast_whatever_flash_and_frame() -> None:
    y, x = np.mgrid[-1:1:160j, -1:1:240j]
    vessels, disc = picture(7, (160, 240)), x**2 + y**2 < 0.9
    plain = np.where(disc, 0.4 + 0.3 * vessels, 0).astype(np.float32)
    flashed = np.where(disc, plain * (1 + 0.3 * x), 0.01).astype(np.float32)
    one, other = eye(plain, None, 64)[0, 0].numpy(), eye(flashed, None, 64)[0, 0].numpy()
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.95
    np.testing.assert_allclose(one, eye(plain * np.float32(0.3), None, 64)[0, 0], atol=1e-3)
    np.testing.assert_array_equal(one[:4, :4], one[0, 0])
    with pytest.raises(NotPrepared):
        eye(np.zeros((4, 4, 4), np.float32), None, 32)


def test_an_empty_volume_has_a_finite_embedding() -> None:
    assert torch.isfinite(planes(np.zeros((20, 20, 20), np.float32), (4, 4, 4), 96)).all()
    assert torch.isfinite(eye(np.zeros((20, 20), np.float32), None, 64)).all()


def test_each_way_takes_its_own_rows_in_their_order() -> None:
    torch.manual_seed(3)
    both = TwoWays(1, 4, 8).eval()
    x = torch.randn(6, 1, 1, 32, 32)
    released = torch.tensor([True, False, False, True, True, False])
    with torch.inference_mode():
        found = both(x, released)
        for row in range(6):
            way = getattr(both, WAYS[int(released[row])])
            torch.testing.assert_close(found[row], way(x[row : row + 1])[0], atol=1e-5, rtol=1e-4)


def test_texture_ignores_exposure_and_sees_shuffled_pixels() -> None:
    image = picture(4, (64, 64))
    shuffled = np.random.default_rng(0).permutation(image.ravel()).reshape(image.shape)
    plain, exposed, other = (
        texture(film(one, None, 64)) for one in (image, 0.3 * image + 0.5, shuffled.astype(np.float32))
    )
    np.testing.assert_allclose(plain, exposed, atol=1e-3)
    assert np.abs(plain - other).max() > 1


def test_gradients_of_a_film_are_the_baseline() -> None:
    image = picture(5, (64, 64))
    np.testing.assert_allclose(gradients_of(film(image, None, 64)), BASELINES["hog"](image), atol=1e-4)


@pytest.mark.parametrize("side", [32, 64, 96])
def test_histograms_are_those_of_scikit_image(side: int) -> None:
    from skimage.feature import hog

    images = np.stack([*(picture(k, (side, side)) for k in range(3)), np.zeros((side, side), np.float32)])
    images[1] = np.round(images[1] * 4)  # steps and flat places: gradients of 0, 90 and 45 degrees
    cell = side // 8
    expected = np.stack([hog(one, 9, (cell, cell), (2, 2), block_norm="L2-Hys") for one in images])
    np.testing.assert_allclose(histograms(images), expected, atol=1e-4)
    with pytest.raises(ValueError, match="multiple of 8"):
        histograms(np.zeros((1, 30, 30), np.float32))


def test_zeros_have_no_direction() -> None:
    np.testing.assert_array_equal(unit(np.zeros((2, 3), np.float32)), 0)


@pytest.mark.parametrize("name", OWN)
def test_a_shipped_card_is_whole(name: str) -> None:
    """Weights, people, fixed input and figures are there, small, and agree with each other."""
    card, folder = find_card(name)
    path = weights_of(card, folder)
    assert path is not None
    assert path.stat().st_size < LARGEST_BYTES
    assert len(read_people(card, folder)) == sum(one.people for one in card.trained_on)
    assert card.fixed_input_sha256 is not None
    assert {"protocol", "distance"} < set(card.metrics)
    assert any(key.endswith(": rank1") for key in card.metrics)
    embedder = open_embedder(name)  # checks the fixed input
    pixels = picture(6, (40, 48, 40)) if "MR" in card.modalities else picture(6)
    found = embedder.embed(pixels, (4.0, 4.0, 4.0) if pixels.ndim == 3 else None)
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("name", OWN)
def test_a_shipped_card_carries_impostors_or_says_why_not(name: str) -> None:
    policy: Any = SimpleNamespace(pixels=(), release=None, attempts=1, gate=SimpleNamespace(not_assessed=()))
    card, _ = find_card(name)
    faults = list(SameScan(name, 0.01).misfits(policy, folders_of()))
    if card.impostors is not None:
        assert faults == []
        assert "synthetic" in card.limits
    else:
        ((says, hint),) = faults
        assert "carries no impostors; same_scan needs 200 people" in says
        assert f"deid-gateway models calibrate {name}" in hint
        assert "only" in card.limits
        assert "models calibrate" in card.limits


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "reader", "folder"),
    [
        ("chest-audit-1", "nih64", "cxr"),
        ("chest-audit-1", "hannover", "cxr"),
        ("fundus-audit-1", "ridb", "fundus"),
    ],
)
def test_ours_beats_the_untrained_on_people_not_trained_on(
    shared_data: Path, name: str, reader: str, folder: str
) -> None:
    from gateway.evidence import leave_one_out, score_pairs, separation
    from gateway.learn.judged import people_of
    from models.cohorts import READERS

    cohort = READERS[reader](shared_data / folder)
    seen = read_people(find_card(name)[0], SHIPPED)
    others = cohort.of([subject for subject in cohort.subjects if people_hash(cohort.name, subject) not in seen])
    assert 0 < len(others.subjects) < len(cohort.subjects)
    people = people_of(others)
    images = [scan.load() for scan in others]
    encoders = {**BASELINES, "own": open_embedder(name).embed}
    embeddings = {key: np.stack([embed(image) for image in images]) for key, embed in encoders.items()}
    rank1 = {key: leave_one_out(rows, people, "cosine").rank1 for key, rows in embeddings.items()}
    pairs = {key: score_pairs(rows, people, "cosine") for key, rows in embeddings.items()}
    auc = {key: separation(one.mated, one.non_mated)[0] for key, one in pairs.items()}
    assert rank1["own"] > max(rank1["raw"], rank1["hog"])
    assert auc["own"] > max(auc["raw"], auc["hog"]) + 0.05
