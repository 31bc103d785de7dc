"""Under which names a site's cards stand beside those that ship."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from commands import Command

from gateway.app.audit_folder import card_folders
from gateway.gate import folders_of
from gateway.settings import Home
from models.cards import SHIPPED


def test_audit_and_gate_look_in_the_same_folders_in_the_same_order(home: Home) -> None:
    assert card_folders(home) == folders_of(home.root / "models")
    assert card_folders(None) == folders_of()


@pytest.mark.parametrize("name", ["gradients", "dino-vits16"])
def test_weights_do_not_take_the_name_of_another_card_that_ships(
    command: Command, home: Home, tmp_path: Path, name: str
) -> None:
    (tmp_path / "resnet_50.ckpt").write_bytes(b"not looked at")
    ran = command("models", "import", "mgca-resnet50", tmp_path / "resnet_50.ckpt", "--home", home.root, "--name", name)
    assert ran.code == 2
    assert f"a card called {name} ships" in " ".join(ran.err.split())
    assert not list(home.root.glob("models/*"))


def test_the_list_shows_the_card_that_a_policy_would_get(command: Command, home: Home) -> None:
    (home.root / "models").mkdir(exist_ok=True)
    card = yaml.safe_load((SHIPPED.cards / "gradients.yaml").read_text())
    (home.root / "models/gradients.yaml").write_text(yaml.safe_dump({**card, "dimensions": 7}))
    (home.root / "models/mine.yaml").write_text(yaml.safe_dump({**card, "name": "mine", "dimensions": 8}))
    rows = {row["card"]: row for row in command("models", "list", "--home", home.root, "--json").json}
    assert rows["gradients"]["dimensions"] == card["dimensions"]
    assert rows["mine"]["dimensions"] == 8
    assert (
        command("models", "show", "gradients", "--home", home.root, "--json").json["dimensions"] == card["dimensions"]
    )
