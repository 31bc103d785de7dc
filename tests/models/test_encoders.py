"""Published encoders: tensors and parameters are those of their authors, and so is what files hold around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from encoder_tensors import AUTHORS, parameters, published, reference, seeded, shipped, tensors_of

from models.audit_encoders import ENCODERS, network_shapes
from models.audit_encoders.inputs import NotPrepared
from models.audit_encoders.networks import loaded
from models.audit_encoders.vit import VisionTransformer
from models.cards import CardError
from models.checkpoints import Checkpoint, CheckpointError, Layout, map_keys
from models.checkpoints.conversion import compare

# facts.md 1 (table), 1.4, 2.1: tensors in the state dictionary, parameters of the encoder, its embedding.
COUNTS = {
    "anatcl-global": (120, 33_160_000, 512),
    "neuro-simclr-3d": (123, 33_160_896, 512),
    "brain-mri-ssl-mocov3": (318, 23_508_032, 2048),
    "dino-vits16": (150, 21_665_664, 384),
    "dino-vits8": (150, 21_670_272, 384),
    "dino-vitb16": (150, 85_798_656, 768),
    "sam-med3d": (189, 92_924_928, 384),
    "mgca-resnet50": (318, 23_508_032, 2048),
    "retfound-cfp": (294, 303_301_632, 1024),
}


@pytest.mark.parametrize("name", COUNTS)
def test_tensors_and_parameters_are_counted_as_published(name: str) -> None:
    card = shipped(name)
    shapes = network_shapes(card)
    assert (len(shapes), parameters(shapes), card.dimensions) == COUNTS[name]


@pytest.mark.parametrize("name", published())
def test_every_card_expects_what_its_network_has(name: str) -> None:
    card = shipped(name)
    assert card.published is not None
    shapes = network_shapes(card)
    assert (card.published.tensors, card.published.parameters) == (len(shapes), parameters(shapes))
    assert card.weights is None
    assert card.algorithm in ENCODERS


def resnet_keys(blocks: tuple[int, ...], convolutions: int, *, first: bool, biased: bool) -> Iterator[str]:
    """torchvision's names; `first`: whether the first stage has a shortcut with a convolution."""
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    yield "conv1.weight"
    yield from (f"bn1.{one}" for one in norm)
    for stage, count in enumerate(blocks, 1):
        for block in range(count):
            for number in range(1, convolutions + 1):
                yield f"layer{stage}.{block}.conv{number}.weight"
                yield from (f"layer{stage}.{block}.bn{number}.{one}" for one in norm)
            if block == 0 and (stage > 1 or first):
                yield f"layer{stage}.0.downsample.0.weight"
                if biased:
                    yield f"layer{stage}.0.downsample.0.bias"
                yield from (f"layer{stage}.0.downsample.1.{one}" for one in norm)


def test_the_keys_of_the_residual_networks() -> None:
    eighteen = ((2, 2, 2, 2), 2)
    assert set(network_shapes(shipped("anatcl-global"))) == set(resnet_keys(*eighteen, first=False, biased=False))
    assert set(network_shapes(shipped("neuro-simclr-3d"))) == set(resnet_keys(*eighteen, first=False, biased=True))
    fifty = set(resnet_keys((3, 4, 6, 3), 3, first=True, biased=False))
    assert (
        set(network_shapes(shipped("brain-mri-ssl-mocov3"))) == fifty == set(network_shapes(shipped("mgca-resnet50")))
    )
    assert not any(name.startswith("fc") for name in fifty)


def test_the_two_residual_networks_of_brains_differ_in_stride_and_shortcuts() -> None:
    """facts.md 0.3: MONAI's resnet18 is not one network."""
    from models.audit_encoders import anatcl, neuro_simclr_3d

    card = shipped("anatcl-global")
    with torch.device("meta"):
        halved, whole = (one.network(card).conv1 for one in (anatcl, neuro_simclr_3d))
    assert halved.stride == (2, 2, 2)  # type: ignore[union-attr]
    assert whole.stride == (1, 1, 1)  # type: ignore[union-attr]


def test_the_keys_of_the_vision_transformers() -> None:
    inside = ("norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2")
    keys = {f"blocks.{i}.{part}.{end}" for i in range(12) for part in inside for end in ("weight", "bias")}
    keys |= {"cls_token", "pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias", "norm.weight", "norm.bias"}
    shapes = network_shapes(shipped("dino-vits16"))
    assert set(shapes) == keys == set(network_shapes(shipped("mgca-vit-b16")))
    assert shapes["pos_embed"] == (1, 197, 384)


