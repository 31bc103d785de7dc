"""A plain loop for the small networks of bench.adjustable, kept on disk when it has ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from models.train.trained import Tick

Network = TypeVar("Network", bound=nn.Module)


def fitted_or_kept(
    network: Network, loss: Callable[[torch.Generator], Tensor], steps: int, rate: float, path: Path, tick: Tick
) -> Network:
    """`network` after `steps` of Adam, or as `path` keeps it; in evaluation mode, without gradients."""
    if path.is_file():
        network.load_state_dict(torch.load(path, weights_only=True))
    else:
        draw = torch.Generator().manual_seed(60)
        adam = torch.optim.Adam(network.parameters(), rate)
        for step in range(steps):
            found = loss(draw)
            adam.zero_grad()
            found.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            adam.step()
            tick(path.stem, step + 1, steps)
        fresh = path.with_suffix(".part")
        torch.save(network.state_dict(), fresh)
        os.replace(fresh, path)
    return network.eval().requires_grad_(requires_grad=False)
