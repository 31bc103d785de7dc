"""SAM-Med3D: the fast form gives what the published code gives, quirks and padded windows included (facts.md 1.5)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from encoder_tensors import seeded, shipped
from torch.nn import functional

from models.audit_encoders import sam_med3d
from models.audit_encoders.inputs import NotPrepared
from models.audit_encoders.sam_med3d_network import ImageEncoder3D

WIDTH, HEADS, GRID, WINDOW, OUTSIDE = 16, 2, 8, 14, 6
Tensors = dict[str, torch.Tensor]


def small(grid: int = GRID, window: int = WINDOW, depth: int = 3) -> tuple[ImageEncoder3D, Tensors]:
    made = ImageEncoder3D(
        WIDTH, depth, HEADS, patch=2, grid=grid, window=window, whole_grid=(depth - 1,), outside=OUTSIDE
    ).double()
    state = {k: v.double() for k, v in seeded({k: tuple(v.shape) for k, v in made.state_dict().items()}).items()}
    made.load_state_dict(state)
    return made, state


def literal_attention(t: Tensors, at: str, x: torch.Tensor, *, correct: bool = False) -> torch.Tensor:
    """All queries of one window (b, s, s, s, c) against all keys, the bias as the published code broadcasts it."""
    side = x.shape[1]
    qkv = x @ t[f"{at}qkv.weight"].T + t[f"{at}qkv.bias"]
    qkv = qkv.reshape(len(x), side**3, 3, HEADS, -1).permute(2, 0, 3, 1, 4).flatten(1, 2)
    q, k, v = qkv
    logits = (q * q.shape[-1] ** -0.5) @ k.transpose(1, 2)
    rows = torch.arange(side)
    rows = rows[:, None] - rows[None] + side - 1
    grid = q.reshape(len(q), side, side, side, -1)
    bd = torch.einsum("bdhwc,dkc->bdhwk", grid, t[f"{at}rel_pos_d"][rows])
    bh = torch.einsum("bdhwc,hkc->bdhwk", grid, t[f"{at}rel_pos_h"][rows])
    bw = torch.einsum("bdhwc,wkc->bdhwk", grid, t[f"{at}rel_pos_w"][rows])
    logits = logits.reshape(len(q), *(side,) * 6)
    if correct:
        logits = logits + bd[..., :, None, None] + bh[..., None, :, None] + bw[..., None, None, :]
    else:
        logits = logits + bd[:, :, :, :, None, None] + bh[:, :, :, None, :, None] + bw[:, :, :, None, None, :]
    attention = logits.reshape(len(q), side**3, side**3).softmax(-1)
    mixed = (attention @ v).reshape(len(x), HEADS, side, side, side, -1).permute(0, 2, 3, 4, 1, 5).flatten(4)
    return mixed @ t[f"{at}proj.weight"].T + t[f"{at}proj.bias"]


def literal(
    t: Tensors, x: torch.Tensor, depth: int, window: int, *, correct: bool = False, pads: bool = True
) -> torch.Tensor:
    """The published forward, slow: windows are padded after the norm, everything is computed, the pads are cut off."""

    def norm(y: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(y, y.shape[-1:], t[f"{name}.weight"], t[f"{name}.bias"], 1e-6)

    y = functional.conv3d(x, t["patch_embed.proj.weight"], t["patch_embed.proj.bias"], 2).permute(0, 2, 3, 4, 1)
    y = y + t["pos_embed"]
    grid = y.shape[1]
    for i in range(depth):
        at = f"blocks.{i}."
        z = norm(y, f"{at}norm1")
        tables = dict(t)
        if i < depth - 1 and pads:
            more = window - grid
            z = functional.pad(z, (0, 0, 0, more, 0, more, 0, more))
        elif i < depth - 1:  # what leaving the pads away would be: the same distances, fewer keys
            cut = slice(window - grid, window + grid - 1)
            tables |= {f"{at}attn.rel_pos_{axis}": t[f"{at}attn.rel_pos_{axis}"][cut] for axis in "dhw"}
        z = literal_attention(tables, f"{at}attn.", z, correct=correct)[:, :grid, :grid, :grid]
        y = y + z
        inner = norm(y, f"{at}norm2") @ t[f"{at}mlp.lin1.weight"].T + t[f"{at}mlp.lin1.bias"]
        y = y + functional.gelu(inner) @ t[f"{at}mlp.lin2.weight"].T + t[f"{at}mlp.lin2.bias"]

    def channels(z: torch.Tensor, name: str) -> torch.Tensor:
        centred = z - z.mean(1, keepdim=True)
        scaled = centred / torch.sqrt((centred**2).mean(1, keepdim=True) + 1e-6)
        return scaled * t[f"{name}.weight"].view(-1, 1, 1, 1) + t[f"{name}.bias"].view(-1, 1, 1, 1)

    z = channels(functional.conv3d(y.permute(0, 4, 1, 2, 3), t["neck.0.weight"]), "neck.1")
    return channels(functional.conv3d(z, t["neck.2.weight"], padding=1), "neck.3")


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(((a - b).abs().max() / b.abs().max()).detach())


def test_the_fast_form_is_the_published_one() -> None:
    made, state = small(grid=8, window=14, depth=2)
    x = torch.randn(1, 1, 16, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert difference(made(x), literal(state, x, 2, 14)) < 1e-12


@pytest.mark.parametrize(("grid", "window"), [(3, 5), (4, 4), (2, 7)])
def test_on_other_grids_and_for_a_batch(grid: int, window: int) -> None:
    made, state = small(grid, window)
    x = torch.randn(2, 1, *(2 * grid,) * 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert difference(made(x), literal(state, x, 3, window)) < 1e-12
    torch.testing.assert_close(made(x)[1:], made(x[1:]), rtol=0, atol=1e-12)


def test_the_quirks_matter() -> None:
    """A "correct" bias, or windows without their pads, is another network (facts.md 0.1, 0.2)."""
    made, state = small(3, 5)
    x = torch.randn(1, 1, 6, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    assert difference(made(x), literal(state, x, 3, 5, correct=True)) > 1e-3
    assert difference(made(x), literal(state, x, 3, 5, pads=False)) > 1e-3


def test_poolings(monkeypatch: pytest.MonkeyPatch) -> None:
    def network(_card: object) -> ImageEncoder3D:
        return ImageEncoder3D(WIDTH, 1, HEADS, patch=32, grid=4, window=5, whole_grid=(), outside=OUTSIDE)

    monkeypatch.setattr(sam_med3d, "network", network)
    state = seeded({name: tuple(one.shape) for name, one in network(None).state_dict().items()})
    volume = np.random.default_rng(0).random((40, 50, 60)).astype(np.float32)
    found = {}
    for name in ("sam-med3d", "sam-med3d-max", "sam-med3d-tokens"):
        encoder = sam_med3d.encoder(shipped(name), state)
        found[name] = encoder(volume, (3, 3, 3))
    with torch.inference_mode():
        x = encoder.prepare(volume, (3, 3, 3))  # type: ignore[attr-defined]
        neck = encoder.network(x)[0]  # type: ignore[attr-defined]
    assert x.shape == (1, 1, 128, 128, 128)
    np.testing.assert_allclose(found["sam-med3d"], neck.mean((1, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["sam-med3d-max"], neck.amax((1, 2, 3)), rtol=1e-4, atol=1e-6)
    assert found["sam-med3d-tokens"].shape == (WIDTH,)
    with pytest.raises(NotPrepared, match="distance of voxels"):
        encoder(volume, None)


def test_the_background_keeps_a_negative_value_and_deviation_is_unbiased() -> None:
    volume = np.zeros((4, 4, 4), np.float32)
    volume[0, 0] = [1, 2, 3, 6]
    found = sam_med3d.z_scored(volume)
    np.testing.assert_allclose(found[0, 0], (np.array([1, 2, 3, 6]) - 3) / np.sqrt(14 / 3), rtol=1e-6)
    np.testing.assert_allclose(found[1], -3 / np.sqrt(14 / 3), rtol=1e-6)
    with pytest.raises(NotPrepared, match="all one value"):
        sam_med3d.z_scored(np.ones((3, 3, 3), np.float32))


def test_the_cube_is_centred_on_the_head_or_the_image_and_filled_with_black() -> None:
    volume = np.zeros((100, 150, 130), np.float32)
    volume[40:60, 100:140, 20:40] = 1
    assert sam_med3d.middle_of(volume, "head") == (50, 120, 30)
    assert sam_med3d.middle_of(volume, "image") == (50, 75, 65)
    cube = sam_med3d.centred(volume, (50, 120, 30))
    assert cube.shape == (128, 128, 128)
    assert np.array_equal(np.argwhere(cube).min(0), [54, 44, 54])
    assert np.array_equal(np.argwhere(cube).max(0), [73, 83, 73])
    assert cube.sum() == volume.sum()
