"""Training of the adjustable anonymiser: people apart, stages that resume and are not done twice, cards that open."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from models.cards import CardFolder, find_card, read_people
from models.cohorts import Cohort, Scan
from models.id_blocking import Blocking
from models.mdl_decoupling import evidence
from models.mdl_decoupling.parameters import codec_of
from models.reid_encoder.parameters import reid_of
from models.resynthesis import deidentified, parts_of
from models.train import ENTRIES, entry_of
from models.train.decoupling import at_rows, codec_stage, semantics_stage, train_decoupling
from models.train.onestep import student_stage, teacher_pairs, train_onestep
from models.train.reid import rank1, reid_stage, train_reid
from models.train.reid_material import apart, findings_of, gathered, known_findings, pictures_of
from models.train.reid_plan import AdjustablePlan, Line
from models.train.resynthesis import train_resynthesis, trained_parts
from models.train.resynthesis_stages import Joint, joint_loss, joint_stage, masks_at, similarity_maps, vae_stage
from models.train.trained import Options
from tests.adjustable_films import PLAN, SIDE, cohort, parts, stable_folder

NAMES = ("reid-chest-1", "decoupling-chest-1", "resynthesis-chest-1", "onestep-chest-1")
STAGES = ("reid", "semantics", "codec", "vae", "joint", "student")


def quiet(_what: str, _done: int, _total: int) -> None:
    return


class Killed(RuntimeError):
    pass


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def line(people: int = 12, plan: AdjustablePlan = PLAN, **options: int) -> Line:
    return Line.of(plan, [cohort(people)], Options(**options), quiet)  # type: ignore[arg-type]


def scan_of(finding: str | None) -> Scan:
    attributes = {} if finding is None else {"finding": finding}
    return Scan("s", "P", "0", lambda: np.zeros((SIDE, SIDE), np.float32), attributes=attributes)


def test_findings_are_read_in_every_spelling_and_never_guessed() -> None:
    assert findings_of(scan_of(None)) is None
    for nothing in ("No Finding", "none", ""):
        assert findings_of(scan_of(nothing)) == frozenset()
    assert findings_of(scan_of("Mass|Effusion; nodule")) == {"mass", "effusion", "nodule"}
    assert known_findings([cohort(15)]) == ("effusion", "mass")  # of 10 scans with, 20 without
    assert known_findings([cohort(6)]) == ()  # of 4 scans there is nothing to learn
    unknown = gathered([Cohort("u", (scan_of(None),))], ("effusion",), SIDE, quiet)
    assert math.isnan(float(unknown.findings[0, 0]))


def test_people_are_on_one_side() -> None:
    ours, others = apart([cohort(40), cohort(9, name="other")], 0.85)
    names = [{f"{part.name}/{subject}" for part in side for subject in part.subjects} for side in (ours, others)]
    assert not names[0] & names[1]
    assert len(names[0] | names[1]) == 49
    assert 1 <= len(names[1]) <= 20
    assert all(len(side) for side in apart([cohort(2)], 0.85))
    with pytest.raises(ValueError, match="two people"):
        apart([cohort(1)], 0.85)
    with pytest.raises(ValueError, match="two scans"):
        Line.of(PLAN, [cohort(6, 1)], Options(), quiet)


def test_two_pictures_of_a_person_differ_where_there_are_two() -> None:
    material = gathered([cohort(5, 3), cohort(3, 1, name="single")], (), SIDE, quiet)
    generator = torch.Generator().manual_seed(1)
    rows = material.two_each(torch.unique(material.who), generator)
    first, second = rows[0::2], rows[1::2]
    assert torch.equal(material.who[first], torch.unique(material.who))
    assert torch.equal(material.who[first], material.who[second])
    several = torch.isin(material.who[first], material.mated())
    assert bool((first != second)[several].all())
    assert bool((first == second)[~several].all())
    assert len(material.mated()) == 5
    own, mates = material.with_mates(torch.arange(len(material)), generator).chunk(2)
    assert torch.equal(material.who[own], material.who[mates])
    assert bool((own != mates)[torch.isin(material.who, material.mated())].all())


def test_volumes_give_slices_of_their_middle_and_wrong_pixels_are_refused() -> None:
    volume = np.linspace(0, 1, 40, dtype=np.float32)[:, None, None] * np.ones((1, 20, 24), np.float32)
    found = pictures_of(Scan("v", "P", "0", lambda: volume), SIDE)
    assert found.shape == (6, 1, SIDE, SIDE)
    assert found[0].mean().item() == pytest.approx(10 / 39)
    assert found[-1].mean().item() == pytest.approx(29 / 39)
    assert bool((found.mean((1, 2, 3)).diff() > 0).all())
    for wrong in (np.full((4, 4), 2, np.float32), np.full((4, 4), np.nan, np.float32), np.zeros(4, np.float32)):
        with pytest.raises(ValueError, match="0 to 1"):
            pictures_of(Scan("w", "P", "0", lambda wrong=wrong: wrong), SIDE)


def test_rank_one_counts_who_has_a_mate() -> None:
    z = torch.nn.functional.normalize(torch.tensor([[1.0, 0], [1, 0.1], [0, 1], [0.9, 0.2], [0.1, 1]]), dim=1)
    who = torch.tensor([0, 0, 1, 2, 1])
    assert rank1(z, who) == {"rank-1, held out": 1.0, "queries": 4}
    assert rank1(z, torch.tensor([0, 1, 2, 0, 1]))["rank-1, held out"] == 0.0
    assert "nobody" in str(rank1(z, torch.arange(5))["rank-1, held out"])


def test_a_training_that_was_killed_again_and_again_ends_at_the_same_card(tmp_path: Path) -> None:
    people = cohort(6)
    whole = train_onestep("tiny-1", PLAN, [people], Options(seed=2), quiet)
    for stage in ("codec", "joint", "student"):

        def kill(what: str, done: int, _total: int, name: str = stage) -> None:
            if what.startswith(f"{name}:") and done == 3:
                raise Killed

        with pytest.raises(Killed):
            train_onestep("tiny-1", PLAN, [people], Options(seed=2, checkpoint=tmp_path / "c"), kill)
    resumed = train_onestep("tiny-1", PLAN, [people], Options(seed=2, checkpoint=tmp_path / "c"), quiet)
    assert resumed.card == whole.card
    assert resumed.tensors.keys() == whole.tensors.keys()
    for name, one in whole.tensors.items():
        assert torch.equal(one, resumed.tensors[name]), name
    assert whole.card.parameters["steps"] == 1
    assert {"authenticity", "membership AUC, denoiser", "share of bits that is identity"} <= set(whole.card.metrics)
    assert str(whole.card.metrics["memorisation is judged with"]).startswith("flow, 1 steps")


def test_what_an_earlier_entry_finished_is_taken_over_and_of_other_people_never(tmp_path: Path) -> None:
    people, options = cohort(10), Options(checkpoint=tmp_path / "c")
    reid = train_reid("r", PLAN, [people], options, quiet)
    codec = train_decoupling("d", PLAN, [people], options, quiet)
    said: list[str] = []
    made = train_resynthesis("a", PLAN, [people], options, lambda what, _d, _t: said.append(what.split(":")[0]))
    assert set(said) & set(STAGES) == {"vae", "joint"}
    for name, one in reid.tensors.items():
        assert torch.equal(made.tensors[name], one), name
    for name, one in codec.tensors.items():
        if name.startswith("foundation."):
            assert torch.equal(made.tensors[name], one), name
    said.clear()
    train_reid("r", PLAN, [cohort(11)], options, lambda what, _d, _t: said.append(what.split(":")[0]))
    assert "reid" in said  # those held out are others
    said.clear()
    train_reid(
        "r", replace(PLAN, levels=(0.2, 0.9)), [people], options, lambda what, _d, _t: said.append(what.split(":")[0])
    )
    assert "reid" in said  # another plan, another line


def test_the_command_writes_cards_that_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.learn import training

    for name in NAMES:
        monkeypatch.setattr(f"{ENTRIES[name]}.AdjustablePlan", lambda: PLAN)
        training.train(name, [cohort(16)], CardFolder.flat(tmp_path), quiet, steps=1, keep=tmp_path)
        card, folder = find_card(name, (CardFolder.flat(tmp_path),))
        assert card.role == "anonymiser"
        assert len(read_people(card, folder)) == card.trained_on[0].people
    opened = {name: (find_card(name, (folder,))[0], load_file(tmp_path / f"{name}.safetensors")) for name in NAMES}
    assert reid_of(*opened["reid-chest-1"]).config == PLAN.reid
    foundation, decoupler = codec_of(*opened["decoupling-chest-1"])
    assert decoupler.config == PLAN.codec
    x = torch.rand(1, 1, 30, 30)
    assert decoupler.semantics(foundation(x)).shape == (1, 64, 8, 8)
    for name in NAMES[2:]:
        made = deidentified(parts_of(*opened[name]), x, Blocking(0.4), torch.randn(1, 4, 8, 8))
        assert made.picture.shape == x.shape


def test_a_trivial_partition_is_not_shipped() -> None:
    with pytest.raises(ValueError, match="the mask takes"):
        train_decoupling("d", replace(PLAN, density=(0.999, 1.0)), [cohort(8)], Options(), quiet)


def test_an_opponent_that_reads_better_is_no_reason_to_keep_earlier_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    one, stages = line(plan=replace(PLAN, confuse=60.0)), {}

    def run(_line: Line, name: str, network: torch.nn.Module, *told: object, **_more: object) -> None:
        stages[name] = (network, told[-1])

    monkeypatch.setattr(Line, "run", run)
    reid, foundation = reid_stage(one), semantics_stage(one)
    decoupler = codec_stage(one, foundation)
    joint_stage(one, reid, foundation, decoupler, vae_stage(one))
    with torch.no_grad():
        for name in ("codec", "joint"):
            network, held = stages[name]
            before = held(network)
            for weight in decoupler.leak.parameters():
                weight.normal_()
            assert held(network) == before  # what the opponent says is no part of it
            for weight in decoupler.identity.parameters():
                weight.normal_()
            assert held(network) != before


def test_a_training_counts_prototypes_of_the_semantics_that_it_ends_with() -> None:
    made = line(12)
    whole = trained_parts(made)
    assert whole.codebook is not None
    x = made.fitted.pictures(torch.arange(len(made.fitted)), made.where)
    semantics = whole.decoupler.semantics(whole.foundation(x))
    seen = evidence(whole.decoupler.features_of(semantics), whole.foundation.findings_of)
    torch.testing.assert_close(whole.codebook.nearest(seen[:1], 1)[0], semantics.mean(0), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(whole.codebook.centres[0], seen.mean(0), atol=1e-4, rtol=1e-4)
    assert "codebook.maps" in whole.tensors()


def test_jointly_trained_is_all_but_what_is_frozen_and_one_batch_is_learnt() -> None:
    made = line(8)
    reid = reid_stage(made)
    foundation = semantics_stage(made)
    joint = Joint(codec_stage(made, foundation), vae_stage(made))
    loss = joint_loss(made, made.fitted, reid, foundation)
    joint.zero_grad()
    rows = torch.arange(4)
    adam = torch.optim.Adam([one for one in joint.parameters() if one.requires_grad], 1e-2)
    losses = []
    for step in range(25):
        adam.zero_grad()
        value = loss(joint, rows, torch.Generator().manual_seed(step), 0)
        value.backward()
        if not step:
            told = {name for name, one in joint.named_parameters() if one.grad is not None and one.grad.abs().sum() > 0}
        adam.step()
        losses.append(value.item())
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    assert not any(name.startswith("resynthesis.vae") for name in told)
    for part in (
        "decoupler.encoder",
        "decoupler.partition",
        "decoupler.codelength",
        "resynthesis.fusion",
        "resynthesis.unet",
    ):
        assert any(name.startswith(part) for name in told), part
    assert all(one.grad is None for one in (*reid.parameters(), *foundation.parameters()))


def test_features_that_are_made_once_are_those_that_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    material = gathered([cohort(3)], (), SIDE, quiet)
    foundation, where, rows = parts().foundation, torch.device("cpu"), torch.tensor([4, 0, 4])
    kept = at_rows(foundation, material, where)
    monkeypatch.setattr("models.train.decoupling.KEPT_BYTES", 0)
    anew = at_rows(foundation, material, where)
    monkeypatch.setattr(type(foundation), "forward", lambda *_: pytest.fail("it was made already"))
    found = kept(rows)
    monkeypatch.undo()
    torch.testing.assert_close(found, anew(rows), atol=1e-2, rtol=1e-2)
    assert found.shape == (3, 64, 8, 8)


def test_files_of_stable_diffusion_are_what_a_training_begins_with(tmp_path: Path) -> None:
    unet, vae = stable_folder(tmp_path, old_names=False)
    picture = replace(PLAN.picture, scaling=0.18215)
    made = line(4, replace(PLAN, picture=picture, vae_steps=0, stable_diffusion=tmp_path))
    found = vae_stage(made)
    torch.testing.assert_close(found.vae.state_dict(), vae.half().float().state_dict())
    torch.testing.assert_close(found.unet.conv_in.weight[:, :4], unet.half().float().conv_in.weight)
    assert found.scale.unique().tolist() == pytest.approx([0.18215])


def test_every_picture_is_blocked_at_its_own_level_and_outline() -> None:
    maps = torch.rand(3, 4, 4)
    found = masks_at(maps, torch.tensor([0.95, 0.5, 0.5]), torch.tensor([0, 0, 1]))
    assert found[:2].sum((1, 2)).tolist() == [1, 8]
    assert torch.equal(found[2:], Blocking(0.5, cell=2).mask(maps[2:]))
    material = gathered([cohort(3)], (), SIDE, quiet)
    whole = parts()
    assert similarity_maps(whole.reid, material, torch.device("cpu")).shape == (6, 4, 4)


def test_the_student_learns_to_go_in_one_step_where_its_teacher_goes_in_many() -> None:
    made = line(8, replace(PLAN, student_steps=30, teacher_steps=3, pairs=8, rate=3e-3, evaluate_every=10))
    teacher = parts()
    pairs = teacher_pairs(made, teacher, made.fitted, 8, 0)
    assert torch.equal(teacher_pairs(made, teacher, made.fitted, 8, 0).made, pairs.made)
    before = {name: one.clone() for name, one in teacher.resynthesis.state_dict().items()}
    values: list[float] = []

    def listen(what: str, _done: int, _total: int) -> None:
        if what.startswith("student: loss"):
            values.append(float(what.rsplit(maxsplit=1)[-1]))

    for one in teacher.resynthesis.generator_parameters():
        one.requires_grad_(requires_grad=True)
    student = student_stage(replace(made, tick=listen), teacher)
    assert np.mean(values[-5:]) < 0.8 * np.mean(values[:5])
    assert (student.sampler, student.steps) == ("flow", 1)
    assert all(torch.equal(one, before[name]) for name, one in teacher.resynthesis.state_dict().items())
    with pytest.raises(ValueError, match="flow"):
        train_onestep(
            "s", replace(PLAN, picture=replace(PLAN.picture, prediction="epsilon")), [cohort(4)], Options(), quiet
        )


def test_an_entry_is_called_by_what_it_makes_when_only_one_begins_so() -> None:
    assert [entry_of(one) for one in ("reid", "decoupling", "resynthesis", "onestep")] == list(NAMES)
    assert entry_of("chest-audit-1") == "chest-audit-1"
    assert entry_of("lesion") == "lesion"  # two begin so
    assert entry_of("nothing") == "nothing"
    assert AdjustablePlan().with_steps(None) == AdjustablePlan()
    with pytest.raises(ValueError, match="one step"):
        AdjustablePlan().with_steps(0)


def test_entries_of_anonymisers_import_no_attacker() -> None:
    for name in NAMES:
        source = Path(str(import_module(ENTRIES[name]).__file__)).read_text()
        assert "audit_encoders" not in source
        assert "attacker import" not in source
