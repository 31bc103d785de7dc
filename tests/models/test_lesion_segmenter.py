"""The segmenter: what it marks, how certain it says it is, what it refuses, and how its card is trained."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from models.cards import Card, CardError, find_card, people_hash, read_people, weights_of
from models.cohorts import synthetic_brains
from models.lesion_anonymiser import LesionStudy, NotAnonymised, OutOfDomain, domain_of
from models.lesion_segmenter import (
    NothingFound,
    SegmenterConfig,
    SegmenterParts,
    Uncertain,
    certainty_of,
    dice,
    least_certainty,
    parts_of,
    segment,
    with_neighbours,
)
from models.train import lesion_segment_judged
from models.train.lesion_material import visits_of
from models.train.lesion_segment import split, train_segmenter
from models.train.lesion_segment_judged import Judged
from models.train.lesion_segment_material import slices_of, varied
from models.train.trained import Options, Trained
from tests.lesion_series import MASK_PLAN
from tests.lesion_studies import LOOK, cohort, lesion_of, study, volume

PERSON = 90  # nobody of the cohort


def quiet(_what: str, _done: int, _total: int) -> None:
    return


@pytest.fixture(scope="module")
def trained() -> Trained:
    torch.set_num_threads(1)
    return train_segmenter("tiny-segment", MASK_PLAN, [cohort(30)], Options(seed=1), quiet)


@pytest.fixture
def parts(trained: Trained) -> SegmenterParts:
    return parts_of(trained.card, trained.tensors)


def healthy(person: int) -> LesionStudy:
    """The same head with plain brain in place of the ball."""
    made = study(person)
    ball = lesion_of(person)
    volumes = {name: one.copy() for name, one in made.volumes.items()}
    for one in volumes.values():
        inside = one > 0
        one[ball] = np.median(one[inside & ~ball])
    return replace(made, volumes=volumes, lesion=np.zeros_like(ball))


# -- figures ------------------------------------------------------------------------------------------------------


def test_dice_is_twice_what_is_common_over_both() -> None:
    one, other = np.zeros(6, np.bool_), np.zeros(6, np.bool_)
    one[:4], other[2:4] = True, True
    assert dice(one, other) == pytest.approx(2 * 2 / (4 + 2))
    assert dice(one, ~one) == 0
    assert dice(np.zeros(3, np.bool_), np.zeros(3, np.bool_)) == 1


def test_certainty_is_the_dice_that_the_probabilities_promise() -> None:
    """Marked 0.9 and 0.7; 0.4 is half seen: 2 · 1.6 / (2 + 2.0)."""
    one = np.array([0.9, 0.7, 0.4, 0.0], np.float32)
    assert certainty_of(np.stack([one, one]), 0.5) == pytest.approx(2 * 1.6 / (2 + 2.0))
    assert certainty_of(np.stack([one, one]), 0.95) == 0


def test_takes_that_disagree_are_less_certain_than_any_promise() -> None:
    """The mean marks both voxels, one take only the first: Dice 2 · 1 / (1 + 2)."""
    takes = np.array([[1.0, 0.4], [1.0, 1.0]], np.float32)
    assert certainty_of(takes, 0.5) == pytest.approx(2 / 3)


def test_the_least_certainty_lies_above_every_bad_mask() -> None:
    assert least_certainty([(0.95, True), (0.9, True), (0.6, False), (0.8, True)]) == pytest.approx(
        float(
            np.quantile([0.8, 0.9, 0.95], 0.05)
        )  # 0.7 keeps the bad one out; all but 5 % of the good ones ask for more
    )
    assert least_certainty([(0.95, True), (0.85, False), (0.8, True)]) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="surest of all"):
        least_certainty([(0.9, True), (0.9, False)])
    with pytest.raises(ValueError, match="no mask"):
        least_certainty([(0.9, False)])


def test_a_slice_is_seen_between_its_neighbours_and_the_ends_twice() -> None:
    slices = torch.arange(3.0)[:, None, None, None] + torch.tensor([0.0, 0.5])[:, None, None]  # (3, 2, 1, 1)
    seen = with_neighbours(slices)[:, :, 0, 0]
    assert seen.tolist() == [
        [0, 0.5, 0, 0.5, 1, 1.5],
        [0, 0.5, 1, 1.5, 2, 2.5],
        [1, 1.5, 2, 2.5, 2, 2.5],
    ]


@pytest.mark.parametrize("wrong", [{"sequences": 0}, {"side": 81}, {"widths": (10, 16)}, {"widths": (16,)}])
def test_a_network_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"takes a sequence|halved|multiples"):
        SegmenterConfig(**{"sequences": 2, "side": 80, "widths": (16, 24), **wrong})


# -- training -----------------------------------------------------------------------------------------------------


def test_training_sees_slices_as_the_network_sees_them_later(parts: SegmenterParts) -> None:
    made = slices_of(visits_of([cohort(2)]), parts, quiet)
    first = int((made.near[:, 0] == torch.arange(len(made))).nonzero()[1])  # where the second person begins
    for low, high in ((0, first), (first, len(made))):
        rows = torch.arange(low, high)
        assert torch.equal(made.seen(rows), with_neighbours(made.x[low:high].float()))
    assert made.smallest_ml == pytest.approx(min(lesion_of(one).sum() for one in range(2)) * 10 * 8 * 8 / 1000)


def test_varied_slices_are_mirrored_with_their_masks_and_air_stays_air() -> None:
    x = torch.zeros(64, 6, 4, 4)
    x[:, :, 0, 0], mask = 0.5, torch.zeros(64, 1, 4, 4)
    mask[:, :, 0, 0] = 1
    made, marked = varied(x, mask, torch.Generator().manual_seed(3))
    assert torch.equal((made > 0).any(1, keepdim=True), marked > 0)
    left = int(marked[:, 0, 0, 0].sum())
    assert (left, int(marked[:, 0, 0, 3].sum())) == (left, 64 - left)
    assert 16 < left < 48
    seen = made.amax((2, 3)).reshape(64, 3, 2)  # slices, sequences
    assert torch.equal(seen[:, 0], seen[:, 2])
    assert len(seen[:, 0, 0].unique()) == 64


def test_nobody_is_fitted_and_held_out_or_judged() -> None:
    groups = [{visit.person for visit in some} for some in split(visits_of([cohort(30)]))]
    assert all(groups)
    assert sum(map(len, groups)) == len(set.union(*groups)) == 30
    with pytest.raises(ValueError, match="people"):
        split(visits_of([cohort(2)]))


def test_a_training_that_was_killed_ends_at_the_same_tensors(tmp_path: Path) -> None:
    plan = replace(MASK_PLAN, steps=30, evaluate_every=10)

    class Killed(RuntimeError):
        pass

    def kill(what: str, done: int, _total: int) -> None:
        if what.startswith("segment") and done == 15:
            raise Killed

    def made(checkpoint: Path, tick: object = quiet) -> Trained:
        return train_segmenter("t", plan, [cohort(12)], Options(seed=3, checkpoint=checkpoint), tick)  # type: ignore[arg-type]

    torch.set_num_threads(1)
    with pytest.raises(Killed):
        made(tmp_path / "one", kill)
    resumed, whole = made(tmp_path / "one"), made(tmp_path / "other")
    assert all(torch.equal(one, whole.tensors[name]) for name, one in resumed.tensors.items())
    assert resumed.card == whole.card


def test_the_card_says_what_it_is_and_what_it_reaches(trained: Trained) -> None:
    card = trained.card
    assert (card.role, card.algorithm) == ("segmenter", "lesion_segmentation")
    assert card.parameters["sequences"] == ",".join(LOOK)
    assert [one.people for one in card.trained_on] == [30]
    assert card.metrics["judged on"] == "synthetic people"
    assert float(card.metrics["Dice"]) > 0.9
    assert 0.5 < float(card.parameters["least_certainty"]) < 1
    assert float(card.parameters["smallest_ml"]) == pytest.approx(
        0.8 * min(lesion_of(one).sum() for one in range(30)) * 0.64, rel=0.2
    )


@pytest.mark.parametrize(("found", "marks_at"), [((0.9, 0.94, 0.96, 0.99), 0.3), ((0.1, 0.2, 0.3, 0.4), 0.2)])
def test_a_voxel_is_marked_at_the_highest_probability_that_finds_the_lesions(
    parts: SegmenterParts, monkeypatch: pytest.MonkeyPatch, found: tuple[float, ...], marks_at: float
) -> None:
    """Certainty 0.9 of the only good mask, 0.5 of one in somebody healthy."""

    def judged(study: LesionStudy, parts: SegmenterParts, _domain: None) -> Judged:
        if not study.lesion.any():
            return Judged(False, True, 0.0, 0.0, 0.5, False)
        return Judged(True, True, 0.8, found[lesion_segment_judged.AT.index(parts.marks_at)], 0.9, True)

    both = [study(1), healthy(2)]
    monkeypatch.setattr(lesion_segment_judged, "judged_of", judged)
    monkeypatch.setattr(lesion_segment_judged, "usable", lambda *_: [(None, one) for one in both])
    made = lesion_segment_judged.fixed(parts, 10.0, [], quiet)
    assert (made.marks_at, made.least_certainty, made.smallest_ml) == (marks_at, 0.9, 8.0)


# -- a study ------------------------------------------------------------------------------------------------------


def test_the_ball_is_marked_whatever_mask_the_study_brings(trained: Trained, parts: SegmenterParts) -> None:
    domain = domain_of(trained.card, trained.tensors)
    found = segment(study(PERSON), parts, domain)
    assert dice(found.mask, lesion_of(PERSON)) > 0.9
    assert found.volume_ml == pytest.approx(found.mask.sum() * 0.64)
    elsewhere = replace(study(PERSON), lesion=np.roll(lesion_of(PERSON), 4, 2))
    again = segment(elsewhere, parts, domain)
    np.testing.assert_array_equal(again.mask, found.mask)
    assert again.certainty == found.certainty
    scaled = segment(study(PERSON, scale=731.0), parts, domain)
    assert dice(scaled.mask, found.mask) > 0.99


def test_a_head_without_a_ball_is_refused(parts: SegmenterParts) -> None:
    with pytest.raises((NothingFound, Uncertain)):
        segment(healthy(PERSON), parts, None)


def test_what_is_small_or_uncertain_or_not_there_is_refused(parts: SegmenterParts) -> None:
    with pytest.raises(Uncertain, match=r"smaller than 1e\+03 ml"):
        segment(study(PERSON), replace(parts, smallest_ml=1000.0), None)
    with pytest.raises(Uncertain, match=r"at least 1\.00 is needed"):
        segment(study(PERSON), replace(parts, least_certainty=0.9999), None)
    with pytest.raises(NothingFound):
        segment(study(PERSON), replace(parts, marks_at=1.1), None)


def test_another_kind_of_study_is_refused(trained: Trained, parts: SegmenterParts) -> None:
    domain = domain_of(trained.card, trained.tensors)
    one = study(PERSON)
    with pytest.raises(NotAnonymised, match="FLAIR"):
        segment(replace(one, volumes={"T1": one.volumes["T1"]}), parts, domain)
    with pytest.raises(OutOfDomain, match="head x"):
        segment(replace(one, spacing_mm=(10.0, 8.0, 2.0)), parts, domain)
    swapped = {"T1": volume(PERSON, "FLAIR"), "FLAIR": volume(PERSON, "T1")}
    with pytest.raises(OutOfDomain, match="T1"):
        segment(replace(one, volumes=swapped), parts, domain)


def test_a_card_that_does_not_fit_its_tensors_is_refused(trained: Trained) -> None:
    def changed(**given: object) -> Card:
        return trained.card.model_copy(update=given)

    with pytest.raises(CardError, match="not lesion_segmentation"):
        parts_of(changed(algorithm="lesion_diffusion"), trained.tensors)
    for name in ("sequences", "widths", "marks_at", "least_certainty"):
        less = {key: one for key, one in trained.card.parameters.items() if key != name}
        with pytest.raises(CardError, match="missing or wrong"):
            parts_of(changed(parameters=less), trained.tensors)
    with pytest.raises(CardError, match="between 0 and 1"):
        parts_of(changed(parameters={**trained.card.parameters, "marks_at": 1.0}), trained.tensors)
    with pytest.raises(CardError, match="tensors unet"):
        parts_of(trained.card, {name: one for name, one in trained.tensors.items() if "weight" not in name})


# -- the card that ships ------------------------------------------------------------------------------------------


def test_the_card_that_ships_marks_tumours_of_people_it_does_not_know_and_holds_the_healthy() -> None:
    card, folder = find_card("lesion-segment-small-1")
    path = weights_of(card, folder)
    assert path is not None
    assert path.stat().st_size < 2 << 20
    tensors = load_file(path)
    ships, domain = parts_of(card, tensors), domain_of(card, tensors)
    accepted = {"HGG": [], "healthy": []}
    for diagnosis, seed in (("HGG", 731), ("healthy", 732)):
        made = synthetic_brains(3, 1, seed, sequences=ships.sequences, spacing_mm=3.0, diagnoses={diagnosis: 1.0})
        assert not {people_hash(made.name, one) for one in made.subjects} & read_people(card, folder)
        for visit in visits_of([made]):
            one = visit.study(ships.sequences)
            with suppress(NotAnonymised):
                accepted[diagnosis].append(dice(segment(one, ships, domain).mask, one.lesion))
    assert accepted["healthy"] == []
    assert len(accepted["HGG"]) == 2
    assert min(accepted["HGG"]) > 0.75
