"""Photographs as a card of colour pictures would release them: made in colour, and given to attackers in grey."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gateway.learn.released import released
from models.cards import DomainLimits
from models.resynthesis.domain import fitted
from models.train.reid_material import gathered
from tests.adjustable_eyes import LUMA, SIDE, eye, eyes, parts


def quiet(_what: str, _done: int, _total: int) -> None:
    return


def test_attackers_get_the_new_picture_in_grey_and_without_colour_nothing_is_released() -> None:
    torch.set_num_threads(1)
    seen = gathered([eyes(12)], (), SIDE, quiet, 3).x.float()
    domain = fitted(parts(), seen, seen)
    domain = replace(domain, limits=DomainLimits({}, 0.99, 24))  # takes anything
    people = eyes(2)
    plain, made, again = (released(parts(), domain, people, level, 7, quiet).cohort for level in (None, 0.5, 0.5))
    assert [len(one) for one in (plain, made, again)] == [4, 4, 4]
    for scan, new, other in zip(plain, made, again, strict=True):
        person, visit = int(scan.subject[1:]), int(scan.session)
        assert np.abs(scan.load() - eye(person, visit) @ LUMA).max() < 2e-3  # kept in float16
        assert new.load().shape == (SIDE, SIDE)
        assert (new.load() != scan.load()).mean() > 0.9
        assert np.array_equal(new.load(), other.load())
        assert new.load_colour is None
    grey = replace(people, scans=tuple(replace(one, load_colour=None) for one in people))
    with pytest.raises(ValueError, match="not in colour"):
        released(parts(), domain, grey, 0.5, 7, quiet)
