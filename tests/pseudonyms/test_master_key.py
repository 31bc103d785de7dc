"""Where the master key comes from, and when it is refused."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.errors import EnvironmentFault
from gateway.pseudonyms import master_key
from gateway.settings import Home, Settings

Build = Callable[..., Settings]


def test_a_fresh_home_has_a_strong_key_of_its_own(home: Home, settings: Build, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    other.create()
    key = master_key(home, settings())
    assert len(key) == 32
    assert key != master_key(other, settings())


def test_the_environment_wins_over_the_key_file_and_that_over_the_home(
    home: Home, settings: Build, tmp_path: Path
) -> None:
    typed, filed = secrets.token_hex(32), secrets.token_hex(48)
    file = tmp_path / "key"
    file.write_text(filed + "\n")
    file.chmod(0o600)
    assert master_key(home, settings(key=typed, key_file=file)).hex() == typed
    assert master_key(home, settings(key_file=file)).hex() == filed
    assert master_key(home, settings()).hex() == home.master_key.read_text().strip()


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_a_key_that_only_its_owner_or_group_can_read_is_taken(home: Home, settings: Build, mode: int) -> None:
    home.master_key.chmod(mode)
    assert master_key(home, settings())


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o660, 0o602, 0o601, 0o650, 0o777])
def test_a_key_that_others_can_read_or_the_group_can_change_is_refused(home: Home, settings: Build, mode: int) -> None:
    home.master_key.chmod(mode)
    with pytest.raises(EnvironmentFault, match="chmod 600"):
        master_key(home, settings())


def test_a_missing_key_says_how_to_make_one(home: Home, settings: Build) -> None:
    home.master_key.unlink()
    with pytest.raises(EnvironmentFault, match="deid-gateway init"):
        master_key(home, settings())


@pytest.mark.parametrize("text", ["", "12", "ab" * 31, "00" * 32, "not hex at all", "ab" * 31 + "zz", "ä" * 64])
def test_a_key_that_is_short_weak_or_not_hex_is_refused_and_not_shown(home: Home, settings: Build, text: str) -> None:
    home.master_key.write_text(text)
    with pytest.raises(EnvironmentFault) as refused:
        master_key(home, settings())
    said = str(refused.value).replace(str(home.master_key), "")  # a folder's name may hold any two digits
    assert not text or text not in said
    with pytest.raises(EnvironmentFault):
        master_key(home, settings(key=text))


def test_neither_the_settings_nor_their_text_show_the_key(settings: Build) -> None:
    typed = secrets.token_hex(32)
    shown = settings(key=typed)
    assert typed not in repr(shown) + str(shown) + str(shown.model_dump()) + shown.model_dump_json()
