"""Training of our encoders: the losses are the papers', people stay apart, one seed gives one result, runs go on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from gateway.cli.train import train
from gateway.embed import open_embedder
from gateway.errors import UsageError
from gateway.learn import training
from models.cards import CardFolder, find_card, people_hash, read_people
from models.cohorts import Cohort, Scan, synthetic_chest
from models.train import ENTRIES, chest_audit
from models.train.augmentations import Strength, standard, vary
from models.train.contrastive import Plan, draw_batch, fit, supcon
from models.train.own import Recipe
from models.train.trained import lists_of, sides
from models.train.whitening import ridge, whitening

QUIET = lambda *_: None  # noqa: E731
STILL = Strength(0, 0, 0, 0, 0, 0, 0, 0, 0)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Networks this small are slower on two threads, and much slower beside other tests."""
    torch.set_num_threads(1)


def test_the_loss_is_that_of_khosla_equation_2() -> None:
    """Against loops over i, p and a in float64."""
    generator = torch.Generator().manual_seed(0)
    z = torch.nn.functional.normalize(torch.randn(9, 5, generator=generator, dtype=torch.float64), dim=1)
    who, tau = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2]), 0.2
    total = 0.0
    for i in range(9):
        others = [a for a in range(9) if a != i]
        mates = [p for p in others if who[p] == who[i]]
        under = sum(math.exp(float(z[i] @ z[a]) / tau) for a in others)
        total += -sum(math.log(math.exp(float(z[i] @ z[p]) / tau) / under) for p in mates) / len(mates)
    assert float(supcon(z, who, tau)) == pytest.approx(total / 9, rel=1e-9)


def test_somebody_without_a_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="two views"):
        supcon(torch.eye(3), torch.tensor([0, 0, 1]), 0.1)


