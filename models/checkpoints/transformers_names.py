"""The names that the `transformers` library gives a vision transformer, as those of its authors.

`facebook/dino-vits16` on Hugging Face is the same network as `dino_deitsmall16_pretrain.pth` under these other names,
with query, key and value apart (papers/facts.md 1.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from models.checkpoints.errors import CheckpointError

if TYPE_CHECKING:
    from models.checkpoints.reading import Checkpoint

FIRST_KEY = "embeddings.cls_token"
_TOP = {
    "embeddings.cls_token": "cls_token",
    "embeddings.position_embeddings": "pos_embed",
    "embeddings.patch_embeddings.projection.weight": "patch_embed.proj.weight",
    "embeddings.patch_embeddings.projection.bias": "patch_embed.proj.bias",
    "layernorm.weight": "norm.weight",
    "layernorm.bias": "norm.bias",
}
_IN_LAYER = {
    "layernorm_before": "norm1",
    "attention.output.dense": "attn.proj",
    "layernorm_after": "norm2",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
}
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)")
_QKV = ("query", "key", "value")  # in this order in `attn.qkv`
_ATTENTION = "attention.attention."


def from_transformers(found: Mapping[str, Any], checkpoint: Checkpoint) -> dict[str, Any]:
    """The same tensors under the authors' names; `pooler.*`, which is not the authors', is left out.

    Names that it does not know stay, so that the strict comparison shows them. Raises CheckpointError when a query, key
    or value is missing.
    """
    import torch

    names = {name.removeprefix("vit."): leaf for name, leaf in found.items()}
    made: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, leaf in names.items():
        layer = _LAYER.fullmatch(name)
        if name in _TOP:
            made[_TOP[name]] = leaf
        elif layer and layer[2].startswith(_ATTENTION):
            parts.setdefault(f"blocks.{layer[1]}.attn.qkv.{layer[3]}", {})[layer[2].removeprefix(_ATTENTION)] = leaf
        elif layer and layer[2] in _IN_LAYER:
            made[f"blocks.{layer[1]}.{_IN_LAYER[layer[2]]}.{layer[3]}"] = leaf
        elif not name.startswith("pooler."):
            made[name] = leaf
    for name, three in parts.items():
        if set(three) != set(_QKV):
            raise CheckpointError(f"{checkpoint.file}: {name} is not whole (query, key and value); another file?")
        made[name] = torch.cat([checkpoint.tensor(three[part]) for part in _QKV])
    return made
