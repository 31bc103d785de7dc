"""What tests of the adjustable anonymiser share: its tiny card, and a study of one film."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adjustable_cards import write_card, write_films


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of cards of a site's own. A module may add calibrated copies under other names."""
    return write_card(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_films(tmp_path_factory.mktemp("study"))
