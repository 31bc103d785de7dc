"""Nothing here sees the tester's own settings; and a house with a folder as its archive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from houses import House, house, to_folder

from gateway.settings import Home


@pytest.fixture(autouse=True)
def without_the_testers_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("DEID_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The archive's folder."""
    return tmp_path / "archive"


@pytest.fixture
def policies(tmp_path: Path, target: Path) -> Path:
    return to_folder(tmp_path / "policies", target)


@pytest.fixture
def gateway_house(home: Home, policies: Path) -> Iterator[House]:
    with house(home, policies) as made:
        yield made
