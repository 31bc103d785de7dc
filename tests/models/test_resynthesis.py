"""Re-synthesis: the published sizes and files, the schedule, what reaches the network, and what never does."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from models.cards import Card, CardError
from models.id_blocking import Blocking
from models.resynthesis import (
    ALGORITHM,
    PAPER,
    PAPER_SD2,
    Conditioned,
    FeatNet,
    Fusion,
    NoiseSchedule,
    Resynthesis,
    deidentified,
    diffusion_loss,
    load_stable_diffusion,
    parts_of,
    sample,
    vae_loss,
)
from models.resynthesis.deidentify import left_over
from models.resynthesis.fusion import _Cross, positions
from tests.adjustable_films import SIDE, TINY, film, parts, stable_folder


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def count(network: nn.Module) -> int:
    return sum(one.numel() for one in network.parameters())


@pytest.mark.parametrize(("config", "numbers"), [(PAPER, 859_520_964), (PAPER_SD2, 865_910_724)])
def test_the_papers_networks_are_stable_diffusions_with_five_more_planes(config: Any, numbers: int) -> None:
    with torch.device("meta"):
        model = Resynthesis(config)
        noid, mask = torch.empty(1, 1, 512, 512), torch.empty(1, 1, 512, 512, dtype=torch.bool)
        told = model.conditions(noid, mask, torch.empty(1, 1024, 14, 14))
        said = model.estimate(torch.empty(1, 4, 64, 64), torch.empty(1), told)
        picture = model.decode(torch.empty(1, 4, 64, 64))
    assert count(model.unet) == numbers + 320 * 5 * 9
    assert count(model.vae) == 83_653_863
    assert told.tokens.shape == (1, 16 * 16 + 14 * 14, config.cross)
    assert told.planes.shape == (1, 5, 64, 64)
    assert said.shape == (1, 4, 64, 64)
    assert picture.shape == (1, 1, 512, 512)


def test_schedules_are_the_librarys_and_end_where_the_paper_says() -> None:
    from diffusers import DDPMScheduler

    for spacing, last in (("linear", 4.0e-5), ("scaled_linear", 0.0047)):
        schedule = NoiseSchedule.of("epsilon", spacing)
        library = DDPMScheduler(**schedule.options(), clip_sample=False)
        torch.testing.assert_close(schedule.alphas_bar.float(), library.alphas_cumprod, atol=1e-6, rtol=1e-4)
        assert schedule.alphas_bar[-1].item() == pytest.approx(last, rel=0.02)
        z, noise, step = torch.randn(2, 4, 3, 3), torch.randn(2, 4, 3, 3), torch.tensor([3, 900])
        torch.testing.assert_close(schedule.noised(z, noise, step)[0], library.add_noise(z, noise, step))
    for wrong in (("noise", "linear"), ("epsilon", "cosine")):
        with pytest.raises(ValueError, match="no schedule"):
            NoiseSchedule.of(*wrong)


def test_cross_attention_is_the_librarys_with_a_way_around() -> None:
    ours = _Cross(8, 2).eval()
    oracle = nn.MultiheadAttention(8, 2, batch_first=True)
    key, value = ours.told.weight.chunk(2)
    key_bias, value_bias = ours.told.bias.chunk(2)
    with torch.no_grad():
        oracle.in_proj_weight.copy_(torch.cat([ours.ask.weight, key, value]))
        oracle.in_proj_bias.copy_(torch.cat([ours.ask.bias, key_bias, value_bias]))
        oracle.out_proj.weight.copy_(ours.out.weight)
        oracle.out_proj.bias.copy_(ours.out.bias)
    a, b = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    told = ours.told_norm(b)
    torch.testing.assert_close(ours(a, b), a + oracle(ours.ask_norm(a), told, told)[0], atol=1e-5, rtol=1e-4)


def test_both_conditions_ask_each_other_and_all_tokens_are_told() -> None:
    fusion = Fusion(8, 6, 10, 2).eval()
    left, meant = torch.randn(2, 8, 4, 4), torch.randn(2, 6, 3, 3)
    tokens = fusion(left, meant)
    assert tokens.shape == (2, 16 + 9, 10)
    moved = fusion(left, meant + torch.randn_like(meant))
    assert not torch.allclose(moved[:, :16], tokens[:, :16])  # what was left has heard what was meant
    moved = fusion(left + torch.randn_like(left), meant)
    assert not torch.allclose(moved[:, 16:], tokens[:, 16:])  # and the other way round
    assert positions(4, 4, 8).unique(dim=0).shape[0] == 16
    torch.testing.assert_close(positions(2, 1, 8)[0, :2], positions(1, 2, 8)[0, 4:6])
    assert FeatNet(4, 8, 2)(torch.randn(1, 5, 8, 8)).shape == (1, 8, 4, 4)


@pytest.mark.parametrize("size", [(16, 16), (50, 37), (13, 64)])
def test_what_is_blocked_leaves_no_trace_in_what_is_left(size: tuple[int, int]) -> None:
    """Two pictures that differ only under the mask give the very same X_noID, also where they are shrunk or grown."""
    from models.id_blocking import enlarged

    mask = torch.rand(2, 4, 4) > 0.5
    x = torch.rand(2, 1, *size)
    other = torch.where(enlarged(mask, size)[:, None], torch.rand_like(x), x)
    noid, hidden = left_over(x, mask, SIDE)
    again, _ = left_over(other, mask, SIDE)
    assert torch.equal(noid, again)
    assert not torch.equal(x, other)
    assert bool((noid[hidden] == 0).all())
    assert noid.shape == hidden.shape == (2, 1, SIDE, SIDE)


def test_conditions_block_once_more_and_give_no_gradient_to_the_autoencoder() -> None:
    model = Resynthesis(TINY)
    mask = torch.rand(2, 1, SIDE, SIDE) > 0.5
    x, semantics = torch.rand(2, 1, SIDE, SIDE), torch.randn(2, 64, 8, 8, requires_grad=True)
    told = model.conditions(x, mask, semantics)
    again = model.conditions(torch.where(mask, torch.rand_like(x), x), mask, semantics)
    torch.testing.assert_close(told.tokens, again.tokens)
    torch.testing.assert_close(told.planes, again.planes)
    model.estimate(torch.randn(2, 4, 8, 8), torch.zeros(2), told).square().mean().backward()
    assert semantics.grad is not None
    assert semantics.grad.abs().sum() > 0
    assert all(one.grad is None for one in model.vae.parameters())
    assert len(model.generator_parameters()) == sum(1 for _ in model.parameters()) - sum(
        1 for _ in model.vae.parameters()
    )
    torch.testing.assert_close(told.planes[:, -1], nn.functional.avg_pool2d(mask.float(), 2)[:, 0])


def test_latents_have_unit_spread_and_come_back() -> None:
    model = Resynthesis(TINY)
    means = 3 * torch.randn(60, 4, 8, 8) + torch.arange(4.0)[None, :, None, None]
    model.measure(means)
    scaled = (means - model.shift) * model.scale
    torch.testing.assert_close(scaled.mean((0, 2, 3)), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled.std((0, 2, 3)), torch.ones(4), atol=1e-4, rtol=0)
    z = torch.randn(2, 4, 8, 8)
    raw = model.vae.decode(z / model.scale + model.shift).sample
    torch.testing.assert_close(model.decode(z), raw / 2 + 0.5)
    with pytest.raises(ValueError, match="1 x 16 x 16"):
        model.encode(torch.rand(1, 1, 20, 20))


class Known(nn.Module):
    """The best estimate there is when latents are N(2, 0.5²): its samples must have that mean and spread."""

    def __init__(self, prediction: str) -> None:
        super().__init__()
        self.schedule = NoiseSchedule.of(prediction, "linear")

    def estimate(self, z: Tensor, step: Tensor, _: Conditioned) -> Tensor:
        if self.schedule.prediction == "flow":
            s = ((step + 1) / self.schedule.steps)[:, None, None, None]
            a, b = 1 - s, s
        else:
            alpha = self.schedule.alphas_bar[step.long()].float()[:, None, None, None]
            a, b = alpha.sqrt(), (1 - alpha).sqrt()
        gain = a * 0.25 / (a**2 * 0.25 + b**2)
        clean = 2 + gain * (z - a * 2)
        noise = (z - a * clean) / b.clamp(min=1e-6)
        if self.schedule.prediction == "flow":
            return noise - clean
        return noise if self.schedule.prediction == "epsilon" else a * noise - b * clean


NOTHING: Any = SimpleNamespace()


@pytest.mark.parametrize(
    ("prediction", "sampler", "steps"),
    [("flow", "flow", 40), ("epsilon", "ddim", 250), ("v_prediction", "dpm", 20)],
)
def test_samplers_give_the_distribution_that_was_learnt(prediction: str, sampler: str, steps: int) -> None:
    noise = torch.randn(64, 4, 4, 4, generator=seeded(2))
    model: Any = Known(prediction)
    made = sample(model, noise, NOTHING, sampler=sampler, steps=steps)
    assert made.mean().item() == pytest.approx(2.0, abs=0.03)
    assert made.std().item() == pytest.approx(0.5, rel=0.08)
    torch.manual_seed(99)
    assert torch.equal(sample(model, noise, NOTHING, sampler=sampler, steps=steps), made)


def test_one_step_of_flow_goes_the_whole_way_and_steps_are_even() -> None:
    class Seen(Known):
        def __init__(self) -> None:
            super().__init__("flow")
            self.steps: list[float] = []

        def estimate(self, z: Tensor, step: Tensor, _: Conditioned) -> Tensor:
            self.steps.append(float(step[0]))
            return torch.full_like(z, 3.0)

    model: Any = Seen()
    noise = torch.randn(1, 4, 2, 2)
    torch.testing.assert_close(sample(model, noise, NOTHING, sampler="flow", steps=1), noise - 3)
    torch.testing.assert_close(sample(model, noise, NOTHING, sampler="flow", steps=4), noise - 3)
    assert model.steps == pytest.approx([999, 999, 749, 499, 249])


def test_samplers_refuse_what_does_not_fit() -> None:
    model: Any = Known("flow")
    for sampler, steps in (("ddim", 2), ("ancestral", 2), ("flow", 0)):
        with pytest.raises(ValueError, match=r"not sampled|one step"):
            sample(model, torch.zeros(1, 4, 2, 2), NOTHING, sampler=sampler, steps=steps)


def test_one_batch_is_learnt_by_the_autoencoder_and_by_diffusion() -> None:
    model = Resynthesis(TINY)
    x = torch.stack([torch.from_numpy(film(i, 0)) for i in range(4)])[:, None]
    adam = torch.optim.Adam(model.vae.parameters(), 3e-3)
    losses = []
    for number in range(40):
        adam.zero_grad()
        loss = vae_loss(model, x, seeded(number))
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    with torch.no_grad():
        model.measure(model.posterior(x).mean)
        z = model.encode(x)
    told = model.conditions(x, torch.zeros_like(x, dtype=torch.bool), torch.zeros(4, 64, 4, 4))
    told = Conditioned(told.tokens.detach(), told.planes)
    adam = torch.optim.Adam(model.generator_parameters(), 1e-2)
    losses = []
    for number in range(50):
        adam.zero_grad()
        loss = diffusion_loss(model, z, told, seeded(number))
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])


@pytest.mark.parametrize("old_names", [False, True])
def test_stable_diffusion_is_taken_from_its_files_and_says_at_first_what_it_said(
    tmp_path: Path, old_names: bool
) -> None:
    unet, vae = stable_folder(tmp_path, old_names=old_names)
    model = Resynthesis(TINY)
    load_stable_diffusion(model, tmp_path)
    z, step = torch.randn(2, 4, 8, 8), torch.tensor([10, 700])
    told = Conditioned(torch.randn(2, 5, TINY.cross), torch.randn(2, 5, 8, 8))
    oracle = unet.half().float()(z, step, encoder_hidden_states=told.tokens).sample
    torch.testing.assert_close(model.estimate(z, step, told), oracle, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(model.vae.decode(z).sample, vae.half().float().decode(z).sample, atol=1e-5, rtol=1e-4)


def test_files_that_do_not_fit_change_nothing(tmp_path: Path) -> None:
    stable_folder(tmp_path / "good", old_names=False)
    stable_folder(tmp_path / "other", old_names=False, latent=8)
    model = Resynthesis(TINY)
    before = {name: one.clone() for name, one in model.state_dict().items()}
    shutil.copytree(tmp_path / "good", tmp_path / "partial")
    state = {"conv_in.weight": torch.zeros(8, 4, 3, 3)}
    save_file(state, tmp_path / "partial" / "unet" / "diffusion_pytorch_model.safetensors")
    shutil.copytree(tmp_path / "good", tmp_path / "pickle")
    source = tmp_path / "pickle" / "unet" / "diffusion_pytorch_model.safetensors"
    source.rename(source.with_name("diffusion_pytorch_model.bin"))
    (tmp_path / "broken" / "unet").mkdir(parents=True)
    shutil.copytree(tmp_path / "good" / "vae", tmp_path / "broken" / "vae")
    (tmp_path / "broken" / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"no tensors")
    for folder, said in (
        ("other", "4 latent channels"),
        ("partial", "missing: conv_in.bias"),
        ("pickle", "a pickle"),
        ("broken", "cannot be read"),
        ("absent", "holds no"),
    ):
        with pytest.raises(ValueError, match=said):
            load_stable_diffusion(model, tmp_path / folder)
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())


@pytest.mark.parametrize("size", [(16, 16), (40, 31)])
def test_pictures_of_any_size_come_out_at_their_size_and_alone_as_in_a_batch(size: tuple[int, int]) -> None:
    made_of = parts()
    x = torch.rand(3, 1, *size)
    noise = torch.randn(3, 4, 8, 8)
    found = deidentified(made_of, x, Blocking(0.6), noise)
    assert found.picture.shape == x.shape
    assert 0 <= found.picture.min() <= found.picture.max() <= 1
    assert bool((found.noid[found.mask] == 0).all())
    assert torch.equal(deidentified(made_of, x, Blocking(0.6), noise).picture, found.picture)
    alone = deidentified(made_of, x[1:2], Blocking(0.6), noise[1:2])
    torch.testing.assert_close(alone.picture, found.picture[1:2], atol=1e-4, rtol=1e-3)
    assert not torch.allclose(deidentified(made_of, x, Blocking(0.6), torch.randn(3, 4, 8, 8)).picture, found.picture)
    with pytest.raises(ValueError, match="noise is"):
        deidentified(made_of, x, Blocking(0.6), noise[:2])
    with pytest.raises(ValueError, match="0 to 1"):
        deidentified(made_of, 2 * x, Blocking(0.6), noise)
    with pytest.raises(ValueError, match="0 to 1"):
        deidentified(made_of, torch.full_like(x, float("nan")), Blocking(0.6), noise)


def card_of(**changed: Any) -> Card:
    made = parts()
    return Card(
        name="tiny-1",
        role="anonymiser",
        algorithm=changed.pop("algorithm", ALGORITHM),
        modalities=("CR",),
        dimensions=4,
        parameters={**made.parameters(), **changed},
        intended_use="a test",
        limits="all",
        licence="none",
        source="here",
    )


def test_a_card_and_its_tensors_make_the_same_networks_again() -> None:
    made = parts()
    card = Card.model_validate_json(card_of().model_dump_json())
    again = parts_of(card, made.tensors())
    x, noise = torch.rand(2, 1, 20, 20), torch.randn(2, 4, 8, 8)
    torch.testing.assert_close(
        deidentified(again, x, Blocking(0.5), noise).picture, deidentified(made, x, Blocking(0.5), noise).picture
    )
    assert again.parameters() == made.parameters()
    assert not any(one.requires_grad for one in again.resynthesis.parameters())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"algorithm": "lesion_diffusion"}, "not adjustable_resynthesis"),
        ({"picture_side": "16"}, "wrong kind"),
        ({"picture_heads": (3.0,)}, "do not fit each other"),
        ({"reid_width": 32}, "tensors reid"),
        ({"foundation": "clip"}, "parameters.foundation"),
        ({"foundation": "retfound"}, "models import"),
        ({"picture_semantic": 32}, "channels of semantics"),
        ({"steps": 0}, "how it is sampled"),
    ],
)
def test_a_card_that_does_not_fit_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(CardError, match=said):
        parts_of(card_of(**changed), parts().tensors())


def test_tensors_that_are_missing_are_named() -> None:
    tensors = {name: one for name, one in parts().tensors().items() if not name.startswith("resynthesis.unet.conv_in")}
    with pytest.raises(CardError, match=r"resynthesis\.\*"):
        parts_of(card_of(), tensors)
    del (whole := card_of().model_dump())["parameters"]["codec_codes"]
    with pytest.raises(CardError, match="codec_codes is missing"):
        parts_of(Card.model_validate(whole), parts().tensors())
