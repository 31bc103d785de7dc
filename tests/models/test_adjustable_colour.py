"""The adjustable anonymiser in colour: what goes in as three channels comes out so, and grey is not taken for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.cards import CardError
from models.cohorts import synthetic_fundus
from models.id_blocking import Blocking
from models.reid_encoder import ReidEncoder
from models.reid_encoder.network import local_contrast
from models.reid_encoder.parameters import configured
from models.resynthesis import deidentified, parts_of, sides
from models.resynthesis.anew import looked_at, made_anew, seeded, values_of
from models.resynthesis.domain import PictureDomain, domain_of, fitted
from models.train.fundus_resynth_small import PLAN, named_eyes
from models.train.reid_material import gathered, pictures_of
from tests.adjustable_eyes import COLOUR, LUMA, eye, eyes, parts, some_eyes, trained
from tests.adjustable_films import SIDE, TINY_REID, cohort


def quiet(_what: str, _done: int, _total: int) -> None:
    return


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def domain() -> PictureDomain:
    torch.set_num_threads(1)
    people = eyes(60)
    sides = [people.of(people.subjects[a:b]) for a, b in ((0, 30), (30, 55))]
    seen = [gathered([one], (), SIDE, quiet, 3) for one in sides]
    return fitted(parts(), seen[0].x.float(), seen[1].x.float())


def planes(person: int = 57) -> torch.Tensor:
    """(3, SIDE, SIDE) of somebody whom the domain has not seen."""
    return torch.from_numpy(np.moveaxis(eye(person, 0), -1, 0).copy())


def test_a_cohort_gives_the_same_picture_in_grey_and_in_colour() -> None:
    for scan in synthetic_fundus(2, 1, 5, eyes="RL"):
        assert scan.load_colour is not None
        colour = scan.load_colour()
        assert colour.shape == (64, 64, 3)
        assert np.abs(colour @ LUMA - scan.load()).max() < 1e-6
    (scan, *_) = eyes(1)
    made = pictures_of(scan, SIDE, 3)
    assert np.array_equal(made[0].permute(1, 2, 0).numpy(), eye(0, 0))  # red, green, blue
    assert pictures_of(scan, SIDE).shape == (1, 1, SIDE, SIDE)
    with pytest.raises(ValueError, match="no colour"):
        pictures_of(cohort(1).scans[0], SIDE, 3)
    for wrong in (np.full((4, 4, 3), 2, np.float32), np.full((4, 4, 3), np.nan, np.float32), np.zeros((4, 4))):
        with pytest.raises(ValueError, match=r"0 to 1|three channels"):
            pictures_of(replace(scan, load_colour=lambda wrong=wrong: wrong), SIDE, 3)


def test_local_contrast_does_not_depend_on_light_and_is_nothing_in_the_dark() -> None:
    x = planes()[None]
    found = local_contrast(x, 5)
    torch.testing.assert_close(local_contrast(0.3 * x + 0.2, 5), found, atol=1e-4, rtol=1e-4)
    assert bool((found[..., 0, 0] == 0).all())  # the black frame
    inside = found[0, :, 5:11, 5:11]
    assert float(inside.std()) > 0.3
    # a spot of 1 among 0.5: it lies 4/9 above the mean of its 9 places, the 8 around it 1/18 below that of theirs
    spot = torch.full((1, 1, 7, 7), 0.5)
    spot[0, 0, 3, 3] = 1
    spot[0, 0, 0, 0] = 0  # black, so that 0.5 is half of the way to white
    deviation = (((4 / 9) ** 2 + 8 / 18**2) / 9) ** 0.5
    assert float(local_contrast(spot, 3)[0, 0, 3, 3]) == pytest.approx(4 / 9 / (deviation + 0.05), rel=1e-5)


def test_surroundings_are_part_of_the_card_and_older_cards_have_none() -> None:
    card = trained().card
    assert configured("reid", TINY_REID, card).around == 5
    older = card.model_copy(update={"parameters": {k: v for k, v in card.parameters.items() if k != "reid_around"}})
    assert configured("reid", TINY_REID, older).around == 0
    for wrong in (4, 1, 17):
        with pytest.raises(ValueError, match="surroundings"):
            replace(TINY_REID, around=wrong)
    plain, local = (ReidEncoder(replace(COLOUR.reid, around=one)) for one in (0, 5))
    assert not torch.equal(plain.prepared(planes()[None]), local.prepared(planes()[None]))


def test_a_trained_card_opens_as_what_it_is() -> None:
    card = trained().card
    assert (card.modalities, card.anatomy) == (("OP",), ("EYE",))
    assert card.parameters["channels"] == 3
    assert "views" not in card.parameters
    assert "5665001" in str(card.parameters["regions"]).split(",")
    whole = parts_of(card, trained().tensors)
    assert whole.channels == 3
    assert whole.parameters().items() <= card.parameters.items()
    assert domain_of(card, trained().tensors).reference.histogram.shape == (3, 32)
    for wrong in (2, "3"):
        with pytest.raises(CardError, match="channels"):
            parts_of(card.model_copy(update={"parameters": {**card.parameters, "channels": wrong}}), trained().tensors)
    assert (PLAN.channels, PLAN.picture.channels, PLAN.reid.channels) == (3, 3, 3)


def test_a_picture_in_colour_is_made_anew_at_its_size_by_its_noise(domain: PictureDomain) -> None:
    whole = parts()
    values = torch.nn.functional.interpolate(planes()[None], (40, 44), mode="bilinear")[0] * 255
    looked = looked_at(whole, domain, values)
    made = [made_anew(whole, looked, level, seeded(whole, seed)) for level, seed in ((0.9, 1), (0.9, 1), (0.3, 1))]
    assert made[0].shape == (3, 40, 44)
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])
    back = values_of(looked.x[0], looked.ends, domain.shown)
    inside = (values > looked.ends[0]) & (values < looked.ends[1])
    torch.testing.assert_close(back[inside], values.double()[inside], atol=1e-2, rtol=1e-4)
    with pytest.raises(ValueError, match="3 channels, not 1"):
        looked_at(whole, domain, values[0])
    with pytest.raises(ValueError, match="3 channels, not 1"):
        deidentified(whole, looked.x[:, :1], Blocking(0.5), seeded(whole, 0))


def test_what_is_blocked_is_blocked_in_every_channel() -> None:
    found = deidentified(parts(), planes()[None], Blocking(0.5), seeded(parts(), 0))
    assert found.noid.shape == (1, 3, SIDE, SIDE)
    assert 0.4 < float(found.mask.float().mean()) < 1
    hidden = found.mask[0, 0]
    assert bool((found.noid[0, :, hidden] == 0).all())
    assert torch.equal(found.noid[0, :, ~hidden], planes()[:, ~hidden])


def test_a_new_picture_shows_the_side_that_is_named_or_that_of_the_original(domain: PictureDomain) -> None:
    pictures, right = some_eyes(20)
    mean = sides.fitted(pictures, right)
    assert float(mean.norm()) == pytest.approx(1)
    torch.testing.assert_close(mean, -mean.flip(-1))
    for person in (57, 58):  # a left eye and a right one that it has not seen
        own = "L" if person % 2 else "R"
        assert [sides.told(mean, one) for one in (planes(person), planes(person).flip(-1))] == [own, "RL"[own == "R"]]
        whole = replace(parts(), sides=mean)
        looked = looked_at(whole, domain, planes(person))
        named = {one: made_anew(whole, looked, 0.4, seeded(whole, 3), one) for one in ("R", "L", "", "B")}
        assert torch.equal(named["R"], named["L"].flip(-1))
        assert {one: sides.told(mean, named[one]) for one in "RL"} == {"R": "R", "L": "L"}
        assert torch.equal(named[""], named[own])
        assert torch.equal(named["B"], named[own])
    plain = [made_anew(parts(), looked, 0.4, seeded(whole, 3), one) for one in ("R", "L")]
    assert torch.equal(*plain)  # a card without sides
    with pytest.raises(ValueError, match="the same"):
        sides.fitted(torch.ones(2, 3, 4, 4), torch.tensor([True, False]))


def test_the_entry_learns_sides_of_eyes_that_are_named() -> None:
    card = trained().card
    assert card.metrics["side of originals told"] == 1.0
    assert card.limits.startswith("Shows that the whole path works")
    whole = parts_of(card, trained().tensors)
    assert whole.sides is not None
    assert torch.equal(whole.tensors()["sides.right"], whole.sides)
    pictures, right = named_eyes([synthetic_fundus(4, 1, 3, eyes="RL")])
    assert pictures.shape == (4, 3, 64, 64)
    assert right.tolist() == [True, True, False, False]
    with pytest.raises(ValueError, match="which eye"):
        named_eyes([cohort(2)])


def test_eyes_of_strangers_pass_and_grey_or_another_colour_does_not(domain: PictureDomain) -> None:
    whole = parts()

    def out(values: torch.Tensor) -> set[str]:
        return {one.statistic for one in domain.limits.outside(looked_at(whole, domain, values).statistics)}

    assert out(planes()) == set()
    assert out(0.5 * planes() + 3) == set()  # another exposure
    assert {"red over green", "blue over green"} <= out(planes().mean(0).expand(3, -1, -1))  # grey as three channels
    assert "red over green" in out(planes().flip(0))  # blue for red
    assert "height over width" in out(planes()[:, :8])
    assert out(torch.full((3, 16, 16), float("nan")))
