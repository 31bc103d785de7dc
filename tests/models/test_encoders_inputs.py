"""Preparation of pixels: orientation, spacing, crops and scaling are those of each encoder's authors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from encoder_tensors import shipped
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from models.audit_encoders import anatcl, brain_mri_ssl, dino, inputs, mgca_resnet, neuro_simclr_3d, retfound
from models.audit_encoders.inputs import NotPrepared
from models.audit_encoders.networks import NetworkEncoder


def test_canonical_axes_run_to_the_right_to_the_front_and_up() -> None:
    """DICOM's axial slices: columns go to the person's left, rows to the back; RAS goes the other way."""
    volume = np.zeros((2, 3, 4), np.float32)
    volume[1, 0, 0] = 1  # uppermost, foremost, the person's right
    assert np.argwhere(inputs.ras(volume)).tolist() == [[3, 2, 1]]
    assert inputs.ras(volume).shape == (4, 3, 2)


def prepared_by(
    module: object, card: str, prepared: str, monkeypatch: pytest.MonkeyPatch, **parameters: str
) -> NetworkEncoder:
    """The encoder without its network."""
    monkeypatch.setattr(module, "loaded", lambda *_: torch.nn.Identity())
    base = shipped(card)
    ready = base.model_copy(update={"parameters": {**base.parameters, "prepared": prepared, **parameters}})
    made = module.encoder(ready, {})  # type: ignore[attr-defined]
    assert isinstance(made, NetworkEncoder)
    return made


def test_neuro_simclr_crops_z_y_x_and_scores_inside_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y, x = np.meshgrid(*(np.arange(n, dtype=np.float64) for n in (193, 229, 193)), indexing="ij")
    by_zyx = (1 + z * 1e-2 + y * 1e-4 + x * 1e-6).astype(np.float32)  # as nibabel has it, transposed
    by_zyx[:, :120] = 0
    mine = by_zyx[:, ::-1, ::-1]  # rows to the back, columns to the left
    encoder = prepared_by(neuro_simclr_3d, "neuro-simclr-3d", "turboprep", monkeypatch)
    found = encoder.prepare(mine, (1.0, 1.0, 1.0))[0, 0].numpy()
    expected = by_zyx[10:160, 19:211, 1:].astype(np.float64)
    assert found.shape == (150, 192, 192)
    mask = expected != 0
    scored = np.where(mask, (expected - expected[mask].mean()) / expected[mask].std(), 0)
    np.testing.assert_allclose(found, scored, atol=1e-4)
    assert (found[:, :101] == 0).all()  # outside stays exactly 0
    with pytest.raises(NotPrepared, match="not 0 outside the brain"):
        encoder.prepare(mine + 1, (1.0, 1.0, 1.0))
    with pytest.raises(NotPrepared, match="without a brain"):
        encoder.prepare(np.zeros_like(mine), None)


def test_anatcl_crops_the_middle_128_rows_and_scales_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    by_xyz = np.random.default_rng(0).random((121, 145, 121)).astype(np.float32) * 1.7
    mine = by_xyz.transpose(2, 1, 0)[:, ::-1, ::-1]
    encoder = prepared_by(anatcl, "anatcl-local", "cat12-mwp1", monkeypatch)
    np.testing.assert_array_equal(encoder.prepare(mine, (1.5,) * 3)[0, 0].numpy(), by_xyz[:, 8:136])
    whole = prepared_by(anatcl, "anatcl-local", "cat12-mwp1", monkeypatch, crop="whole", x_axis="right-to-left")
    np.testing.assert_array_equal(whole.prepare(mine, None)[0, 0].numpy(), by_xyz[::-1])


@given(size=st.integers(4, 12), old=st.floats(0.6, 3), new=st.floats(0.6, 3))
def test_resampling_keeps_faces_and_is_linear(size: int, old: float, new: float) -> None:
    places = (np.arange(size) + 0.5) * old  # centres in mm from the outer face
    volume = np.broadcast_to(places[:, None, None], (size, 3, 3)).astype(np.float32)
    found = inputs.resampled(volume, (old, new, new), new)
    count = int(np.ceil(size * old / new - 1e-6))
    assert found.shape == (count, 3, 3)
    centres = np.clip((np.arange(count) + 0.5) * new, places[0], places[-1])
    np.testing.assert_allclose(found[:, 1, 1], centres, rtol=1e-4, atol=1e-4)


def test_twenty_axial_slices_between_a_quarter_and_three_quarters() -> None:
    volume = np.broadcast_to(np.arange(101, dtype=np.float32)[:, None, None], (101, 8, 8))
    cut = inputs.sections(volume, None, "axial", 20)
    assert [one[0, 0] for one in cut] == [round(float(25 + i * 50 / 19)) for i in range(20)]
    generator = np.random.default_rng(0)
    head = generator.random((60, 70, 50)).astype(np.float32)
    assert brain_mri_ssl.prepare(head, (2, 1, 1)).shape == (20, 3, 224, 224)
    assert dino.prepare(head, None).shape == (30, 3, 224, 224)


def test_planes_stand_upright_with_square_pixels() -> None:
    volume = np.zeros((10, 20, 20), np.float32)
    volume[9] = 1  # the top of the head
    coronal = inputs.sections(volume, (2.0, 1.0, 1.0), "coronal", 3)
    assert {one.shape for one in coronal} == {(20, 20)}  # 10 slices of 2 mm
    assert coronal[0][0].min() == 1  # the top of the head is the top of the picture
    assert coronal[0][-1].max() == 0
    assert {one.shape for one in inputs.sections(volume, (2.0, 1.0, 1.0), "axial", 3)} == {(20, 20)}
    assert {one.shape for one in inputs.sections(volume, None, "sagittal", 3)} == {(10, 20)}


def test_the_window_is_the_volumes_and_has_256_steps() -> None:
    volume = np.zeros((4, 30, 30), np.float32)
    volume[1:3, 5:25, 5:25] = np.linspace(100, 300, 800).reshape(2, 20, 20)
    found = inputs.windowed(volume)
    inside = volume[volume > volume.mean()]
    low, high = np.percentile(inside, (1, 99))
    assert found.min() == 0
    assert found.max() == 1
    middle = volume[1, 24, 10]
    assert found[1, 24, 10] == pytest.approx(round(float((middle - low) / (high - low) * 255)) / 255)
    np.testing.assert_allclose(found * 255, np.rint(found * 255), atol=1e-4)
    assert np.isfinite(inputs.windowed(np.zeros((2, 3, 3), np.float32))).all()


@pytest.mark.parametrize(
    ("mode", "pil"), [("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)]
)
@pytest.mark.parametrize("shape", [(300, 400), (517, 301), (64, 90)])
def test_resizing_is_pillows(mode: str, pil: Image.Resampling, shape: tuple[int, int]) -> None:
    """torchvision resizes PIL images with Pillow: the shorter side 256."""
    noise = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    found = inputs.resized(noise.astype(np.float32) / 255, mode)[0, 0].numpy()  # type: ignore[arg-type]
    height, width = shape
    size = (256, int(256 * height / width)) if width <= height else (int(256 * width / height), 256)
    expected = np.asarray(Image.fromarray(noise).resize(size, pil), np.float32) / 255
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_the_middle_and_imagenets_statistics() -> None:
    image = np.full((256, 300), 0.5, np.float32)
    found = inputs.imagenet([image], "bilinear")
    grey = 128 / 255  # 0.5 on 8 bits, to the even neighbour
    assert found.shape == (1, 3, 224, 224)
    np.testing.assert_allclose(
        found[0, :, 100, 100], [(grey - 0.485) / 0.229, (grey - 0.456) / 0.224, (grey - 0.406) / 0.225], rtol=1e-5
    )
    ramp = torch.arange(256.0)[None, None, None].expand(1, 1, 256, 256)
    assert inputs.cropped(ramp)[0, 0, 0, [0, -1]].tolist() == [16, 239]


def test_mgca_pads_the_longer_side_to_256_and_halves() -> None:
    image = np.ones((512, 256), np.float32)
    square = inputs.padded_square(image)
    assert square.shape == (256, 256)
    assert (square[:, 64:192] == 1).all()
    assert square[:, :64].sum() + square[:, 192:].sum() == 0
    found = mgca_resnet.prepare(image)[0, :, 100]
    assert set(np.unique(found.numpy())) == {-1.0, 1.0}
    assert (found[:, 48:176] == 1).all()  # 16 columns are cropped from each side


@pytest.mark.parametrize("value", [-0.01, 1.5, float("nan"), float("inf")])
def test_pixels_that_are_not_from_0_to_1_are_refused(value: float) -> None:
    image = np.full((8, 8), 0.5, np.float32)
    image[3, 3] = value
    with pytest.raises(NotPrepared, match="from 0 to 1"):
        inputs.an_image(image)


def test_a_volume_with_values_that_are_no_numbers_is_refused() -> None:
    volume = np.full((4, 4, 4), 700.0, np.float32)
    assert inputs.a_volume(volume) is volume
    volume[0, 0, 0] = np.nan
    with pytest.raises(NotPrepared, match="no numbers"):
        inputs.a_volume(volume)


def test_retfound_knows_two_conventions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retfound, "loaded", lambda *_: torch.nn.Identity())
    image = np.random.default_rng(0).random((300, 260)).astype(np.float32)
    card = shipped("retfound-cfp")
    usual = retfound.encoder(card, {}).prepare(image, None)  # type: ignore[attr-defined]
    torch.testing.assert_close(usual[0, 0] * 0.229 + 0.485, usual[0, 2] * 0.225 + 0.406)
    own = card.model_copy(update={"parameters": {"normalise": "image"}})
    found = retfound.encoder(own, {}).prepare(image, None)  # type: ignore[attr-defined]
    assert float(found.mean()) == pytest.approx(0, abs=1e-5)
    assert float(found.std(correction=0)) == pytest.approx(1, abs=1e-4)
