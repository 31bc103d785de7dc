"""What kind of picture a card takes: levelled by its ends, measured, and refused beyond limits of people held out."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from models.cards import Card, CardError, DomainLimits
from models.resynthesis.anew import looked_at, made_anew, noise_shape, seeded, values_of
from models.resynthesis.domain import PictureDomain, domain_of, ends_of, fitted, levelled, measured
from models.train.reid_material import gathered
from tests.adjustable_films import SIDE, cohort, parts

CARD = Card(
    name="d-1",
    role="anonymiser",
    algorithm="adjustable_resynthesis",
    modalities=("CR",),
    dimensions=4,
    intended_use="a test",
    limits="a test",
    licence="none",
    source="a test",
)


@pytest.fixture(scope="module")
def domain() -> PictureDomain:
    torch.set_num_threads(1)
    people = cohort(60)
    sides = [people.of(people.subjects[a:b]) for a, b in ((0, 30), (30, 55))]
    seen = [gathered([one], (), SIDE, lambda *_: None) for one in sides]
    return fitted(parts(), seen[0].x.float(), seen[1].x.float())


def film() -> torch.Tensor:
    return torch.from_numpy(cohort(60).scans[2 * 57].load())


def test_levelling_takes_exposure_away_and_comes_back() -> None:
    x = torch.rand(40, 50, generator=torch.Generator().manual_seed(1)).double()
    for scale, offset in ((1.0, 0.0), (4095.0, 0.0), (-1.0, 7.0), (30.0, -1000.0)):
        values = scale * x + offset
        made = levelled(values, ends_of(values), (0.1, 0.9))
        low, high = torch.quantile(made.double().flatten(), torch.tensor([0.005, 0.995], dtype=torch.float64))
        assert (float(low), float(high)) == pytest.approx((0.1, 0.9), abs=1e-4)
        assert torch.allclose(values_of(made, ends_of(values), (0.1, 0.9)), values, rtol=1e-4, atol=abs(scale) * 1e-3)
    assert torch.allclose(levelled(x, ends_of(x), (0.1, 0.9)), levelled(x * 9, ends_of(x * 9), (0.1, 0.9)), atol=1e-6)
    assert (levelled(torch.full((4, 4), 3.0), (3.0, 3.0), (0.1, 0.9)) == 0.1).all()  # a picture of one value


def test_films_of_strangers_pass_and_other_pictures_name_what_is_out(domain: PictureDomain) -> None:
    whole = parts()

    def out(values: torch.Tensor) -> set[str]:
        return {one.statistic for one in domain.limits.outside(looked_at(whole, domain, values).statistics)}

    assert out(film()) == set()
    assert out(0.5 * film() + 3) == set()  # another exposure
    assert "height over width" in out(film()[:8])
    assert {"spread", "histogram"} & out(torch.arange(256).reshape(16, 16) % 2 * 1.0)
    assert "mean" in out(-film())
    assert out(torch.full((16, 16), 0.3))
    assert out(torch.full((16, 16), float("nan")))


def test_limits_are_those_of_people_held_out_and_a_number_that_is_none_is_out() -> None:
    some = [{"mean": value, "histogram": value} for value in (0.2, 0.3, 0.4)]
    found = DomainLimits.fitted(some, ("histogram",), 1.0)
    assert found.limits["mean"] == pytest.approx((0.16, 0.5))
    assert found.limits["histogram"] == pytest.approx((0.0, 0.5))
    assert not found.outside({"mean": 0.3, "histogram": 0.0})
    assert [one.statistic for one in found.outside({"mean": float("nan"), "histogram": 0.6})] == ["mean", "histogram"]
    assert found.nearness({"mean": 0.33, "histogram": 0.0}) == pytest.approx(0)
    assert found.nearness({"mean": 0.5, "histogram": 0.1}) == pytest.approx(1)
    assert found.nearness({"mean": 0.33, "histogram": 0.4}) == pytest.approx(0.8)
    with pytest.raises(ValueError, match="studies"):
        DomainLimits.fitted([], ())


def test_a_card_gives_its_domain_back_and_without_one_it_is_refused(domain: PictureDomain) -> None:
    card = CARD.model_copy(update={"parameters": domain.parameters()})
    found = domain_of(card, domain.tensors())
    assert found.limits == domain.limits
    assert found.shown == domain.shown
    x = film()[None, None]
    again, first = (measured(parts(), one.reference, x, [(16, 16)]) for one in (found, domain))
    assert again == first
    with pytest.raises(CardError, match="domain"):
        domain_of(CARD, domain.tensors())
    with pytest.raises(CardError, match="domain"):
        domain_of(card, {})


def test_a_picture_of_any_size_is_made_anew_by_its_noise(domain: PictureDomain) -> None:
    whole = parts()
    values = torch.nn.functional.interpolate(film()[None, None], (40, 44), mode="bilinear")[0, 0]
    looked = looked_at(whole, domain, values)
    made = [
        made_anew(whole, looked, level, seeded(whole, seed)) for level, seed in ((0.9, 1), (0.9, 1), (0.9, 2), (0.3, 1))
    ]
    assert made[0].shape == (40, 44)
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])
    assert not torch.equal(made[0], made[3])
    assert tuple(seeded(whole, 0).shape) == noise_shape(whole)
    assert replace(looked, x=looked.x).ends == ends_of(values)
