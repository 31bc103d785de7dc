"""Noise by seed for training, benches and tests. A gateway draws its own from the key (never from a seed)."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from models.lesion_anonymiser.study import Noise


def seeded_noise(seed: int | str) -> Noise:
    """Standard normal numbers, independent for every purpose, the same whenever they are asked for again."""

    def drawn(shape: tuple[int, ...], purpose: str) -> Tensor:
        digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        return torch.randn(shape, generator=generator)

    return drawn
