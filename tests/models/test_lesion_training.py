"""Training of the lesion anonymiser: stages that resume and stop, people apart, memorisation that is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from models.cards import find_card, read_people, weights_of
from models.cards.folder import CardFolder
from models.cohorts import Cohort, Scan
from models.lesion_vae import LesionVae, vae_loss
from models.train.lesion import NAME, train, train_lesion
from models.train.lesion_losses import conditions_of, measure_latents
from models.train.lesion_material import common_sequences, gathered, split_visits, visits_of
from models.train.stages import Stage, run_stage
from models.train.trained import Options
from tests.lesion_studies import LOOK, PLAN, cohort

QUICK = replace(PLAN, vae_steps=8, diffusion_steps=8, student_steps=4, pairs=8, evaluate_every=4)


def quiet(_what: str, _done: int, _total: int) -> None:
    return


class Killed(RuntimeError):
    pass


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def line(steps: int = 60, patience: int = 100, held: float | None = None) -> tuple[nn.Module, Stage]:
    """A network that learns y = 3 x, and its stage; `held` is a constant held-out loss."""
    x = torch.linspace(-1, 1, 40)[:, None]
    network = nn.Linear(1, 1)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)

    def loss(net: nn.Module, rows: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        noise = 0.01 * torch.randn((len(rows), 1), generator=generator)
        return ((net(x[rows]) - 3 * x[rows] - noise) ** 2).mean()

    def held_loss(net: nn.Module) -> float:
        return held if held is not None else float(((net(x) - 3 * x) ** 2).mean())

    stage = Stage("line", steps, torch.arange(40), loss, held_loss, 8, 0.1, 0.5, 10, patience, 4)
    return network, stage


def test_a_stage_that_was_killed_ends_at_the_same_weights(tmp_path: Path) -> None:
    whole, stage = line()
    loss = run_stage(whole, stage, None, quiet)
    assert whole(torch.ones(1, 1)).item() == pytest.approx(3, abs=0.1)
    begun, stage = line()

    def kill(_what: str, done: int, _total: int) -> None:
        if done == 35:
            raise Killed

    with pytest.raises(Killed):
        run_stage(begun, stage, tmp_path / "c", kill)
    resumed, stage = line()
    steps = []
    assert run_stage(resumed, stage, tmp_path / "c", lambda _w, done, _t: steps.append(done)) == loss
    assert steps[0] == 31
    assert torch.equal(resumed.weight, whole.weight)
    finished, stage = line()
    run_stage(finished, stage, tmp_path / "c", lambda *_: pytest.fail("nothing is left to do"))
    assert torch.equal(finished.weight, whole.weight)
    other, stage = line(steps=80)
    with pytest.raises(ValueError, match="another plan"):
        run_stage(other, stage, tmp_path / "c", quiet)


@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_stage_computes_in_bfloat16_where_it_says_so_and_judges_in_full(bfloat16: bool) -> None:
    kinds: dict[str, set[torch.dtype]] = {"learnt": set(), "judged": set()}
    network, stage = line(steps=20)

    def loss(net: nn.Module, rows: Tensor, generator: torch.Generator, epoch: int) -> Tensor:
        kinds["learnt"].add(net(torch.ones(1, 1)).dtype)
        return stage.loss(net, rows, generator, epoch)

    def held_loss(net: nn.Module) -> float:
        kinds["judged"].add(net(torch.ones(1, 1)).dtype)
        return stage.held_loss(net)

    run_stage(network, replace(stage, loss=loss, held_loss=held_loss, bfloat16=bfloat16), None, quiet)
    assert kinds == {"learnt": {torch.bfloat16 if bfloat16 else torch.float32}, "judged": {torch.float32}}
    assert network.weight.dtype == torch.float32


def test_a_stage_stops_when_held_out_people_gain_nothing_and_keeps_the_best() -> None:
    network, stage = line(steps=1000, patience=3, held=1.0)
    steps = []
    run_stage(network, stage, None, lambda _w, done, _t: steps.append(done))
    assert steps[-1] == 40  # best at 10, then three evaluations without gain
    assert 0 < network.weight.item() < 3


def test_a_whole_training_that_was_killed_ends_at_the_same_card(tmp_path: Path) -> None:
    people = cohort(6)
    whole = train_lesion("tiny-lesion-1", QUICK, [people], Options(seed=2), quiet)
    for stage in ("vae", "diffusion", "student"):

        def kill(what: str, done: int, _total: int, name: str = stage) -> None:
            if what.startswith(name) and done == 3:
                raise Killed

        with pytest.raises(Killed):
            train_lesion("tiny-lesion-1", QUICK, [people], Options(seed=2, checkpoint=tmp_path / "c"), kill)
    resumed = train_lesion("tiny-lesion-1", QUICK, [people], Options(seed=2, checkpoint=tmp_path / "c"), quiet)
    assert resumed.card == whole.card
    assert resumed.tensors.keys() == whole.tensors.keys()
    for name, one in whole.tensors.items():
        assert torch.equal(one, resumed.tensors[name]), name


def test_the_command_writes_weights_card_and_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.learn import training

    monkeypatch.setattr("models.train.lesion.LesionPlan", lambda: QUICK)
    people = cohort(12)
    run = training.train(NAME, [people], CardFolder.flat(tmp_path), quiet, steps=2)
    card, folder = find_card(NAME, (CardFolder.flat(tmp_path),))
    assert card == run.card
    assert card.role == "anonymiser"
    assert weights_of(card, folder) == tmp_path / f"{NAME}.safetensors"
    assert len(read_people(card, folder)) == card.trained_on[0].people
    assert {"authenticity", "nearest training image, ratio to held out", "membership AUC, denoiser"} <= set(
        card.metrics
    )
    assert str(card.metrics["memorisation is judged with"]).startswith("flow, 2")
    from safetensors.torch import load_file

    from models.lesion_anonymiser import domain_of, parts_of

    tensors = load_file(tmp_path / f"{NAME}.safetensors")
    assert parts_of(card, tensors).student is not None
    assert domain_of(card, tensors).limits


def test_without_a_student_the_teacher_is_judged() -> None:
    made = train_lesion("tiny", replace(QUICK, student_steps=0), [cohort(5)], Options(), quiet)
    assert not any(name.startswith("student") for name in made.tensors)
    assert made.card.parameters["sampler"] == "ddim"
    assert str(made.card.metrics["memorisation is judged with"]).startswith("ddim")


def test_people_are_on_one_side_and_sequences_are_what_all_have() -> None:
    visits = visits_of([cohort(40)])
    fitted, held = split_visits(visits, 0.85)
    assert not {one.person for one in fitted} & {one.person for one in held}
    assert len(fitted) + len(held) == 40
    assert 1 <= len(held) <= 14
    assert split_visits(visits[:20], 0.85)[1] == [one for one in held if one in visits[:20]]  # never another side
    assert common_sequences(visits) == ("T1", "FLAIR")
    small = cohort(2)
    less = Cohort("other", tuple(scan for scan in small if scan.attributes["sequence"] == "FLAIR"))
    assert common_sequences(visits_of([small, less])) == ("FLAIR",)
    with pytest.raises(ValueError, match="two people"):
        split_visits(visits[:1], 0.85)
    with pytest.raises(ValueError, match="no sequence"):
        common_sequences(visits_of([Cohort("none", tuple(replace(s, attributes={}) for s in small))]))


def test_a_study_without_a_mask_is_not_trained_on_unless_it_is_healthy() -> None:
    def changed(scan: Scan) -> Scan:
        if scan.subject == "P01":
            return replace(scan, masks={})
        return replace(scan, masks={}, attributes={"sequence": scan.attributes["sequence"], "diagnosis": "healthy"})

    people = Cohort("mixed", tuple(scan if scan.subject == "P00" else changed(scan) for scan in cohort(3)))
    material = gathered(visits_of([people]), tuple(LOOK), ("HGG", "LGG", "healthy"), 24, (10.0, 10.0, 10.0), quiet)
    assert material.who.unique().tolist() == [0, 2]
    assert not material.mask[material.who == 2].any()
    assert material.mask[material.who == 0].any()
    assert set(material.kind[material.who == 2].tolist()) == {2}


def test_slices_know_the_slice_below_of_their_own_study() -> None:
    material = gathered(visits_of([cohort(3)]), tuple(LOOK), ("HGG", "LGG"), 24, (10.0, 10.0, 10.0), quiet)
    lowest = material.below < 0
    assert int(lowest.sum()) == 3
    rows = torch.nonzero(~lowest).flatten()
    assert torch.equal(material.study[material.below[rows]], material.study[rows])
    gained = material.depth[rows] - material.depth[material.below[rows]]
    np.testing.assert_allclose(gained[material.depth[rows] < 1], 10 / 200, atol=1e-6)
    z = torch.randn(len(material), 4, 3, 3)
    neighbour = conditions_of(material, z, rows, torch.device("cpu")).neighbour
    assert neighbour is not None
    assert torch.equal(neighbour, z[rows - 1])


def test_latents_are_scaled_to_unit_spread() -> None:
    vae = LesionVae(replace(PLAN.vae, sequences=2))
    latents = 5 * torch.randn(50, 4, 3, 3) + torch.arange(4.0)[None, :, None, None]
    measure_latents(vae, latents)
    scaled = vae.scaled(latents)
    torch.testing.assert_close(scaled.mean((0, 2, 3)), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled.std((0, 2, 3)), torch.ones(4))


def test_a_sequence_that_the_encoder_does_not_see_is_not_asked_of_the_lesion() -> None:
    vae = LesionVae(replace(PLAN.vae, sequences=2)).eval()
    x, mask = torch.rand(2, 2, 24, 24), torch.zeros(2, 1, 24, 24)
    mask[..., 8:16, 8:16] = 1
    other = x.clone()
    other[:, 1:, 8:16, 8:16] = 0.123

    def losses(images: Tensor, seen: Tensor | None) -> float:
        generator = torch.Generator().manual_seed(0)
        return float(vae_loss(vae, images, mask, generator, epoch=0, seen=seen)["total"].detach())

    hidden = torch.tensor([[1.0, 0.0]]).expand(2, 2)
    assert losses(x, hidden) == losses(other, hidden)
    assert losses(x, None) != losses(other, None)
    assert losses(x, torch.ones(2, 2)) == pytest.approx(losses(x, None))


def test_the_entry_takes_steps_for_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.train.lesion.LesionPlan", lambda: QUICK)
    said = {}
    made = train(
        [cohort(4)], Options(steps=1), lambda what, done, total: said.update({what.split(":")[0]: (done, total)})
    )
    assert {said[name] for name in ("vae", "diffusion", "student")} == {(1, 1)}
    assert made.card.name == NAME
