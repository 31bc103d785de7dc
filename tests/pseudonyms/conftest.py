"""A house with a folder as its archive, blind to the tester's own settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from houses import to_folder


@pytest.fixture(autouse=True)
def without_the_testers_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("DEID_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def policies(tmp_path: Path, target: Path) -> Path:
    return to_folder(tmp_path / "policies", target)