@given(counts=st.lists(st.integers(1, 6), min_size=2, max_size=12), views=st.integers(2, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_a_batch_holds_people_once_and_repeats_no_scan_needlessly(counts: list[int], views: int, seed: int) -> None:
    who = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    rows = draw_batch(who, Plan(1, people=4, views=views), torch.Generator().manual_seed(seed))
    drawn = who[rows].reshape(-1, views)
    assert len(rows) == min(4, len(counts)) * views
    assert (drawn == drawn[:, :1]).all()
    assert len(set(drawn[:, 0].tolist())) == len(drawn)
    for person, scans in zip(drawn[:, 0].tolist(), rows.reshape(-1, views), strict=True):
        assert len(set(scans.tolist())) == min(views, counts[person])


def test_augmentation_of_no_strength_changes_nothing_and_of_some_keeps_the_scale() -> None:
    generator = torch.Generator().manual_seed(0)
    x = standard(torch.nn.functional.avg_pool2d(torch.randn(4, 3, 40, 40, generator=generator), 3, 1, 1))
    torch.testing.assert_close(vary(x, STILL, generator), x, atol=2e-3, rtol=0)
    moved = vary(x, Strength(occlude=0), generator)
    assert moved.shape == x.shape
    torch.testing.assert_close(moved.mean((1, 2, 3)), torch.zeros(4), atol=1e-4, rtol=0)
    torch.testing.assert_close(moved.std((1, 2, 3)), torch.ones(4), atol=1e-2, rtol=0)
    again = vary(x, Strength(occlude=0), torch.Generator().manual_seed(5))
    torch.testing.assert_close(again, vary(x, Strength(occlude=0), torch.Generator().manual_seed(5)), atol=0, rtol=0)


def test_augmentation_never_mirrors() -> None:
    """Which side the heart lies on is part of who somebody is."""
    x = standard(torch.linspace(-1, 1, 32).expand(1, 1, 32, 32).clone())
    generator = torch.Generator().manual_seed(1)
    slopes = [vary(x, Strength(contrast=0, occlude=0), generator)[0, 0] for _ in range(50)]
    assert all(float(one[:, 16:].mean() - one[:, :16].mean()) > 0 for one in slopes)


def test_whitening_leaves_unit_covariance_within_people() -> None:
    generator = np.random.default_rng(0)
    who = np.repeat(np.arange(400), 3)
    mix = generator.normal(size=(6, 6))
    x = generator.normal(size=(400, 6))[who] + generator.normal(size=(1200, 6)) @ mix
    mean, matrix = whitening(x, [str(one) for one in who], 6, 1e-9)
    y = (x - mean) @ matrix
    apart = y - np.stack([y[who == one].mean(0) for one in range(400)])[who]
    np.testing.assert_allclose(apart.T @ apart / 800, np.eye(6), atol=1e-4)


def test_takes_of_one_scan_are_no_identity_either() -> None:
    """What only other takes show is shrunk as well; the rest stays as it was."""
    generator = np.random.default_rng(0)
    who = np.repeat(np.arange(300), 2)
    x = generator.normal(size=(300, 4))[who] + 0.1 * generator.normal(size=(600, 4))
    names = [str(one) for one in who]
    plain = whitening(x, names, 4, 1e-9)[1]
    moved = [x + 2 * generator.normal(size=(600, 1)) * np.eye(4)[0] for _ in range(5)]
    taken = whitening(x, names, 4, 1e-9, moved)[1]
    before, after = (np.linalg.norm(matrix, axis=1) for matrix in (plain, taken))
    assert after[0] < before[0] / 5
    np.testing.assert_allclose(after[1:], before[1:], rtol=0.05)


def test_whitening_of_people_with_one_scan_each_is_refused() -> None:
    with pytest.raises(ValueError, match="two scans"):
        whitening(np.eye(4), list("abcd"), 3, 0.1)


def test_ridge_in_dual_form_is_ridge() -> None:
    generator = np.random.default_rng(1)
    x, t = generator.normal(size=(12, 5)), generator.normal(size=(12, 2))
    mean, matrix = ridge(x, t, 0.2)
    c = x - x.mean(0)
    weight = 0.2 * np.trace(c @ c.T) / 12
    np.testing.assert_allclose(matrix, np.linalg.solve(c.T @ c + weight * np.eye(5), c.T @ t), atol=1e-5)
    np.testing.assert_allclose(mean, x.mean(0), atol=1e-6)


@given(people=st.integers(2, 80), share=st.floats(0.1, 0.9))
@settings(deadline=None, max_examples=30)
def test_sides_share_nobody_and_do_not_move_when_people_join(people: int, share: float) -> None:
    def cohort(count: int) -> Cohort:
        return Cohort(
            "c", tuple(Scan(f"{p}", f"P{p}", "0", lambda: np.zeros((2, 2), np.float32)) for p in range(count))
        )

    ours, others = (set(one.subjects) for one in sides(cohort(people), share))
    assert not ours & others
    assert len(ours) + len(others) == people
    assert ours <= set(sides(cohort(people + 20), share)[0].subjects)


def test_lists_name_people_by_hash_and_cohorts_by_a_plain_name() -> None:
    cohort = Cohort("RIDB", (Scan("a", "P1", "0", lambda: np.zeros((2, 2), np.float32)),))
    (part,), files = lists_of("x-1", [cohort])
    assert (part.cohort, part.people, part.synthetic) == ("ridb", 1, False)
    assert files[part.people_file].decode().split() == [people_hash("RIDB", "P1")]


class Linear(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = torch.nn.Linear(64, 4)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(self.out(self.dropout(x.flatten(1))), dim=1)


def linear() -> Linear:
    torch.manual_seed(7)
    return Linear()


PEOPLE = torch.arange(10).repeat_interleave(3)
SCANS = torch.randn(30, 1, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def test_an_interrupted_run_ends_as_one_that_was_not(tmp_path: Path) -> None:
    plan = Plan(12, people=6, views=2, save_every=5)

    def stop(_what: str, done: int, _total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    def vary_(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return vary(x, Strength(), generator)

    whole = fit(linear(), SCANS, PEOPLE, plan, vary_, QUIET)
    kept = tmp_path / "run.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fit(linear(), SCANS, PEOPLE, plan, vary_, stop, kept)
    steps: list[int] = []
    resumed = fit(linear(), SCANS, PEOPLE, plan, vary_, lambda _w, done, _t: steps.append(done), kept)
    assert steps[0] == 6
    for name, one in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], one, atol=0, rtol=0)
    with pytest.raises(ValueError, match="another plan"):
        fit(linear(), SCANS, PEOPLE, replace(plan, seed=1), vary_, QUIET, kept)


def test_contrast_brings_one_persons_scans_together() -> None:
    generator = torch.Generator().manual_seed(3)
    person = torch.randn(10, 64, generator=generator).repeat_interleave(3, 0)
    scans = (person + 1.5 * torch.randn(30, 64, generator=generator)).reshape(30, 1, 1, 8, 8)
    fitted = fit(linear(), scans, PEOPLE, Plan(60, people=10, views=3), lambda x, _g: x, QUIET)
    with torch.inference_mode():
        before, after = (net(scans) for net in (linear().eval(), fitted))
    mates = (PEOPLE[:, None] == PEOPLE[None]).fill_diagonal_(fill_value=False)
    others = PEOPLE[:, None] != PEOPLE[None]

    def gap(z: torch.Tensor) -> float:
        return float((z @ z.T)[mates].mean() - (z @ z.T)[others].mean())

    assert gap(after) > gap(before) + 0.3


def test_one_person_is_no_contrast() -> None:
    with pytest.raises(ValueError, match="two people"):
        fit(linear(), SCANS[:3], torch.zeros(3, dtype=torch.int64), Plan(1), lambda x, _g: x, QUIET)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Recipe:
    recipe = replace(chest_audit.RECIPE, side=32, width=4, learned=8, whitened=12, plan=Plan(4, people=6, views=2))
    monkeypatch.setattr(chest_audit, "RECIPE", recipe)
    return recipe


def test_a_card_is_trained_judged_written_and_opens(tmp_path: Path, small: Recipe) -> None:
    cohort = synthetic_chest(24, 2, 5)
    folder = CardFolder.flat(tmp_path)
    run = training.train("chest-audit-1", [cohort], folder, QUIET, keep=tmp_path)
    ours, others = sides(cohort, training.SHARE)
    card, _ = find_card("chest-audit-1", [folder])
    assert run.card == card
    assert run.held_out == len(others.subjects)
    assert read_people(card, folder) == {people_hash(cohort.name, one) for one in ours.subjects}
    assert card.metrics[f"{cohort.name} (synthetic): people"] == len(others.subjects)
    assert 0 <= float(card.metrics[f"{cohort.name} (synthetic): rank1"]) <= 1
    embedder = open_embedder("chest-audit-1", [folder])
    assert embedder.embed(cohort.scans[0].load()).shape == (20,)
    first = load_file(tmp_path / "chest-audit-1.safetensors")
    again = CardFolder.flat(tmp_path / "again")
    training.train("chest-audit-1", [cohort], again, QUIET)
    second = load_file(tmp_path / "again" / "chest-audit-1.safetensors")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_training_goes_on_from_a_card_and_keeps_whom_it_knows(tmp_path: Path, small: Recipe) -> None:
    """Without steps the network stays as it is; the people of both are on the lists; nobody known is judged."""
    first, second = synthetic_chest(24, 2, 5), synthetic_chest(24, 2, 6)
    one, two = CardFolder.flat(tmp_path / "one"), CardFolder.flat(tmp_path / "two")
    training.train("chest-audit-1", [first], one, QUIET)
    training.train("chest-audit-1", [second], two, QUIET, steps=0, start="chest-audit-1", folders=[one])
    before, after = (load_file(folder.weights / "chest-audit-1.safetensors") for folder in (one, two))
    assert all(torch.equal(before[name], after[name]) for name in before if name.startswith("network."))
    assert not torch.equal(before["gradients.matrix"], after["gradients.matrix"])
    card, _ = find_card("chest-audit-1", [two])
    ours = {people_hash(c.name, s) for c in (first, second) for s in sides(c, training.SHARE)[0].subjects}
    assert read_people(card, two) == ours
    assert "0 steps, seed 0, from chest-audit-1 (trained here" in card.source
    open_embedder("chest-audit-1", [two])
    with pytest.raises(UsageError, match="are trained on"):
        training.train(
            "chest-audit-1", [second], two, QUIET, steps=1, start="chest-audit-1", folders=[one], judged=[first]
        )


def test_a_start_of_another_kind_or_none_is_said(tmp_path: Path, small: Recipe) -> None:
    cohort, folder = synthetic_chest(24, 2, 5), CardFolder.flat(tmp_path)
    for start, steps, says in (
        ("", 0, "name a card to start from"),
        ("fundus-audit-1", 0, "kind own_eyes"),
        ("chest-audit-1", 0, "another size"),
        ("grey-similarity", 0, "no weights"),
        ("nobody", 0, "no card is called"),
    ):
        with pytest.raises(UsageError, match=says):
            training.train("chest-audit-1", [cohort], folder, QUIET, steps=steps, start=start)


@pytest.mark.parametrize(
    ("name", "share", "says"), [("chest-audit-9", 0.6, "no training makes"), ("chest-audit-1", 1.0, "share")]
)
def test_what_cannot_be_trained_is_said(tmp_path: Path, name: str, share: float, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        training.train(name, [], CardFolder.flat(tmp_path), QUIET, share=share)


@pytest.mark.parametrize("text", ["nih64", "nobody=/tmp", "nih64=/nowhere/at/all"])
def test_a_cohort_that_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        training.read_cohort(text)


def test_the_command_trains_on_a_named_cohort(
    tmp_path: Path, small: Recipe, capsys: pytest.CaptureFixture[str]
) -> None:
    train(
        "chest-audit-1",
        ["synthetic-chest=24,2,5"],
        tmp_path,
        judge=["synthetic-chest=6,2,6"],
        steps=2,
    )
    card, _ = find_card("chest-audit-1", [CardFolder.flat(tmp_path)])
    assert card.source.endswith("2 steps, seed 0")
    assert card.metrics["synthetic-chest-6 (synthetic): people"] == 6
    assert "chest-audit-1.yaml: judged on" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["synthetic-chest=24", "synthetic-chest=a,2,3", "synthetic-chest=0,2,3"])
def test_synthetic_people_are_counted_in_whole_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="100,2,7"):
        training.read_cohort(text)


def test_people_without_a_second_scan_cannot_be_trained_on(tmp_path: Path, small: Recipe) -> None:
    with pytest.raises(UsageError, match="two scans"):
        training.train("chest-audit-1", [synthetic_chest(12, 1, 5)], CardFolder.flat(tmp_path), QUIET)


def test_every_entry_names_its_module() -> None:
    for name, module in ENTRIES.items():
        source = Path(__file__).parents[2] / f"{module.replace('.', '/')}.py"
        assert "def train(" in source.read_text(), name
