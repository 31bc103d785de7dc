"""What tests of the adjustable anonymiser share: its tiny cards, and a study of one film or photograph."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests import adjustable_eyes
from tests.adjustable_cards import write_card, write_films


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of cards of a site's own. A module may add calibrated copies under other names."""
    return write_card(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_films(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its domain is wide where untrained features of few people say little: colour and shape are what is tested."""
    folder = adjustable_eyes.write_card(tmp_path_factory.mktemp("cards"))
    document = yaml.safe_load((folder / f"{adjustable_eyes.CARD}.yaml").read_text())
    for name in ("histogram", "reconstruction", "features along", "features beside"):
        document["parameters"][f"domain {name}"][1] *= 20
    (folder / f"{adjustable_eyes.CARD}.yaml").write_text(yaml.safe_dump(document))
    return folder


@pytest.fixture(scope="module")
def photograph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return adjustable_eyes.write_eye(tmp_path_factory.mktemp("eye"))
