"""Seeded tensors in a published network's shapes, and the files that its authors would put them in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from models.audit_encoders import network_shapes
from models.cards import SHIPPED, Card, read_card
from models.checkpoints.references import Storage, TensorReference

Shapes = Mapping[str, tuple[int, ...]]


def shipped(name: str) -> Card:
    return read_card(SHIPPED.cards / f"{name}.yaml")


def published() -> list[str]:
    return sorted(path.stem for path in SHIPPED.cards.glob("*.yaml") if read_card(path).published is not None)


def seeded(shapes: Shapes, seed: int = 0) -> dict[str, torch.Tensor]:
    """Numbers that keep a network's signals of the order of 1, statistics and norms that are not those of a new one."""
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for name, shape in shapes.items():
        if name.endswith("num_batches_tracked"):
            made[name] = torch.tensor(7)
        elif name.endswith("running_var") or (len(shape) == 1 and name.endswith("weight")):
            made[name] = torch.rand(shape, generator=generator) + 0.5
        else:
            scale = 1 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.1
            made[name] = torch.randn(shape, generator=generator) * scale
    return made


def tensors_of(card: Card, seed: int = 0) -> dict[str, torch.Tensor]:
    return seeded(network_shapes(card), seed)


def parameters(shapes: Shapes) -> int:
    """Of the network: BatchNorm's statistics are none."""
    buffers = ("running_mean", "running_var", "num_batches_tracked")
    return sum(math.prod(shape) for name, shape in shapes.items() if not name.endswith(buffers))


def reference(shape: tuple[int, ...]) -> TensorReference:
    """A leaf of a checkpoint without its numbers."""
    return TensorReference(Storage("0", "float32", math.prod(shape)), 0, shape, (1,) * len(shape))


# What the authors put around their network: their own tensors (t) by their own names, and what else their file holds.
Tree = Callable[[Mapping[str, Any], Any], Any]


def _prefixed(tensors: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {prefix + name: one for name, one in tensors.items()}


AUTHORS: dict[str, list[Tree]] = {
    "anatcl": [
        lambda t, x: {"model": {**_prefixed(t, "encoder."), "head.0.weight": x, "head.2.bias": x}, "opts": None},
        lambda t, x: {"model": {**_prefixed(t, "module.encoder."), "module.head.0.weight": x}, "epoch": 1},
    ],
    "neuro_simclr_3d": [
        lambda t, x: {
            "epoch": 9,
            "model_state_dict": {**_prefixed(t, "module.encoder."), "module.projector.0.weight": x},
            "optimizer_state_dict": {"state": {0: {"exp_avg": x}}},
        },
        lambda t, x: {"model_state_dict": {**_prefixed(t, "encoder."), "projector.2.weight": x}},
    ],
    "brain_mri_ssl": [
        lambda t, x: {"state_dict": {**_prefixed(t, "backbone."), "classifier.weight": x, "classifier.bias": x}},
        lambda t, x: {
            "state_dict": {
                **_prefixed(t, "momentum_backbone."),
                **_prefixed(t, "backbone."),
                "momentum_projector.0.weight": x,
                "projector.0.weight": x,
                "predictor.1.bias": x,
                "classifier.weight": x,
            }
        },
    ],
    "dino": [
        lambda t, _: dict(t),
        lambda t, x: {
            "student": {**_prefixed(t, "module.backbone."), "module.head.last_layer.weight_g": x},
            "teacher": {**_prefixed(t, "backbone."), "head.mlp.0.weight": x},
        },
        lambda t, x: {"teacher": {**_prefixed(t, "module.backbone."), "module.head.mlp.0.weight": x}, "epoch": 800},
    ],
    "sam_med3d": [
        lambda t, x: {
            "model_state_dict": {**_prefixed(t, "image_encoder."), "mask_decoder.a": x, "prompt_encoder.b": x},
            "epoch": 1,
        },
        lambda t, x: {**_prefixed(t, "image_encoder."), "mask_decoder.a": x, "prompt_encoder.b": x},
    ],
    "mami": [
        lambda t, x: {"model": {**_prefixed(t, "module."), "module.fc.weight": x, "module.ln_post.bias": x}, "epoch": 3}
    ],
    "mgca_resnet": [
        lambda t, x: {
            "state_dict": {
                **_prefixed(t, "img_encoder_q.model."),
                "img_encoder_q.global_embed.head.0.weight": x,
                "img_encoder_q.local_embed.head.0.weight": x,
                "text_encoder_q.model.embeddings.position_ids": x,
                "prototype_layer.weight": x,
            },
            "hyper_parameters": {"img_encoder": "resnet_50"},
        }
    ],
    "retfound": [
        lambda t, x: {
            "model": {**t, "mask_token": x, "decoder_pos_embed": x, "decoder_blocks.0.norm1.bias": x},
            "args": 1,
        }
    ],
}
AUTHORS["mgca_vit"] = AUTHORS["mgca_resnet"]
