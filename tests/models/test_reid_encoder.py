"""The re-identification network: sizes, the space that patches are compared in, what does not matter to it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from models.reid_encoder import (
    PAPER,
    SMALL,
    ReidEncoder,
    VisionTransformer,
    cosine_map,
    identity_loss,
    identity_map,
    volume_identity_map,
)
from models.reid_encoder.similarity import TOGETHER

TINY = replace(SMALL, side=16, patch=4, width=16, depth=2, heads=2, dimensions=8, entries=3, rank=2)


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def count(network: nn.Module) -> int:
    return sum(one.numel() for one in network.parameters())


def test_the_papers_size_is_a_vit_b16_with_an_mlp_and_a_codebook_in_every_block() -> None:
    with torch.device("meta"):
        network = ReidEncoder(PAPER)
        plain = VisionTransformer(side=224, patch=16, channels=3, width=768, depth=12, heads=12)
    assert count(plain) == 85_798_656  # ViT-B/16 with a class token, as published
    codebook = 12 * 16 * 2 * 8 * 768 + 2 * 768 * 16 + 16
    assert count(network) == 85_798_656 + 2 * (768 * 768 + 768) + codebook
    assert PAPER.grid == 14


def test_a_transformer_of_retfounds_size_has_its_names_and_numbers() -> None:
    with torch.device("meta"):
        network = VisionTransformer(side=224, patch=16, channels=3, width=1024, depth=24, heads=16)
    assert len(network.state_dict()) == 294
    assert count(network) == 303_301_632
    assert {"cls_token", "pos_embed", "patch_embed.proj.weight", "blocks.23.attn.qkv.bias", "norm.weight"} <= set(
        network.state_dict()
    )


def test_images_of_any_size_give_an_identity_of_length_one_and_a_map() -> None:
    network = ReidEncoder(TINY).eval()
    for size in ((16, 16), (37, 50), (8, 9)):
        found = network(torch.rand(3, 1, *size))
        torch.testing.assert_close(found.identity_bd.norm(dim=1), torch.ones(3))
        assert found.patches_bhwc.shape == (3, 4, 4, 16)
        torch.testing.assert_close(found.mean_bc, found.patches_bhwc.mean((1, 2)), atol=1e-5, rtol=1e-4)
        assert identity_map(network, torch.rand(3, 1, *size)).shape == (3, 4, 4)


def test_grey_is_repeated_and_other_inputs_are_refused() -> None:
    network = ReidEncoder(replace(TINY, channels=3)).eval()
    grey = torch.rand(2, 1, 16, 16)
    torch.testing.assert_close(network(grey).identity_bd, network(grey.expand(-1, 3, -1, -1)).identity_bd)
    for wrong in (torch.rand(2, 2, 16, 16), torch.rand(1, 16, 16), torch.rand(0, 1, 16, 16)):
        with pytest.raises(ValueError, match="images are"):
            network(wrong)
    with pytest.raises(ValueError, match="none"):
        network(torch.full((1, 1, 16, 16), math.nan))


def test_exposure_does_not_change_who_somebody_is_and_a_blank_picture_is_no_error() -> None:
    network = ReidEncoder(TINY).eval()
    x = torch.rand(2, 1, 16, 16)
    torch.testing.assert_close(network(0.3 * x + 0.2).identity_bd, network(x).identity_bd, atol=1e-4, rtol=1e-3)
    assert bool(torch.isfinite(network(torch.full((1, 1, 16, 16), 0.7)).identity_bd).all())


def test_the_map_is_the_cosine_of_each_patch_to_the_mean_before_the_mlp() -> None:
    patches = torch.tensor([[[[1.0, 0.0], [0.0, 2.0]], [[3.0, 4.0], [-1.0, 0.0]]]])
    found = cosine_map(patches, torch.tensor([[1.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[[1.0, 0.0], [0.6, -1.0]]]))
    network = ReidEncoder(TINY).eval()
    x = torch.rand(2, 1, 16, 16)
    told = network(x)
    mean, patch = told.mean_bc.detach().numpy(), told.patches_bhwc.detach().numpy()
    norms = np.linalg.norm(patch, axis=-1) * np.linalg.norm(mean, axis=-1)[:, None, None]
    np.testing.assert_allclose(identity_map(network, x), np.einsum("bhwc,bc->bhw", patch, mean) / norms, atol=1e-5)
    with torch.no_grad():
        for one in network.head.parameters():
            one.mul_(-3)  # the identity lives elsewhere: what is behind the MLP does not move the map
    np.testing.assert_allclose(identity_map(network, x), np.einsum("bhwc,bc->bhw", patch, mean) / norms, atol=1e-5)


def test_a_volume_is_compared_with_itself_as_a_whole() -> None:
    network = ReidEncoder(TINY).eval()
    volume = torch.rand(TOGETHER + 3, 20, 18)
    volume[0] = 0.4  # holds nothing
    found = volume_identity_map(network, volume)
    assert found.shape == (TOGETHER + 3, 4, 4)
    with torch.no_grad():
        patches = network(volume[:, None]).patches_bhwc
    whole = patches[1:].mean((0, 1, 2))
    torch.testing.assert_close(found, cosine_map(patches[None], whole[None])[0], atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="three axes"):
        volume_identity_map(network, volume[0])


def test_the_codebook_begins_as_nothing_and_then_answers_to_how_the_picture_was_taken() -> None:
    network = ReidEncoder(TINY).eval()
    x = torch.rand(2, 3, 16, 16)[:, :1]
    torch.manual_seed(1)
    plain = VisionTransformer(side=16, patch=4, channels=1, width=16, depth=2, heads=2).eval()
    state = {
        name: one for name, one in network.vit.state_dict().items() if "adapters" not in name and "mix" not in name
    }
    plain.load_state_dict(state)
    torch.testing.assert_close(network.vit(x), plain(x))
    for block in network.vit.blocks:
        nn.init.normal_(block.adapters.up)
    assert not torch.allclose(network.vit(x), plain(x))
    alone = network.vit(x[:1])
    torch.testing.assert_close(network.vit(x)[:1], alone, atol=1e-5, rtol=1e-4)  # others in the batch do not matter


def test_the_loss_is_supcon_by_hand_and_leaves_out_who_has_no_mate() -> None:
    z = torch.nn.functional.normalize(torch.randn(5, 4), dim=1)
    who = torch.tensor([0, 0, 1, 2, 1])
    terms = []
    for i, mates in {0: [1], 1: [0], 2: [4], 4: [2]}.items():
        others = [j for j in range(5) if j != i]
        share = math.log(sum(math.exp(float(z[i] @ z[j]) / 0.1) for j in others))
        terms.append(-sum(float(z[i] @ z[p]) / 0.1 - share for p in mates) / len(mates))
    assert identity_loss(z, who).item() == pytest.approx(sum(terms) / 4, rel=1e-4)
    with pytest.raises(ValueError, match="two pictures"):
        identity_loss(z, torch.arange(5))


def test_one_batch_of_people_is_learnt() -> None:
    network = ReidEncoder(TINY)
    x, who = torch.rand(8, 1, 16, 16), torch.arange(8) % 4
    adam = torch.optim.Adam(network.parameters(), 3e-3)
    losses = []
    for _ in range(60):
        adam.zero_grad()
        loss = identity_loss(network(x).identity_bd, who)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("wrong", [{"side": 18}, {"heads": 3}, {"depth": 0}, {"entries": -1}, {"rank": 0}])
def test_sizes_that_do_not_fit_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"multiple|positive|codebook"):
        replace(TINY, **wrong)
