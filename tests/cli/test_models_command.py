"""`models import|list|show`: an author's file becomes a card that works, or says why it does not."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Command, clean_environment
from encoder_tensors import AUTHORS, seeded, shipped, tensors_of
from torch.nn import functional

from gateway.embed import fixed_input, open_embedder
from gateway.learn.importing import site_folder
from gateway.settings import Home
from models.audit_encoders import anatcl, mgca_resnet, retfound
from models.audit_encoders.networks import loaded
from models.audit_encoders.vit import VisionTransformer
from models.cards import SHIPPED, CardError, CardFolder, find_card, read_card


class Evil:
    """What a hostile file holds beside its weights."""

    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.sentinel}",)


def test_an_authors_file_becomes_a_card_that_embeds_as_its_network_does(
    command: Command, home: Home, tmp_path: Path
) -> None:
    card = shipped("mgca-resnet50")
    state = tensors_of(card)
    tree = AUTHORS["mgca_resnet"][0](state, torch.ones(2, 3))
    torch.save({**tree, "opts": argparse.Namespace(a=1), "x": Evil(tmp_path / "ran")}, tmp_path / "resnet_50.ckpt")
    ran = command("models", "import", "mgca-resnet50", tmp_path / "resnet_50.ckpt", "--home", home.root)
    assert (ran.code, ran.err) == (0, "")
    assert not (tmp_path / "ran").exists()
    for line in (
        "a torch zip, tensors under state_dict",
        "taken off the names: img_encoder_q.model.",
        "left out: img_encoder_q.global_embed.* (1), img_encoder_q.local_embed.* (1), text_encoder_q.* (1), prototype_",
        "318 tensors, 23,508,032 parameters, as the card expects",
        "mgca-resnet50.yaml; name it in a policy as mgca-resnet50",
        "licence: none stated",
    ):
        assert line in ran.out
    assert "not run: argparse.Namespace, posix.system" in ran.out

    image = np.random.default_rng(0).random((300, 260)).astype(np.float32)
    found = open_embedder("mgca-resnet50", (site_folder(home.root), SHIPPED)).embed(image)
    with torch.inference_mode():
        x = functional.interpolate(mgca_resnet.prepare(image), (299, 299), mode="bilinear", align_corners=True)
        expected = loaded(mgca_resnet.network, card, state)(x)[0].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_fold_and_preparation_go_to_the_card_and_only_prepared_maps_are_taken(
    command: Command, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def network(_card: object) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Conv3d(1, 8, 9, 9), torch.nn.AdaptiveAvgPool3d(1), torch.nn.Flatten())

    monkeypatch.setattr(anatcl, "network", network)
    state = seeded({name: tuple(one.shape) for name, one in network(None).state_dict().items()})
    as_shipped(tmp_path, monkeypatch, "anatcl-global", state, 8)
    torch.save(AUTHORS["anatcl"][1](state, torch.ones(2)), tmp_path / "weights.pth")
    options = ("--set", "fold=3", "--home", home.root)
    pixels = fixed_input("volume", (121, 145, 121))
    folders = (site_folder(home.root),)
    assert command("models", "import", "anatcl-global", tmp_path / "weights.pth", *options).code == 0
    with pytest.raises(CardError, match="takes no raw scan"):
        open_embedder("anatcl-global", folders).embed(pixels, (1.5, 1.5, 1.5))
    options = (*options, "--set", "prepared=cat12-mwp1", "--name", "anatcl-global-fold3")
    assert command("models", "import", "anatcl-global", tmp_path / "weights.pth", *options).code == 0
    opened = open_embedder("anatcl-global-fold3", folders)
    assert opened.card.parameters["fold"] == 3
    assert opened.card.imported is not None
    assert opened.card.imported.dropped == {"head.": 1}
    x = torch.from_numpy(pixels[:, ::-1, ::-1].transpose(2, 1, 0)[:, 8:136].copy())[None, None]
    with torch.inference_mode():
        expected = loaded(network, opened.card, state)(x)[0].numpy()
    np.testing.assert_allclose(opened.embed(pixels, (1.5, 1.5, 1.5)), expected, rtol=1e-5, atol=1e-6)
    first, second = (find_card(name, folders)[0] for name in ("anatcl-global", "anatcl-global-fold3"))
    assert first.fixed_input_sha256 == second.fixed_input_sha256  # prepared or not, the network is the same
    written = sorted((home.root / "models").iterdir())
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    assert (home.root / "models").stat().st_mode & 0o777 == 0o700
    ran = command("models", "import", "anatcl-global", tmp_path / "weights.pth", *options, "--set", "fold=5")
    assert ran.code == 2


def as_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, state: dict[str, torch.Tensor], dimensions: int
) -> None:
    """The shipped card, expecting this small network."""
    card = shipped(name)
    assert card.published is not None
    count = sum(one.numel() for one in state.values())
    fits = card.published.model_copy(update={"tensors": len(state), "parameters": count})
    cards = tmp_path / "cards"
    cards.mkdir()
    changed = card.model_copy(update={"published": fits, "dimensions": dimensions})
    (cards / f"{name}.yaml").write_text(changed.model_dump_json(exclude_defaults=True))
    monkeypatch.setattr("gateway.learn.importing.SHIPPED", CardFolder.flat(cards))


def small(_card: object) -> VisionTransformer:
    return VisionTransformer(16, 8, 1, 2)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, torch.Tensor]:
    """A RETFound of one narrow block, with a card that expects it, and its file in `tmp_path`."""
    monkeypatch.setattr(retfound, "network", small)
    state = seeded({name: tuple(one.shape) for name, one in small(None).state_dict().items()})
    as_shipped(tmp_path, monkeypatch, "retfound-cfp", state, 8)
    torch.save(AUTHORS["retfound"][0](state, torch.ones(3)), tmp_path / "cfp.pth")
    return state


def imported(command: Command, home: Home, file: Path, *options: str) -> Any:
    return command("models", "import", "retfound-cfp", file, "--home", home.root, *options)


def test_what_was_imported_is_told_as_json_and_listed(
    command: Command, home: Home, tiny: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    told = imported(command, home, tmp_path / "cfp.pth", "--json").json
    assert told["container"] == "torch zip"
    assert told["dropped"] == {"mask_token": 1, "decoder_": 2}
    assert told["tensors"] == len(tiny)
    rows = {row["card"]: row for row in command("models", "list", "--home", home.root, "--json").json}
    assert rows["retfound-cfp"]["weights"].startswith("imported 20")
    assert rows["sam-med3d"]["weights"] == "bring sam_med3d_turbo.pth"
    assert rows["freesurfer-15"]["weights"] == "needs none"
    shown = command("models", "show", "retfound-cfp", "--home", home.root)
    assert "CC BY-NC 4.0" in shown.out
    assert "imported 20" in shown.out
    assert command("models", "show", "retfound-cfp", "--home", home.root, "--json").json["dimensions"] == 8


def test_the_same_file_again_is_the_same_card_and_another_needs_a_name(
    command: Command, home: Home, tiny: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    assert imported(command, home, tmp_path / "cfp.pth").code == 0
    path = home.root / "models" / "retfound-cfp.yaml"
    before = path.read_bytes()
    assert imported(command, home, tmp_path / "cfp.pth").code == 0
    assert path.read_bytes() == before
    torch.save({"model": {name: 2 * one for name, one in tiny.items()}}, tmp_path / "other.pth")
    ran = imported(command, home, tmp_path / "other.pth")
    assert ran.code == 2
    assert "--name, or --replace" in ran.err
    assert path.read_bytes() == before
    assert imported(command, home, tmp_path / "other.pth", "--name", "retfound-2").code == 0
    assert imported(command, home, tmp_path / "other.pth", "--replace").code == 0
    first, second = (read_card(home.root / "models" / f"{name}.yaml") for name in ("retfound-cfp", "retfound-2"))
    assert first.weights is not None
    assert second.weights is not None
    assert first.weights.sha256 == second.weights.sha256
    assert path.read_bytes() != before


def test_a_card_whose_weights_or_code_changed_does_not_open(
    command: Command, home: Home, tiny: dict[str, torch.Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert imported(command, home, tmp_path / "cfp.pth").code == 0
    folders = (site_folder(home.root),)
    open_embedder("retfound-cfp", folders)
    monkeypatch.setattr(retfound, "IMAGENET_MEAN", (0.3, 0.3, 0.3))
    with pytest.raises(CardError, match="other embeddings"):
        open_embedder("retfound-cfp", folders)
    monkeypatch.undo()
    monkeypatch.setattr(retfound, "network", small)
    (weights,) = (home.root / "models").glob("*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(CardError, match="another file than its card names"):
        open_embedder("retfound-cfp", folders)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--set", "pooling"), "NAME=VALUE"),
        (("--set", "pooling=mean", "--set", "pooling=mean"), "each name once"),
        (("--set", "fold=1"), "no parameter fold; --set takes normalise, pooling"),
        (("--set", "pooling=middle"), "one of mean, class"),
        (("--name", "Bad Name"), "--name takes small letters"),
    ],
)
def test_wrong_options_are_told_and_nothing_is_written(
    command: Command, home: Home, tiny: dict[str, torch.Tensor], tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    ran = imported(command, home, tmp_path / "cfp.pth", *options)
    assert ran.code == 2
    assert says in ran.err
    assert not list((home.root / "models").glob("*")) if (home.root / "models").exists() else True


def test_a_wrong_file_names_what_is_missing_and_nothing_is_written(
    command: Command, home: Home, tiny: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    torch.save({"model": {f"layer{i}.weight": torch.ones(1) for i in range(9)}}, tmp_path / "wrong.pth")
    (tmp_path / "page.pth").write_text("<html>")
    for file, says in (
        ("wrong.pth", "missing: cls_token, pos_embed, patch_embed.proj.weight"),
        (
            "wrong.pth",
            "unexpected: layer0.weight, layer1.weight, layer2.weight, layer3.weight, layer4.weight and 4 more",
        ),
        ("page.pth", "neither a torch file"),
    ):
        ran = imported(command, home, tmp_path / file)
        assert ran.code == 2
        assert says in ran.err
    assert imported(command, home, tmp_path / "absent.pth").code == 3
    assert not (home.root / "models").exists()


def test_choices_that_only_the_owner_knows_must_be_said(command: Command, home: Home, tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes(b"x")
    ran = command("models", "import", "anatcl-local", tmp_path / "a.pth", "--home", home.root)
    assert ran.code == 2
    assert "say which fold the file is, with --set: one of fold=0, fold=1" in ran.err
    ran = command("models", "import", "freesurfer-15", tmp_path / "a.pth", "--home", home.root)
    assert ran.code == 2
    assert "needs no file" in ran.err


def test_a_shipped_card_without_weights_says_how_to_get_them() -> None:
    with pytest.raises(CardError, match=r"get sam_med3d_turbo\.pth from its owner .*models import sam-med3d FILE"):
        open_embedder("sam-med3d")


def test_importing_the_commands_and_the_encoders_table_loads_no_torch() -> None:
    program = (
        "import sys, gateway.cli.models, models.audit_encoders, models.cards, models.checkpoints; "
        "print(sorted({'torch', 'monai', 'safetensors'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=clean_environment()
    )
    assert ran.stdout.strip() == "[]"
