"""From a checkpoint to safetensors, once and strictly (papers/facts.md 1.6, steps 6, 7 and 10).

`strict=False` hides total failure, and every author uses it somewhere: here each name and shape of the network must be
in the file, and the file must hold nothing else but the heads that its card lists.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from models.checkpoints.errors import CheckpointError
from models.checkpoints.layout import SHOWN, Layout, map_keys
from models.checkpoints.reading import open_checkpoint

if TYPE_CHECKING:
    import torch

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")  # of BatchNorm: tensors, but no parameters


@dataclass(frozen=True, slots=True)
class Converted:
    """What a file held: `tensors` by the network's names, `parameters` without BatchNorm's statistics."""

    container: str
    path: str
    stripped: tuple[str, ...]
    dropped: Mapping[str, int]
    inert: tuple[str, ...]
    tensors: Mapping[str, torch.Tensor]
    parameters: int


def convert(path: Path, layout: Layout, expected: Mapping[str, tuple[int, ...]]) -> Converted:
    """The network's tensors out of the owner's file, as float32 (counters stay integers).

    `expected`: name -> shape of every tensor of the network. Raises CheckpointError with the first missing and
    unexpected keys, or the shapes that differ, or when statistics or numbers show that nothing was trained.
    """
    with open_checkpoint(path) as checkpoint:
        mapped = map_keys(checkpoint, layout)
        compare({name: tuple(leaf.shape) for name, leaf in mapped.leaves.items()}, expected, str(path))
        tensors = {name: _numbers(checkpoint.tensor(mapped.leaves[name])) for name in expected}
    _must_be_trained(tensors, str(path))
    parameters = sum(one.numel() for name, one in tensors.items() if not name.endswith(BUFFERS))
    return Converted(
        checkpoint.container, mapped.path, mapped.stripped, mapped.dropped, checkpoint.inert, tensors, parameters
    )


def compare(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], file: str) -> None:
    """Raises CheckpointError unless both name the same tensors in the same shapes."""
    faults = []
    for word, names in (("missing", expected.keys() - found.keys()), ("unexpected", found.keys() - expected.keys())):
        if names:
            order = expected if word == "missing" else found
            listed = [name for name in order if name in names]
            more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
            faults.append(f"{word}: {', '.join(listed[:SHOWN])}{more}")
    others = [name for name, shape in expected.items() if name in found and found[name] != shape]
    if others:
        shown = ", ".join(f"{name} {found[name]} instead of {expected[name]}" for name in others[:SHOWN])
        faults.append(
            f"of another shape: {shown}" + (f" and {len(others) - SHOWN} more" if len(others) > SHOWN else "")
        )
    if faults:
        raise CheckpointError(f"{file} is not the file for this card; {'; '.join(faults)}")


def _numbers(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float().contiguous() if tensor.is_floating_point() else tensor.contiguous()


def _must_be_trained(tensors: Mapping[str, torch.Tensor], file: str) -> None:
    """BatchNorm's statistics are there and were moved; every number is finite."""
    import torch

    for name, one in tensors.items():
        if one.is_floating_point() and not bool(torch.isfinite(one).all()):
            raise CheckpointError(f"{file}: {name} holds numbers that are none; take the file from its owner again")
        if name.endswith("running_mean"):
            spread = tensors[name.removesuffix("mean") + "var"]
            if not bool(one.any()) and bool((spread == 1).all()):
                raise CheckpointError(f"{file}: {name} is as it was before training; this is no trained network")


def write_safetensors(tensors: Mapping[str, torch.Tensor], target: Path) -> str:
    """Write the file, 0600, whole and on disk or not at all; its sha256. The folder is there."""
    from safetensors.torch import save_file

    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        save_file(dict(tensors), part)
        part.chmod(0o600)
        digest = hashlib.sha256()
        with open(part, "rb+") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return digest.hexdigest()
