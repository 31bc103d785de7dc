"""The adaptive attacker links what a frozen encoder does not, on people neither saw; and never judges whom it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gateway.embed import fixed_embedding
from gateway.evidence import People, fixed_gallery
from models.audit_encoders import ENCODERS, Encoder
from models.cards import Card, people_hash
from models.cohorts import Cohort, synthetic_chest
from models.train import chest_audit, own
from models.train.attacker import Start, fit_attacker
from models.train.contrastive import Plan
from models.train.trained import Options, Trained

Pixels = NDArray[np.float32]
QUIET = lambda *_: None  # noqa: E731
JUDGED, AUXILIARY = 25, 50
ORDER = np.random.default_rng(2026).permutation(64 * 64)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Networks this small are slower on two threads, and much slower beside other tests."""
    torch.set_num_threads(1)


def shuffled(image: Pixels) -> Pixels:
    """An anonymiser with a key: every pixel elsewhere, and inverted."""
    return 1 - image.ravel()[ORDER].reshape(image.shape)


def through(cohort: Cohort, anonymise: Callable[[Pixels], Pixels]) -> Cohort:
    return replace(cohort, scans=tuple(replace(scan, load=lambda scan=scan: anonymise(scan.load())) for scan in cohort))


@pytest.fixture(scope="module")
def people() -> dict[str, Cohort]:
    cohort = synthetic_chest(JUDGED + AUXILIARY, 2, 77, difficulty=0.3)
    return {"judged": cohort.of(cohort.subjects[:JUDGED]), "auxiliary": cohort.of(cohort.subjects[JUDGED:])}


@pytest.fixture(scope="module")
def frozen() -> Trained:
    """A small encoder of ours, trained on originals of other people."""
    recipe = replace(
        chest_audit.RECIPE, name="small-1", side=64, width=4, learned=16, whitened=60, plan=Plan(5, people=12, views=2)
    )
    return own.train_own(recipe, [synthetic_chest(40, 2, 78, difficulty=0.3)], Options(), QUIET)


@pytest.fixture(scope="module")
def adaptive(people: dict[str, Cohort], frozen: Trained) -> Trained:
    judged = {people_hash(people["judged"].name, subject) for subject in people["judged"].subjects}
    auxiliary = people["auxiliary"]
    start = Start(frozen.card, frozen.tensors, frozen.people)
    return fit_attacker("shuffle-1", auxiliary, through(auxiliary, shuffled), start, judged, Options(steps=5), QUIET)


def seen(encoder: Encoder, cohort: Cohort) -> Pixels:
    return np.stack([encoder(scan.load()) for scan in cohort])


def rank1(before: Pixels, after: Pixels, originals: Cohort, *, same_scan: bool) -> float:
    """Of all judged people, one mate each; chance is 1/25."""
    who = People.of([scan.subject for scan in originals], [scan.session for scan in originals])
    generator = np.random.default_rng(0)
    return fixed_gallery(
        after, who, "cosine", generator, gallery=before, size=JUDGED, draws=20, same_scan=same_scan
    ).rank1


def opened(trained: Trained) -> Encoder:
    return ENCODERS[trained.card.algorithm](trained.card, trained.tensors)


def test_a_keyed_permutation_blinds_the_frozen_and_not_the_adaptive(
    people: dict[str, Cohort], frozen: Trained, adaptive: Trained
) -> None:
    judged = people["judged"]
    released = through(judged, shuffled)
    before, after = (seen(opened(frozen), cohort) for cohort in (judged, released))
    assert rank1(before, before, judged, same_scan=False) > 0.3, "the frozen one works on originals"
    assert rank1(before, after, judged, same_scan=True) < 0.15
    before, after = (seen(opened(adaptive), cohort) for cohort in (judged, released))
    assert rank1(before, after, judged, same_scan=True) > 0.5
    assert rank1(before, after, judged, same_scan=False) > 0.25


def test_an_adaptive_card_says_on_whom_it_was_fitted_and_opens_alone(adaptive: Trained, frozen: Trained) -> None:
    card = adaptive.card
    assert (card.role, card.algorithm, card.parameters["pixels"]) == ("attacker", "own_adaptive", "films")
    assert [one.people for one in card.trained_on] == [AUXILIARY, 40]
    assert set(adaptive.people) == {one.people_file for one in card.trained_on}
    assert np.linalg.norm(fixed_embedding(card, dict(adaptive.tensors))) == pytest.approx(1, abs=1e-3)


def test_one_seed_gives_one_attacker(people: dict[str, Cohort], frozen: Trained) -> None:
    few = people["auxiliary"].of(people["auxiliary"].subjects[:12])
    made = [
        fit_attacker("a-1", few, through(few, shuffled), Start(frozen.card), (), Options(steps=2), QUIET)
        for _ in range(2)
    ]
    assert all(torch.equal(made[0].tensors[name], made[1].tensors[name]) for name in made[0].tensors)
    assert [one.people for one in made[0].card.trained_on] == [12], "fresh weights know nobody else"


def test_people_to_be_judged_are_refused(people: dict[str, Cohort], frozen: Trained) -> None:
    auxiliary = people["auxiliary"]
    known = people_hash(auxiliary.name, auxiliary.subjects[3])
    with pytest.raises(ValueError, match=r"^1 people whom the attacker knows"):
        fit_attacker("a-1", auxiliary, auxiliary, Start(frozen.card), {known, "0" * 16}, Options(steps=1), QUIET)


def test_people_of_the_weights_it_starts_from_are_refused_too(people: dict[str, Cohort], frozen: Trained) -> None:
    (lines,) = frozen.people.values()
    known = lines.decode().split()[0]
    start = Start(frozen.card, frozen.tensors, frozen.people)
    with pytest.raises(ValueError, match="knows are to be judged"):
        fit_attacker("a-1", people["auxiliary"], people["auxiliary"], start, [known], Options(steps=1), QUIET)
    with pytest.raises(ValueError, match="on whom it was trained"):
        fit_attacker("a-1", people["auxiliary"], people["auxiliary"], replace(start, people={}), (), Options(), QUIET)


def test_scans_that_do_not_match_and_too_few_people_are_refused(people: dict[str, Cohort], frozen: Trained) -> None:
    auxiliary, start = people["auxiliary"], Start(frozen.card)
    with pytest.raises(ValueError, match="same scans"):
        fit_attacker("a-1", auxiliary, replace(auxiliary, scans=auxiliary.scans[::-1]), start, (), Options(), QUIET)
    few = auxiliary.of(auxiliary.subjects[:9])
    with pytest.raises(ValueError, match="10 auxiliary people"):
        fit_attacker("a-1", few, few, start, (), Options(), QUIET)


def test_an_attacker_does_not_start_from_somebody_elses_encoder(people: dict[str, Cohort], frozen: Trained) -> None:
    card: Card = frozen.card.model_copy(update={"algorithm": "dino"})
    with pytest.raises(ValueError, match="own_films or own_eyes or own_brains"):
        fit_attacker("a-1", people["auxiliary"], people["auxiliary"], Start(card), (), Options(), QUIET)
