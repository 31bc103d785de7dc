"""Weights that somebody else published, made into safetensors that may be loaded without trust.

A checkpoint is a pickle, and a pickle is a program (papers/facts.md 1.7): it is read here, once and offline, by an
unpickler that runs nothing, its tensors are found, renamed and checked against the network that they are for
(facts.md 1.6), and what the gateway loads afterwards is a table of numbers.
"""

from models.checkpoints.conversion import Converted, convert, write_safetensors
from models.checkpoints.errors import CheckpointError
from models.checkpoints.layout import Layout, Mapped, map_keys
from models.checkpoints.reading import Checkpoint, open_checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Converted",
    "Layout",
    "Mapped",
    "convert",
    "map_keys",
    "open_checkpoint",
    "write_safetensors",
]
