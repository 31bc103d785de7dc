"""Rank-1: leave-one-out, fixed galleries, and bounds by person."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.evidence import People, fixed_gallery, leave_one_out, record_isolation, upper_share


@pytest.mark.parametrize(
    ("hits", "count", "percent"),
    [
        (0, 20, 13.9),
        (0, 30, 9.5),
        (0, 50, 5.8),
        (0, 59, 5.0),
        (0, 100, 3.0),
        (0, 150, 2.0),
        (0, 299, 1.0),
        (2, 50, 12.1),
    ],
)
def test_clopper_pearson_bounds_are_the_printed_ones(hits: int, count: int, percent: float) -> None:
    assert upper_share(hits, count) * 100 == pytest.approx(percent, abs=0.051)


def test_everybody_found_bounds_nothing_and_nonsense_is_refused() -> None:
    assert upper_share(5, 5) == 1
    with pytest.raises(ValueError, match="hits"):
        upper_share(6, 5)


def test_leave_one_out_counts_by_hand() -> None:
    # On a line: person 1 at 0, 1, 10; person 2 at 2, 12. Sessions all differ.
    people = People.of([1, 1, 1, 2, 2])
    found = leave_one_out(np.array([[0.0], [1.0], [10.0], [2.0], [12.0]]), people, "euclid")
    # 0 -> 1 hit; 1 -> 0 and 2 at distance 1: a tie is a hit; 10 -> 12 miss; 2 -> 1 miss; 12 -> 10 miss
    assert found.rank1 == pytest.approx(2 / 5)
    assert found.by_subject.tolist() == pytest.approx([2 / 3, 0.0])
    assert (found.queries, found.people, found.gallery) == (5, 2, 4)
    assert found.chance == pytest.approx((2 + 2 + 2 + 1 + 1) / 5 / 4)


def test_scans_of_one_session_neither_ask_for_each_other_nor_stand_in_the_way() -> None:
    people = People.of([1, 1, 2, 2], ["a", "a", "a", "b"])
    found = leave_one_out(np.array([[0.0], [0.0], [5.0], [6.0]]), people, "euclid")
    assert found.queries == 2  # person 1 has one session: nobody to find
    assert found.rank1 == 1


def test_nobody_with_a_mate_is_no_evidence() -> None:
    with pytest.raises(ValueError, match="two sessions"):
        leave_one_out(np.zeros((3, 2)), People.of([1, 2, 3]), "euclid")


def test_a_fixed_gallery_of_noise_finds_people_by_chance_and_of_identity_always() -> None:
    generator = np.random.default_rng(2)
    subject = np.repeat(np.arange(80), 2)
    people = People.of(subject.tolist())
    noise = fixed_gallery(generator.normal(size=(160, 16)), people, "cosine", generator, size=40, draws=60)
    assert noise.rank1 == pytest.approx(1 / 40, abs=0.03)
    assert noise.chance == 1 / 40
    assert noise.rank1 < noise.upper < 0.15
    identity = generator.normal(size=(80, 16))[subject] + 0.01 * generator.normal(size=(160, 16))
    assert fixed_gallery(identity, people, "cosine", generator, size=40, draws=20).rank1 == 1


def test_a_gallery_needs_as_many_people() -> None:
    with pytest.raises(ValueError, match="gallery of 50"):
        fixed_gallery(np.zeros((4, 2)), People.of([1, 1, 2, 2]), "euclid", np.random.default_rng(0))


def test_the_smallest_group_and_what_isolates_it() -> None:
    people = [{"sex": "F", "age": "40"}] * 4 + [{"sex": "M", "age": "40"}] * 3 + [{"sex": "M", "age": "80"}]
    found = record_isolation(people, wanted=3)
    assert (found.k, found.people, found.alone) == (1, 8, 1)
    assert found.isolating == (("age",),)


def test_attributes_that_isolate_only_together_are_named_together() -> None:
    people = [{"sex": s, "age": a} for s, a in [("F", "1"), ("F", "1"), ("M", "2"), ("M", "2"), ("M", "1"), ("F", "2")]]
    assert record_isolation(people, wanted=2).isolating == (("age", "sex"),)


def test_a_missing_value_is_a_value_and_nobody_is_no_evidence() -> None:
    assert record_isolation([{"age": "40"}, {}], wanted=2).k == 1
    with pytest.raises(ValueError, match="people"):
        record_isolation([], wanted=2)


def test_rank_1_rises_with_the_mates_of_a_query() -> None:
    generator = np.random.default_rng(8)
    subject = np.repeat(np.arange(40), 5)
    x = generator.normal(size=(40, 6))[subject] + 1.2 * generator.normal(size=(200, 6))
    people = People.of(list(subject))
    found = [
        fixed_gallery(x, people, "euclid", np.random.default_rng(0), size=30, draws=40, mates=mates).rank1
        for mates in (1, 2, 4)
    ]
    assert found == sorted(found)
    assert found[2] > found[0] + 0.01
    with pytest.raises(ValueError, match="with 5 mates; there are 0"):
        fixed_gallery(x, people, "euclid", np.random.default_rng(0), size=30, mates=5)
    with pytest.raises(ValueError, match="one mate"):
        fixed_gallery(x, people, "euclid", np.random.default_rng(0), size=30, mates=2, same_scan=True)
