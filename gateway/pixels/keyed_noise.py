"""Normal noise out of a key: the same for the same study and purpose, and nothing to whoever lacks the key.

ChaCha20's keystream (RFC 8439) under HMAC-SHA256(seed, purpose). Whoever turns a deterministic sampler round and finds
the noise has found that noise: key and other noise stay unknown.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy.special import ndtri

if TYPE_CHECKING:
    from torch import Tensor

    from models.lesion_anonymiser import Noise

BITS = 53  # of a float64 between 0 and 1


def keyed_noise(seed: bytes) -> Noise:
    """Standard normal float32 for `models.lesion_anonymiser`; `seed` is `Work.seed`."""

    def drawn(shape: tuple[int, ...], purpose: str) -> Tensor:
        import torch

        count = int(np.prod(shape))
        cipher = Cipher(algorithms.ChaCha20(hmac.digest(seed, purpose.encode(), "sha256"), bytes(16)), mode=None)
        words = np.frombuffer(cipher.encryptor().update(bytes(8 * count)), "<u8") >> np.uint64(64 - BITS)
        normal = ndtri((words.astype(np.float64) + 0.5) / float(1 << BITS))
        return torch.from_numpy(normal.astype(np.float32).reshape(shape))

    return drawn
