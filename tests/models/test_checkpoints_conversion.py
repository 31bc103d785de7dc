"""Checkpoints: the right tensors under the right names, or the reason why not; converted once and strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_files import saved
from safetensors.torch import load_file, save_file

from models.audit_encoders.vit import VisionTransformer
from models.checkpoints import CheckpointError, Layout, convert, map_keys, open_checkpoint, write_safetensors


def mapped(tmp_path: Path, tree: Any, layout: Layout) -> Any:
    with open_checkpoint(saved(tree, tmp_path / "m.pth")) as checkpoint:
        return map_keys(checkpoint, layout)


W = torch.ones(1)


def test_a_prefix_is_taken_off_the_start_only_and_once(tmp_path: Path) -> None:
    tree = {"module.encoder.encoder.a": W, "module.encoder.module.b": W, "module.encoder.c.encoder.d": W}
    found = mapped(tmp_path, tree, Layout(prefixes=("encoder.",)))
    assert set(found.leaves) == {"encoder.a", "module.b", "c.encoder.d"}
    assert found.stripped == ("module.", "encoder.")


def test_a_momentum_backbone_is_not_the_backbone(tmp_path: Path) -> None:
    tree = {"state_dict": {"backbone.a": W, "momentum_backbone.a": 2 * W, "classifier.weight": W}}
    found = mapped(tmp_path, tree, Layout(("state_dict",), ("backbone.",), ("momentum_", "classifier.")))
    assert list(found.leaves) == ["a"]
    assert found.dropped == {"momentum_": 1, "classifier.": 1}


def test_the_first_path_with_tensors_is_taken(tmp_path: Path) -> None:
    layout = Layout(("teacher", "a/b", ""), ("backbone.",), ("head.",))
    tree = {"teacher": {"module.backbone.x": W, "module.head.y": W}, "student": {"module.backbone.x": W}}
    found = mapped(tmp_path, tree, layout)
    assert (found.path, list(found.leaves), found.dropped) == ("teacher", ["x"], {"head.": 1})
    assert mapped(tmp_path, {"a": {"b": {"x": W}}}, layout).path == "a/b"
    assert mapped(tmp_path, {"x": W}, layout).path == ""


def test_names_that_would_meet_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="twice"):
        mapped(tmp_path, {"module.a": W, "a": W}, Layout())


def test_a_file_without_tensors_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model.*it holds epoch, notes"):
        mapped(tmp_path, {"epoch": 1, "notes": "x"}, Layout(("model",)))


def test_every_name_of_a_transformers_vit_is_known(tmp_path: Path) -> None:
    """The names of `ViTModel` in transformers, for two layers; loads into the authors' network."""
    made = VisionTransformer(16, 8, 2, 2)
    linear = {
        "attention.attention.query": (8, 8),
        "attention.attention.key": (8, 8),
        "attention.attention.value": (8, 8),
        "attention.output.dense": (8, 8),
        "intermediate.dense": (32, 8),
        "output.dense": (8, 32),
    }
    tree: dict[str, torch.Tensor] = {
        "embeddings.cls_token": torch.randn(1, 1, 8),
        "embeddings.position_embeddings": torch.randn(1, 197, 8),
        "embeddings.patch_embeddings.projection.weight": torch.randn(8, 3, 16, 16),
        "embeddings.patch_embeddings.projection.bias": torch.randn(8),
        "pooler.dense.weight": torch.randn(8, 8),
        "pooler.dense.bias": torch.randn(8),
    }
    for place in ("layernorm", *(f"encoder.layer.{i}.layernorm_{n}" for i in range(2) for n in ("before", "after"))):
        tree |= {f"{place}.weight": torch.randn(8), f"{place}.bias": torch.randn(8)}
    for i in range(2):
        for name, (out, inside) in linear.items():
            tree |= {
                f"encoder.layer.{i}.{name}.weight": torch.randn(out, inside),
                f"encoder.layer.{i}.{name}.bias": torch.randn(out),
            }
    save_file(tree, tmp_path / "model.safetensors")
    expected = {name: tuple(one.shape) for name, one in made.state_dict().items()}
    made.load_state_dict(convert(tmp_path / "model.safetensors", Layout(("teacher", "")), expected).tensors)
    query = tree["encoder.layer.1.attention.attention.query.weight"]
    assert torch.equal(made.blocks[1].attn.qkv.weight[:8], query)  # type: ignore[union-attr, index]
    assert torch.equal(made.norm.bias, tree["layernorm.bias"])


