"""The attack of the deface bench: it recognises surfaces in another session, and nothing where nothing is left."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import ndimage

from bench.deface_attack import rank1

PEOPLE = [f"P{number:02d}" for number in range(8)]


def surface(person: str, session: int = 0, own: float = 1.0) -> np.ndarray:
    """Synthetic (64, 64) mm: a dome that all share, `own` times a relief of 3 mm, 0.3 mm noise, moved by up to 4 mm."""
    y, x = np.mgrid[-32:32, -32:32] / 32.0
    relief = ndimage.gaussian_filter(np.random.default_rng(int(person[1:])).normal(0, 1, (64, 64)), 5)
    random = np.random.default_rng([session, int(person[1:])])
    depth = 40 * (x**2 + y**2) + own * 3 * relief / relief.std() + 10 * session
    moved = np.roll(depth, tuple(random.integers(-2, 3, 2)), (0, 1)) + random.normal(0, 0.3, depth.shape)
    moved[:4, :8] = np.nan  # nothing was hit there
    return moved.astype(np.float32)


GALLERY = {person: surface(person) for person in PEOPLE}


def test_people_are_recognised_in_another_session() -> None:
    assert rank1(GALLERY, [(person, surface(person, session)) for person in PEOPLE for session in (1, 2)]) == 1.0


def test_without_a_face_of_their_own_nobody_is_recognised_but_by_chance() -> None:
    assert rank1(GALLERY, [(person, surface(person, 1, own=0.0)) for person in PEOPLE]) <= 3 / 8
    assert rank1(GALLERY, [(person, np.full((64, 64), np.nan, np.float32)) for person in PEOPLE]) == pytest.approx(
        1 / 8
    )


def test_without_probes_there_is_no_rate() -> None:
    assert math.isnan(rank1(GALLERY, []))
    assert math.isnan(rank1({}, [("P00", surface("P00"))]))
