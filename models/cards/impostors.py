"""Distances between scans of different people, which a card carries: the file, as it is written and named.

An .npz of `metric`, `distances` (people, draws) float32, one row a person, and `calibrated`, which says on whom.
"""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

LEAST_IMPOSTORS = 200  # people; fewer cannot tell one in a hundred


def write_impostors(metric: str, distances: NDArray[np.float32], calibrated: str) -> bytes:
    """The contents of the file that a card names under `impostors`."""
    file = io.BytesIO()
    np.savez_compressed(
        file, metric=np.array(metric), distances=np.asarray(distances, np.float32), calibrated=np.array(calibrated)
    )
    return file.getvalue()
