"""The lowest levels: semantics are one of few prototypes, and nothing else of a picture is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from models.cards import CardError
from models.id_blocking import Blocking
from models.mdl_decoupling import Codebook, evidence, prototypes_at
from models.mdl_decoupling.codebook import LEAST, MOST, SIDES
from models.resynthesis import AdjustableParts, deidentified, parts_of
from tests.adjustable_films import parts
from tests.models.test_resynthesis import card_of


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def blobs(count: int, each: int = 40) -> torch.Tensor:
    """(count · each, 2, 3, 3): around `count` corners that lie far apart."""
    corners = 10 * torch.eye(count, 18)
    noise = 0.1 * torch.randn(count * each, 18, generator=seeded(1))
    return (corners.repeat_interleave(each, 0) + noise).reshape(-1, 2, 3, 3)


def book_of(maps: torch.Tensor, seed: int = 0) -> Codebook:
    return Codebook.fitted(maps, maps.flatten(1), torch.arange(len(maps)), seed)


def seen_by(made: AdjustableParts, semantics: torch.Tensor) -> torch.Tensor:
    return evidence(made.decoupler.features_of(semantics), made.foundation.findings_of)


def with_book() -> AdjustableParts:
    made = parts()
    x = torch.rand(60, 1, 16, 16, generator=seeded(2))
    semantics = made.decoupler.semantics(made.foundation(x))
    return replace(made, codebook=Codebook.fitted(semantics, seen_by(made, semantics), torch.arange(60), 0))


@pytest.mark.parametrize(
    ("r", "count"),
    [(0.95, 0), (0.2, 0), (0.1, 0), (0.0999, 9), (0.09, 9), (0.07, 7), (0.05, 5), (0.029, 2), (0.01, 1), (0.001, 1)],
)
def test_below_a_tenth_the_level_in_hundredths_is_the_number_of_prototypes(r: float, count: int) -> None:
    assert prototypes_at(r) == count


def test_evidence_is_what_is_there_and_half_as_much_on_which_side() -> None:
    """One finding that is read where the only channel is bright: on the left, on the right, nowhere."""
    maps = torch.zeros(3, 1, 2, 4)
    maps[0, :, :, :2], maps[1, :, :, 2:] = 4, 4
    found = evidence(maps, lambda one: 4 * one.mean((2, 3)) - 2)  # a logit of 6 whole, 14 and -2 by half, or -2
    low, whole, high = torch.tensor([-2.0, 6.0, 14.0]).sigmoid().tolist()
    apart = SIDES * (high - low)
    torch.testing.assert_close(found, torch.tensor([[whole, apart], [whole, -apart], [low, 0.0]]))
    assert torch.equal(evidence(maps, lambda _one: None), maps.flatten(1))  # a network that reads no findings


def test_prototypes_are_the_means_of_what_lies_together() -> None:
    maps = blobs(4)
    book, seen = book_of(maps, 3), maps.flatten(1)
    assert len(book.maps) == MOST * (MOST + 1) // 2
    torch.testing.assert_close(book.nearest(seen, 1), maps.mean(0).expand_as(maps), atol=1e-5, rtol=1e-5)
    centres = torch.stack([own.mean(0) for own in maps.split(40)])
    torch.testing.assert_close(book.nearest(seen, 4), centres.repeat_interleave(40, 0), atol=1e-5, rtol=1e-5)
    for count in range(1, MOST + 1):
        assert len(book.nearest(seen, count).flatten(1).unique(dim=0)) == count
    assert torch.equal(book_of(maps, 3).maps, book.maps)


def test_no_prototype_is_of_few_where_the_maps_can_be_parted_otherwise() -> None:
    alone = torch.cat([blobs(2), 60 * torch.ones(1, 2, 3, 3)])  # one map far from all: a person, not a kind
    said = book_of(alone).nearest(alone.flatten(1), 2).flatten(1)
    assert min((said == one).all(1).sum() for one in said.unique(dim=0)) >= LEAST


@pytest.mark.parametrize("people", [LEAST - 1, LEAST])
def test_a_kind_of_few_people_says_what_everybody_says_however_many_pictures_they_have(
    people: int,
) -> None:
    maps = blobs(2)  # the second forty pictures are of few people
    who = torch.cat([torch.arange(100, 140), torch.arange(40) % people])
    seen = maps.flatten(1)
    found = Codebook.fitted(maps, seen, who, 0).nearest(seen, 2)[-1]
    wanted = maps[40:].mean(0) if people >= LEAST else maps.mean(0)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_maps_that_are_all_the_same_have_prototypes_too() -> None:
    same = torch.ones(3, 2, 3, 3)
    assert torch.equal(book_of(same).nearest(same.flatten(1), MOST), same)


def test_of_all_pictures_there_are_as_many_new_ones_as_prototypes_whatever_they_show() -> None:
    made = with_book()
    x = torch.rand(24, 1, 16, 16, generator=seeded(4))
    noise = torch.randn(1, 4, 8, 8, generator=seeded(5))
    for r in (0.05, 0.03, 0.01):
        found = [deidentified(made, one[None], Blocking(r), noise) for one in x]
        assert all(bool(one.mask.all()) and not one.noid.any() for one in found)
        pictures = {one.picture.numpy().tobytes() for one in found}
        assert 1 <= len(pictures) <= prototypes_at(r)
    assert len({deidentified(made, one[None], Blocking(0.1), noise).picture.numpy().tobytes() for one in x}) == len(x)
    bare = replace(made, codebook=None)  # a card made before: its level is r alone
    assert len({deidentified(bare, one[None], Blocking(0.05), noise).picture.numpy().tobytes() for one in x}) == len(x)


def test_a_card_keeps_its_code_book_and_refuses_another_s() -> None:
    made = with_book()
    x, noise = torch.rand(2, 1, 16, 16, generator=seeded(6)), torch.randn(2, 4, 8, 8, generator=seeded(7))
    again = parts_of(card_of(), made.tensors())
    torch.testing.assert_close(
        deidentified(again, x, Blocking(0.03), noise).picture, deidentified(made, x, Blocking(0.03), noise).picture
    )
    assert parts_of(card_of(), parts().tensors()).codebook is None
    tensors = made.tensors()
    with pytest.raises(CardError, match="45 maps"):
        parts_of(card_of(), {**tensors, "codebook.maps": tensors["codebook.maps"][:9]})
    with pytest.raises(CardError, match="other semantics"):
        parts_of(card_of(), {**tensors, "codebook.maps": tensors["codebook.maps"][:, :8]})
    with pytest.raises(CardError, match="45 maps"):
        parts_of(card_of(), {name: one for name, one in tensors.items() if name != "codebook.centres"})


def test_what_cannot_be_counted_is_refused() -> None:
    book = book_of(blobs(2))
    with pytest.raises(ValueError, match="1 to 9"):
        book.nearest(blobs(2).flatten(1), 0)
    with pytest.raises(ValueError, match="somebody"):
        book_of(torch.zeros(0, 2, 3, 3))