def test_transformers_names_become_the_authors(tmp_path: Path) -> None:
    q, k, v = (torch.full((2, 2), float(i)) for i in range(3))
    layer = "vit.encoder.layer.3."
    tree = {
        "vit.embeddings.cls_token": W,
        f"{layer}attention.attention.key.weight": k,
        f"{layer}attention.attention.query.weight": q,
        f"{layer}attention.attention.value.weight": v,
        f"{layer}attention.output.dense.bias": W,
        f"{layer}output.dense.bias": W,
        "vit.pooler.dense.bias": W,
    }
    found = mapped(tmp_path, tree, Layout())
    assert set(found.leaves) == {
        "cls_token",
        "blocks.3.attn.qkv.weight",
        "blocks.3.attn.proj.bias",
        "blocks.3.mlp.fc2.bias",
    }
    assert torch.equal(found.leaves["blocks.3.attn.qkv.weight"], torch.cat([q, k, v]))


def normed() -> dict[str, torch.Tensor]:
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 1), torch.nn.BatchNorm2d(3))
    net(torch.randn(4, 1, 5, 5))
    return dict(net.state_dict())


EXPECTED = {name: tuple(one.shape) for name, one in normed().items()}


def test_conversion_counts_and_makes_float32(tmp_path: Path) -> None:
    state = {name: one.half() if one.is_floating_point() else one for name, one in normed().items()}
    made = convert(saved({"model": state}, tmp_path / "a"), Layout(("model",)), EXPECTED)
    assert made.parameters == 3 + 3 + 3 + 3
    assert {one.dtype for one in made.tensors.values()} == {torch.float32, torch.int64}
    digest = write_safetensors(made.tensors, tmp_path / "w.safetensors")
    assert len(digest) == 64
    assert (tmp_path / "w.safetensors").stat().st_mode & 0o777 == 0o600
    for name, one in load_file(tmp_path / "w.safetensors").items():
        assert torch.equal(one, made.tensors[name])


def test_a_wrong_file_names_the_first_five_keys(tmp_path: Path) -> None:
    state = {f"layer{i}.weight": W for i in range(8)}
    with pytest.raises(CheckpointError) as caught:
        convert(saved(state, tmp_path / "a"), Layout(), {f"layer{i}.bias": (1,) for i in range(7)})
    listed = ", ".join(f"layer{i}.bias" for i in range(5))
    assert f"missing: {listed} and 2 more; unexpected: layer0.weight" in str(caught.value)


def test_another_shape_is_refused(tmp_path: Path) -> None:
    state = normed() | {"0.bias": torch.zeros(4)}
    with pytest.raises(CheckpointError, match=r"0\.bias \(4,\) instead of \(3,\)"):
        convert(saved(state, tmp_path / "a"), Layout(), EXPECTED)


def test_statistics_as_before_training_and_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    fresh = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 1), torch.nn.BatchNorm2d(3)).state_dict()
    with pytest.raises(CheckpointError, match=r"1\.running_mean is as it was before training"):
        convert(saved(fresh, tmp_path / "a"), Layout(), EXPECTED)
    broken = normed()
    broken["0.bias"][1] = float("nan")
    with pytest.raises(CheckpointError, match=r"0\.bias holds numbers that are none"):
        convert(saved(broken, tmp_path / "b"), Layout(), EXPECTED)
