"""The 2-D networks: each is the one written out, in the order of its authors' code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from encoder_tensors import seeded, shipped, tensors_of
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from models.audit_encoders import mami_network
from models.audit_encoders.networks import loaded
from models.audit_encoders.vit import VisionTransformer
from models.cards import CardError


def literal_vit(t: dict[str, torch.Tensor], x: torch.Tensor, heads: int, patch: int, depth: int) -> torch.Tensor:
    """The vision transformer written out: explicit softmax, explicit norms. -> (B, tokens, width) before `norm`."""

    def norm(y: torch.Tensor, name: str) -> torch.Tensor:
        centred = y - y.mean(-1, keepdim=True)
        scaled = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-6)
        return scaled * t[f"{name}.weight"] + t[f"{name}.bias"]

    def linear(y: torch.Tensor, name: str) -> torch.Tensor:
        return y @ t[f"{name}.weight"].T + t[f"{name}.bias"]

    y = functional.conv2d(x, t["patch_embed.proj.weight"], t["patch_embed.proj.bias"], patch).flatten(2).transpose(1, 2)
    y = torch.cat([t["cls_token"].expand(len(y), -1, -1), y], 1) + t["pos_embed"]
    for i in range(depth):
        q, k, v = linear(norm(y, f"blocks.{i}.norm1"), f"blocks.{i}.attn.qkv").chunk(3, -1)
        size = q.shape[-1] // heads
        mixed = []
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            attention = torch.softmax(q[..., part] @ k[..., part].transpose(1, 2) / size**0.5, -1)
            mixed.append(attention @ v[..., part])
        y = y + linear(torch.cat(mixed, -1), f"blocks.{i}.attn.proj")
        inner = linear(norm(y, f"blocks.{i}.norm2"), f"blocks.{i}.mlp.fc1")
        y = y + linear(inner * (1 + torch.erf(inner / 2**0.5)) / 2, f"blocks.{i}.mlp.fc2")
    return y


def small_vit() -> tuple[VisionTransformer, dict[str, torch.Tensor]]:
    made = VisionTransformer(4, 12, 2, 3, side=16).double()
    state = {k: v.double() for k, v in seeded({k: tuple(v.shape) for k, v in made.state_dict().items()}).items()}
    made.load_state_dict(state)
    return made, state


def test_the_vision_transformer_is_the_one_written_out() -> None:
    made, state = small_vit()
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(made.tokens(x), literal_vit(state, x, 3, 4, 2), rtol=0, atol=1e-12)


@given(rows=st.integers(2, 9), columns=st.integers(2, 9))
def test_positions_of_another_size_are_dinos(rows: int, columns: int) -> None:
    """The lines of `interpolate_pos_encoding`, for an image of rows x columns patches."""
    made, state = small_vit()
    positions = state["pos_embed"]
    if rows == columns == 4:
        assert torch.equal(made.positions(rows, columns), positions)
        return
    w0, h0 = rows + 0.1, columns + 0.1
    patches = functional.interpolate(
        positions[:, 1:].reshape(1, 4, 4, 12).permute(0, 3, 1, 2), scale_factor=(w0 / 4, h0 / 4), mode="bicubic"
    )
    assert patches.shape[-2:] == (rows, columns)
    expected = torch.cat([positions[:, :1], patches.permute(0, 2, 3, 1).reshape(1, -1, 12)], 1)
    assert torch.equal(made.positions(rows, columns), expected)
    made(torch.zeros(1, 3, 4 * rows, 4 * columns, dtype=torch.float64))


def test_retfound_pools_mean_patches_through_an_untrained_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    from models.audit_encoders import retfound

    def network(_card: Any) -> VisionTransformer:
        return VisionTransformer(16, 8, 1, 2)

    monkeypatch.setattr(retfound, "network", network)
    card = shipped("retfound-cfp")
    state = seeded({name: tuple(one.shape) for name, one in network(card).state_dict().items()})
    image = np.random.default_rng(0).random((256, 256)).astype(np.float32)
    found = retfound.encoder(card, state)(image)
    assert abs(found.mean()) < 1e-6
    assert abs((found**2).mean() - 1) < 1e-3
    other = {**state, "norm.weight": state["norm.weight"] * 3, "norm.bias": state["norm.bias"] + 5}
    np.testing.assert_array_equal(retfound.encoder(card, other)(image), found)
    by_class = card.model_copy(update={"parameters": {"pooling": "class"}})
    assert not np.allclose(retfound.encoder(by_class, other)(image), retfound.encoder(by_class, state)(image))


def test_a_parameter_that_no_encoder_knows_is_refused() -> None:
    from models.audit_encoders import dino

    with pytest.raises(CardError, match="vits16, vits8"):
        dino.network(shipped("dino-vits16").model_copy(update={"parameters": {"variant": "vitx"}}))


def literal_mami(t: dict[str, torch.Tensor], x: torch.Tensor, *, heads: int, patch: int, rank: int) -> torch.Tensor:
    """The patch features of one image, in the order of its authors' code, with loops where that has einsum."""
    leaky = functional.leaky_relu
    maps = functional.conv2d(x, t["conv1.weight"], None, patch)[0]  # width, grid, grid
    width, grid = maps.shape[:2]

    def conv1x1(y: torch.Tensor, name: str) -> torch.Tensor:
        return functional.conv2d(y[None], t[f"{name}.weight"], t[f"{name}.bias"])[0]

    def linear(y: torch.Tensor, name: str) -> torch.Tensor:
        return y @ t[f"{name}.weight"].T + t[f"{name}.bias"]

    root = conv1x1(leaky(conv1x1(maps, "router_spatial_transform.0"), 0.1), "router_spatial_transform.2").mean((1, 2))
    codes = torch.softmax(linear(leaky(linear(root, "router_MLP.0"), 0.1), "router_MLP.2"), -1)
    context = torch.cat([codes[i] * t["knowledge_pool"][0, i] for i in range(len(codes))])
    add = linear(leaky(linear(leaky(root, 0.1), "ft_comp_MLP.1"), 0.1), "ft_comp_MLP.3")
    y = maps.reshape(width, -1).T + add
    y = torch.cat([t["class_embedding"][None], y]) + t["positional_embedding"]

    def norm(y: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(y, (width,), t[f"{name}.weight"], t[f"{name}.bias"])

    y = norm(y, "ln_pre")
    layers = 1 + max(int(name.split(".")[2]) for name in t if name.startswith("transformer."))
    for layer in range(layers):
        block = f"transformer.resblocks.{layer}."

        def grouped(z: torch.Tensor, name: str) -> torch.Tensor:
            weight, bias = t[f"{name}.weight"], t[f"{name}.bias"]
            parts = z.reshape(len(weight), -1)
            return torch.cat([parts[g] @ weight[g] + bias[g] for g in range(len(weight))])

        def matrix(name: str, static: str) -> torch.Tensor:
            base = f"{block}lora_mlp_{name}."  # noqa: B023
            z = leaky(grouped(leaky(grouped(context, f"{base}l11"), 0.1), f"{base}l21"), 0.1)
            return grouped(z, f"{base}l31").reshape(rank, -1) + t[f"{block}linear_{static}_static"][0]  # noqa: B023

        down = linear(y[1:], f"{block}adapter_pre_attn.fc1")
        taps = t[f"{block}adapter_pre_attn.conv.weight"][:, 0, 1, 0, 0]  # one frame: the middle tap
        up = linear(down * taps + t[f"{block}adapter_pre_attn.conv.bias"], f"{block}adapter_pre_attn.fc2")
        y = torch.cat([y[:1], y[1:] + up])
        z = norm(y, f"{block}ln_1")
        qkv = list((z @ t[f"{block}attn.in_proj_weight"].T + t[f"{block}attn.in_proj_bias"]).chunk(3, -1))
        for i, name in enumerate("qkv"):
            inner = z @ matrix(f"{name}_a", f"a_{name}").T
            qkv[i] = qkv[i] + inner @ matrix(f"{name}_b", f"b_{name}")
        size = width // heads
        mixed = torch.cat(
            [
                torch.softmax(qkv[0][:, p] @ qkv[1][:, p].T / size**0.5, -1) @ qkv[2][:, p]
                for p in (slice(h * size, (h + 1) * size) for h in range(heads))
            ],
            -1,
        )
        y = y + linear(mixed, f"{block}attn.out_proj")
        z = norm(y, f"{block}ln_2")
        inner = linear(z, f"{block}mlp.c_fc") + (z @ matrix("c_fc_b", "b_c_fc").T) @ matrix("c_fc_a", "a_c_fc")
        y = y + linear(inner * torch.sigmoid(1.702 * inner), f"{block}mlp.c_proj")
    return y[1:].T.reshape(width, grid, grid)


def test_mami_is_the_one_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"WIDTH": 128, "HEADS": 4, "LAYERS": 2, "PATCH": 4, "GRID": 3, "ADAPTER": 24}
    for name, value in small.items():
        monkeypatch.setattr(mami_network, name, value)
    made = mami_network.MaMI(lora_rank=2).double()
    state = {k: v.double() for k, v in seeded({k: tuple(v.shape) for k, v in made.state_dict().items()}).items()}
    made.load_state_dict(state)
    x = torch.randn(1, 3, 12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    whole, local = made(x)
    expected = literal_mami(state, x, heads=4, patch=4, rank=2)
    torch.testing.assert_close(local[0], expected, rtol=0, atol=1e-11)
    last = functional.leaky_relu(expected.mean((1, 2)) @ state["last_mlp.0.weight"].T + state["last_mlp.0.bias"], 0.1)
    torch.testing.assert_close(
        whole[0], last @ state["last_mlp.2.weight"].T + state["last_mlp.2.bias"], rtol=0, atol=1e-11
    )


def test_mgca_upsamples_to_299(monkeypatch: pytest.MonkeyPatch) -> None:
    from models.audit_encoders import mgca_resnet

    card = shipped("mgca-resnet50")
    state = tensors_of(card)
    network = loaded(mgca_resnet.network, card, state)
    image = np.random.default_rng(0).random((300, 200)).astype(np.float32)
    with torch.inference_mode():
        x = mgca_resnet.prepare(image)
        expected = network(torch.nn.Upsample(size=(299, 299), mode="bilinear", align_corners=True)(x))[0]
    found = mgca_resnet.encoder(card, state)(image)
    assert found.shape == (2048,)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
