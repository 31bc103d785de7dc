"""A house with a held study, and the page over it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from houses import House, edit, house, study, to_folder
from review_site import Site, site_over

from gateway.review import Accounts
from gateway.settings import Home


@pytest.fixture(autouse=True)
def without_the_testers_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("DEID_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def a_quick_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Argon2id all the same, with the least memory there is."""
    monkeypatch.setattr(Accounts, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def policies(tmp_path: Path, target: Path) -> Path:
    """Nothing is accepted unjudged, so the gate holds every study."""
    folder = to_folder(tmp_path / "policies", target)
    edit(folder, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    return folder


@pytest.fixture
def gateway_house(home: Home, policies: Path) -> Iterator[House]:
    with house(home, policies) as made:
        yield made


@pytest.fixture
def site(gateway_house: House) -> Iterator[Site]:
    with site_over(gateway_house, datasets=study(2)) as made:
        yield made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's, or the test is left out."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium here: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright here: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
