"""A fixed input, and the digest of an encoder's output for it: weights and code that drifted apart are noticed.

The same network gives slightly other numbers on another CPU: its BLAS sums in another order, which moved the encoders
here by at most 1e-6 of an embedding's length (oneDNN on and off, one thread and two). So the digest is not of the
numbers. The embedding, scaled to length 1, is projected on 16 fixed directions, each with variance 1 over embeddings,
and its length is taken on a log scale; these 17 numbers fall into bins of width 0.005 whose borders a nonce from 0 to
255 shifts. Whoever pins takes the nonce whose borders lie farthest from all 17 numbers; whoever checks accepts any of
the 256. So a change of less than 0.0002 in every number does not matter, one of more than 0.005 in any number always
does (weights rounded to bfloat16 are seen), and another network does not match by chance: each of 17 numbers would have
to fall into the same bin of about 800.

Everything before the encoder is whole numbers, so that no machine draws another picture.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from models.cards import Card

Pixels = NDArray[np.float32]
Kind = Literal["image", "volume", "measures"]

DIRECTIONS, NONCES = 16, 256
BIN = 0.005
_LABEL = b"deid-gateway fixed input 1"
_VOLUMES = frozenset({"MR", "CT", "PT"})
_SIDE = 16  # cells of the coarse pattern along each axis


def kind_of(card: Card) -> Kind:
    """What its encoder takes: as the card says, else by modality."""
    return card.takes or ("volume" if _VOLUMES & set(card.modalities) else "image")


def fixed_input(kind: Kind, shape: tuple[int, ...]) -> Pixels:
    """A bright ellipsoid with a smooth pattern inside, black outside, 0 to 1. For `measures` (n,): 1 to 256."""
    if kind == "measures":
        return 1 + _bytes("measures", shape[0]).astype(np.float32)
    pattern = _bytes(kind, _SIDE ** len(shape)).astype(np.int64).reshape((_SIDE,) * len(shape))
    inside = np.zeros(shape, np.int64)
    for axis, size in enumerate(shape):
        pattern = _stretched(pattern, axis, size)
        place = 2 * np.arange(size, dtype=np.int64) - (size - 1)
        line = (place * place * 1_000_000) // (size * size)  # 0 in the middle, about 1e6 at the border
        inside += line.reshape([-1 if one == axis else 1 for one in range(len(shape))])
    grey = np.where(inside < 800_000, 64 + pattern * 3 // 4, 0)
    return (grey.astype(np.float32) / np.float32(255)).astype(np.float32)


def _stretched(pattern: NDArray[np.int64], axis: int, size: int) -> NDArray[np.int64]:
    """Along one axis to `size`, linear between cells, in whole numbers (rounded down)."""
    at = np.arange(size, dtype=np.int64) * (pattern.shape[axis] - 1) * 256 // max(size - 1, 1)
    low, part = at // 256, at % 256
    part = part.reshape([-1 if one == axis else 1 for one in range(pattern.ndim)])
    first = np.take(pattern, low, axis)
    second = np.take(pattern, np.minimum(low + 1, pattern.shape[axis] - 1), axis)
    return np.asarray((first * (256 - part) + second * part) // 256, np.int64)


def digest(embedding: Pixels) -> str:
    """The digest to pin: that of the nonce whose borders lie farthest from what was measured."""
    numbers = _numbers(embedding)
    margins = [_margin(numbers, nonce) for nonce in range(NONCES)]
    return _digest(numbers, int(np.argmax(margins)))


def matches(embedding: Pixels, pinned: str) -> bool:
    """Whether this output is the pinned one, give or take what another CPU makes of it."""
    numbers = _numbers(embedding)
    return any(_digest(numbers, nonce) == pinned for nonce in range(NONCES))


def _bytes(label: str, count: int) -> NDArray[np.uint8]:
    return np.frombuffer(hashlib.shake_256(_LABEL + label.encode()).digest(count), np.uint8)


def _numbers(embedding: Pixels) -> NDArray[np.float64]:
    """16 projections with variance 1 over directions, and the length on a log scale. Raises ValueError for zeros."""
    values = np.asarray(embedding, np.float64).ravel()
    length = float(np.sqrt((values * values).sum()))
    if not np.isfinite(length) or length <= 0:
        raise ValueError("an embedding without a length")
    signs = np.unpackbits(_bytes("directions", (DIRECTIONS * values.size + 7) // 8), count=DIRECTIONS * values.size)
    directions = 1.0 - 2.0 * signs.reshape(DIRECTIONS, values.size).astype(np.float64)
    return np.append(directions @ (values / length), np.log(length))


def _borders(nonce: int) -> NDArray[np.float64]:
    return _bytes(f"borders {nonce}", 2 * (DIRECTIONS + 1)).view("<u2").astype(np.float64) / 65536


def _margin(numbers: NDArray[np.float64], nonce: int) -> float:
    part = (numbers / BIN + _borders(nonce)) % 1
    return float(np.minimum(part, 1 - part).min())


def _digest(numbers: NDArray[np.float64], nonce: int) -> str:
    bins = np.floor(numbers / BIN + _borders(nonce)).astype("<i8")
    return hashlib.sha256(_LABEL + nonce.to_bytes(2, "little") + bins.tobytes()).hexdigest()