def test_the_tables_of_sam_med3d() -> None:
    shapes = network_shapes(shipped("sam-med3d"))
    for block in range(12):
        rows = 15 if block in (2, 5, 8, 11) else 27
        assert {shapes[f"blocks.{block}.attn.rel_pos_{axis}"] for axis in "dhw"} == {(rows, 64)}
    assert shapes["pos_embed"] == (1, 8, 8, 8, 768)
    assert shapes["neck.0.weight"] == (384, 768, 1, 1, 1)
    assert shapes["neck.2.weight"] == (384, 384, 3, 3, 3)
    assert not any(name.startswith("neck") and name.endswith("bias") and name[5] in "02" for name in shapes)


@pytest.mark.parametrize(
    ("name", "number"), [(n, i) for n in published() for i in range(len(AUTHORS[shipped(n).algorithm]))]
)
def test_authors_files_map_to_the_network(name: str, number: int) -> None:
    card = shipped(name)
    assert card.published is not None
    shapes = network_shapes(card)
    tree = AUTHORS[card.algorithm][number]({key: reference(shape) for key, shape in shapes.items()}, reference((3, 2)))
    layout = Layout(card.published.paths, card.published.prefixes, card.published.heads)
    mapped = map_keys(Checkpoint("file", "torch zip", tree, (), {}), layout)
    compare({key: leaf.shape for key, leaf in mapped.leaves.items()}, shapes, "file")
    heads = sum(mapped.dropped.values())
    assert heads > 0 or (card.algorithm, number) == ("dino", 0)


@pytest.mark.parametrize("other", ["dino-vits16", "retfound-cfp", "sam-med3d"])
def test_another_networks_file_is_told_apart(other: str) -> None:
    card, shapes = shipped("brain-mri-ssl-mocov3"), network_shapes(shipped(other))
    assert card.published is not None
    tree = {"state_dict": {f"backbone.{name}": reference(shape) for name, shape in shapes.items()}}
    layout = Layout(card.published.paths, card.published.prefixes, card.published.heads)
    mapped = map_keys(Checkpoint("file", "torch zip", tree, (), {}), layout)
    with pytest.raises(CheckpointError, match=r"missing: conv1\.weight, .*unexpected: "):
        compare({key: leaf.shape for key, leaf in mapped.leaves.items()}, network_shapes(card), "file")


def test_weights_with_a_tensor_too_few_or_too_many_do_not_load() -> None:
    def network(_card: Any) -> VisionTransformer:
        return VisionTransformer(4, 8, 1, 2, side=8)

    card = shipped("dino-vits16")
    with torch.device("meta"):
        shapes = {name: tuple(one.shape) for name, one in network(card).state_dict().items()}
    whole = seeded(shapes)
    made = loaded(network, card, whole)
    assert not made.training
    assert not any(one.requires_grad for one in made.parameters())
    for wrong in (
        {name: one for name, one in whole.items() if name != "norm.bias"},
        {**whole, "head.weight": torch.ones(1)},
        {**whole, "norm.bias": torch.ones(9)},
    ):
        with pytest.raises(CardError, match="not those of its network"):
            loaded(network, card, wrong)


def test_raw_scans_are_refused_where_a_tool_is_missing() -> None:
    volume = np.random.default_rng(0).random((121, 145, 121)).astype(np.float32)
    card = shipped("anatcl-global")
    state = tensors_of(card)
    with pytest.raises(NotPrepared, match=r"CAT12.*--set prepared=cat12-mwp1"):
        ENCODERS["anatcl"](card, state)(volume, (1.5, 1.5, 1.5))
    ready = card.model_copy(update={"parameters": {**card.parameters, "prepared": "cat12-mwp1"}})
    encoder = ENCODERS["anatcl"](ready, state)
    for wrong, mm in ((volume[:-1], 1.5), (volume, 1.0)):
        with pytest.raises(NotPrepared, match="121 x 145 x 121"):
            encoder(wrong, (mm, mm, mm))
    with pytest.raises(NotPrepared, match="not an image"):
        encoder(volume[0], None)
    simclr = shipped("neuro-simclr-3d")
    with pytest.raises(NotPrepared, match=r"TurboPrep.*--set prepared=turboprep"):
        ENCODERS["neuro_simclr_3d"](simclr, tensors_of(simclr))(volume, (1, 1, 1))


def test_an_image_is_no_volume() -> None:
    from models.audit_encoders import mgca_resnet

    with pytest.raises(NotPrepared, match="not a volume"):
        mgca_resnet.prepare(np.zeros((3, 4, 5), np.float32))
