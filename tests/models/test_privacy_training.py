"""Stages and trainings under differential privacy: kills change nothing, and the card says epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
import yaml
from opacus.accountants import RDPAccountant
from torch import Tensor, nn

from gateway.cli.train import train as train_command
from gateway.errors import UsageError
from gateway.learn import training
from models.cards import CardFolder, find_card
from models.train import ENTRIES, PRIVATE
from models.train.lesion import train_lesion
from models.train.privacy import PatientMechanism, PatientSteps, noise_multiplier
from models.train.stages import Stage, run_stage
from models.train.trained import Options, Privacy, Trained
from tests.lesion_studies import PLAN, cohort

ASKED = Privacy(8.0, 1e-3, 0.7, key=b"a key of a test")
QUICK = replace(PLAN, vae_steps=4, diffusion_steps=4, student_steps=3, pairs=8, evaluate_every=2, batch=3)
X = torch.linspace(-3, 3, 60)[:, None]
searched = cache(noise_multiplier)  # a second of opacus each time, and the same few questions


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    monkeypatch.setattr("models.train.privacy.noise_multiplier", searched)


def quiet(_what: str, _done: int, _total: int) -> None:
    return


class Killed(RuntimeError):
    pass


def line(rows: Tensor, generator: torch.Generator, _epoch: int, net: nn.Module) -> Tensor:
    noise = 0.1 * torch.randn((len(rows), 1), generator=generator)
    return ((net(X[rows]) - 3 * X[rows] - noise) ** 2).mean()


def private_line(steps: int = 40, key: bytes = b"k") -> tuple[nn.Module, Stage, PatientMechanism]:
    network = nn.Linear(1, 1)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    mechanism = PatientMechanism(replace(ASKED, key=key), torch.arange(20), 10, steps)
    stage = Stage(
        "line",
        steps,
        torch.arange(60),
        lambda net, rows, generator, epoch: line(rows, generator, epoch, net),
        lambda net: float(((net(X) - 3 * X) ** 2).mean()),
        8,
        0.1,
        0.5,
        10,
        100,
        4,
        PatientSteps(mechanism, torch.arange(60), torch.arange(60) % 20),
    )
    return network, stage, mechanism


def test_a_private_stage_that_was_killed_goes_on_with_its_key_and_its_account(tmp_path: Path) -> None:
    whole, stage, mechanism = private_line()
    said: list[str] = []
    loss = run_stage(whole, stage, None, lambda what, *_: said.append(what))
    assert set(said) == {"line: private"}  # no loss of people in a log
    assert whole(torch.ones(1, 1)).item() > 1  # it learns through the noise

    def kill(_what: str, done: int, _total: int) -> None:
        if done == 25:
            raise Killed

    begun, stage, _ = private_line()
    with pytest.raises(Killed):
        run_stage(begun, stage, tmp_path / "c", kill)
    resumed, stage, account = private_line(key=b"another key, as a fresh process has")
    assert run_stage(resumed, stage, tmp_path / "c", quiet) == loss
    assert torch.equal(resumed.weight, whole.weight)
    assert account.accountant.history == mechanism.accountant.history == [(mechanism.sigma, 0.5, 40)]
    assert account.draws.key == b"k"
    differently, stage, _ = private_line(key=b"j")
    run_stage(differently, stage, None, quiet)
    assert not torch.equal(differently.weight, whole.weight)
    finished, stage, account = private_line()
    run_stage(finished, stage, tmp_path / "c", lambda *_: pytest.fail("nothing is left to do"))
    assert account.taken == 40
    other, stage, _ = private_line(steps=50)
    with pytest.raises(ValueError, match="another plan"):
        run_stage(other, stage, tmp_path / "c", quiet)
    _, stage, account = private_line(key=b"of another run")
    account.spend()
    with pytest.raises(ValueError, match="two private runs"):
        run_stage(nn.Linear(1, 1), stage, tmp_path / "c", quiet)


def trained(
    checkpoint: Path | None = None, tick: Callable[[str, int, int], None] = quiet, **changes: object
) -> Trained:
    asked = replace(ASKED, epsilon=20.0, **changes)
    return train_lesion(
        "tiny-lesion-1", QUICK, [cohort(8)], Options(seed=2, checkpoint=checkpoint, privacy=asked), tick
    )


def test_a_private_lesion_training_has_epsilon_on_its_card_and_survives_kills(tmp_path: Path) -> None:
    whole = trained()
    said = whole.card.privacy
    assert said is not None
    fitted, held = whole.card.metrics["people trained on"], whole.card.metrics["people held out"]
    assert (said.people, said.people_unprotected, said.steps, said.steps_taken) == (fitted, held, 11, 11)
    assert said.sampling_rate == 3 / float(fitted)
    own = RDPAccountant()
    own.history = [(said.noise_multiplier, said.sampling_rate, 11)]
    assert said.epsilon == own.get_epsilon(1e-3) <= 20
    assert "memorisation" in said.leaves_out
    for stage in ("vae", "diffusion", "student"):

        def kill(what: str, done: int, _total: int, name: str = stage) -> None:
            if what.startswith(name) and done == 3:
                raise Killed

        with pytest.raises(Killed):
            trained(tmp_path / "c", kill)
    resumed = trained(tmp_path / "c")
    assert resumed.card == whole.card
    for name, one in whole.tensors.items():
        assert torch.equal(one, resumed.tensors[name]), name
    Path(f"{tmp_path / 'c'}.vae").unlink()
    with pytest.raises(ValueError, match="two private runs"):
        trained(tmp_path / "c", key=b"another")


def test_the_command_says_epsilon_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("models.train.lesion.LesionPlan", lambda: QUICK)
    monkeypatch.setattr(training, "read_cohort", lambda _text: cohort(12))
    assert train_command("lesion-brain-1", ["x=y"], tmp_path, steps=2, dp_epsilon=30.0, dp_delta=0.01) == 0
    said = capsys.readouterr().out
    assert "patients: epsilon" in said
    assert "remove them" in said
    card, _ = find_card("lesion-brain-1", (CardFolder.flat(tmp_path),))
    assert card.privacy is not None
    assert 29 < card.privacy.epsilon <= 30
    assert card.privacy.steps == 6
    assert yaml.safe_load((tmp_path / "lesion-brain-1.yaml").read_text())["privacy"]["unit"] == "patient"
    with pytest.raises(UsageError, match="delta must be below"):
        train_command("lesion-brain-1", ["x=y"], tmp_path, steps=2, dp_epsilon=30.0, dp_delta=0.5)
    with pytest.raises(UsageError, match="go with --dp-epsilon"):
        train_command("lesion-brain-1", ["x=y"], tmp_path, dp_clip=1.0)
    with pytest.raises(UsageError, match="above 0"):
        train_command("lesion-brain-1", ["x=y"], tmp_path, dp_epsilon=-1.0)


@pytest.mark.parametrize("name", sorted(set(ENTRIES) - PRIVATE))
def test_no_epsilon_is_claimed_where_people_are_compared(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no epsilon can be claimed"):
        training.train(name, [cohort(4)], CardFolder.flat(tmp_path), quiet, privacy=ASKED)
    assert not list(tmp_path.iterdir())
