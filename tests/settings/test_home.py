"""A home is private, is made once, and keeps its key."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gateway.errors import EnvironmentFault
from gateway.settings import Home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_folder_is_0700_and_the_key_0600_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    before = os.umask(0o000)
    try:
        assert home.create()
    finally:
        os.umask(before)
    folders = [home.root, *(path for path in home.root.rglob("*") if path.is_dir())]
    assert {path.name for path in folders[1:]} == set(Home.FOLDERS)
    assert {mode(path) for path in folders} == {0o700}
    assert mode(home.master_key) == 0o600


def test_making_it_again_keeps_the_key_and_closes_what_was_opened(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert home.create()
    key = home.master_key.read_bytes()
    home.spool.chmod(0o755)
    assert not home.create()
    assert home.master_key.read_bytes() == key
    assert mode(home.spool) == 0o700


def test_no_key_is_made_where_the_key_is_held_elsewhere(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert not home.create(generate_key=False)
    assert not home.master_key.exists()
    home.require()


def test_a_folder_that_is_no_home_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=f"deid-gateway init {tmp_path}"):
        Home(tmp_path).require()


def test_a_home_that_cannot_be_made_is_the_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EnvironmentFault, match="belongs to this user"):
        Home(tmp_path / "file").create()
    with pytest.raises(EnvironmentFault, match="belongs to this user"):
        Home(tmp_path / "file" / "home").create()
