"""Frames by number, and what was found on one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_judge import Hit

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FrameHit:
    """A hit on one frame of a stack."""

    frame: int
    hit: Hit


class Stack:
    """Frames by number, (rows, columns) or (rows, columns, 3), all of one shape. Subclassed by where they come from."""

    def __len__(self) -> int:
        raise NotImplementedError

    def shown(self, frame: int) -> Bytes:
        raise NotImplementedError

    def deep(self, frame: int) -> NDArray[np.float32] | None:
        """(rows, columns) in about 0..1 where a frame has more than 8 bits of grey."""
        raise NotImplementedError


def away_from(one: Bytes, other: Bytes) -> Bytes:
    """Distance of two pictures of one shape (rows, columns), the largest of the channels."""
    away = np.maximum(one, other) - np.minimum(one, other)
    return away if away.ndim == 2 else np.asarray(away.max(2))
