"""`init` makes a home and a key, once; `settings` shows what holds there, and no secret."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from commands import Command, as_process

from gateway.pseudonyms import key_weakness
from gateway.settings import Home, Settings

KEY = "00112233445566778899aabbccddeeff0123456789abcdef0fedcba987654321"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_init_makes_a_home_with_a_strong_key_of_its_own(command: Command, tmp_path: Path) -> None:
    ran = command("init", tmp_path / "a" / "home")
    assert ran.code == 0
    home = Home(tmp_path / "a" / "home")
    assert mode(home.root) == 0o700
    assert mode(home.master_key) == 0o600
    assert key_weakness(bytes.fromhex(home.master_key.read_text())) == ""
    assert str(home.master_key) in ran.out
    assert home.master_key.read_text().strip() not in ran.out + ran.err


def test_init_of_a_home_leaves_it_as_it_is(command: Command, home: Home) -> None:
    before = home.master_key.read_bytes()
    ran = command("init", home.root)
    assert ran.code == 0
    assert "as it was" in ran.out
    assert home.master_key.read_bytes() == before


def test_init_generates_no_key_where_one_is_given_elsewhere(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_KEY", KEY)
    assert command("init", tmp_path / "home").code == 0
    assert not (tmp_path / "home" / "keys" / "master.key").exists()


def test_init_does_not_take_over_a_folder_that_holds_something_else(command: Command, tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir(mode=0o755)
    (tmp_path / "documents" / "letter.txt").write_text("x")
    (tmp_path / "documents").chmod(0o755)
    ran = command("init", tmp_path / "documents")
    assert ran.code == 2
    assert "is not empty" in ran.err
    assert mode(tmp_path / "documents") == 0o755
    assert [path.name for path in (tmp_path / "documents").iterdir()] == ["letter.txt"]


def test_init_takes_a_fresh_volume(command: Command, tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".env").write_text("DEID_AE_TITLE=X\n")
    assert command("init", tmp_path).code == 0


def test_init_where_a_file_is_in_the_way_is_an_environment_fault(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        ran = command("init", path)
        assert ran.code == 3
        assert str(tmp_path / "file") in ran.err


def test_settings_lists_every_one_with_its_meaning(command: Command) -> None:
    ran = command("settings", "--json")
    assert ran.code == 0
    assert [row["variable"] for row in ran.json] == [f"DEID_{name.upper()}" for name in sorted(Settings.model_fields)]
    assert all(row["meaning"] for row in ran.json)
    assert "DEID_QUIET_S" in command("settings").out


def test_settings_shows_what_holds_in_a_home(command: Command, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.root / ".env").write_text("DEID_AE_TITLE=FROMFILE\nDEID_DICOM_PORT=104\n")
    monkeypatch.setenv("DEID_DICOM_PORT", "105")
    values = {row["variable"]: row["value"] for row in command("settings", "--home", home.root, "--json").json}
    assert (values["DEID_AE_TITLE"], values["DEID_DICOM_PORT"]) == ("FROMFILE", "105")
    monkeypatch.setenv("DEID_HOME", str(home.root))
    assert "FROMFILE" in command("settings").out


def test_settings_without_a_home_reads_no_file_that_happens_to_lie_here(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DEID_AE_TITLE=STRAY\n")
    ran = as_process("settings", cwd=tmp_path, env={"PYTHONPATH": str(Path(__file__).parents[2])})
    assert ran.code == 0
    assert "STRAY" not in ran.out


def test_settings_shows_no_secret(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEID_KEY", KEY)
    monkeypatch.setenv("DEID_DATABASE_URL", "postgresql+psycopg://user:pa/ss@w0rd@db.example/name?password=hidden")
    for ran in (command("settings"), command("settings", "--json")):
        assert ran.code == 0
        for secret in (KEY, "w0rd", "pa/ss", "hidden"):
            assert secret not in ran.out + ran.err
    assert "user:***@db.example/name" in ran.out


def test_settings_with_a_fault_still_lists_what_there_is(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEID_AE_TITEL", "X")
    ran = command("settings")
    assert ran.code == 2
    assert "DEID_AE_TITLE" in ran.out
    assert "DEID_AE_TITEL" in ran.err
    assert "deid-gateway settings" in ran.err


@pytest.mark.parametrize("words", [("serve",), ("status",), ("held", "list"), ("ledger", "verify")])
def test_an_unknown_setting_stops_every_command(
    command: Command, home: Home, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DEID_QUITE_S", "3")
    ran = command(*words, "--home", home.root)
    assert ran.code == 2
    assert "DEID_QUITE_S" in ran.err
    assert os.environ["DEID_QUITE_S"] == "3"


def test_wrong_values_are_told_all_at_once_and_not_quoted(
    command: Command, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_DICOM_PORT", "elevenhundred")
    monkeypatch.setenv("DEID_WORKERS", "0")
    ran = command("status", "--home", home.root)
    assert ran.code == 2
    assert "DEID_DICOM_PORT" in ran.err
    assert "DEID_WORKERS" in ran.err
    assert "elevenhundred" not in ran.err


def test_a_settings_file_in_another_encoding_is_told_without_its_text(command: Command, home: Home) -> None:
    (home.root / ".env").write_bytes(b"DEID_AE_TITLE=M\xfcller\n")
    for words in (("settings",), ("status",), ("serve",)):
        ran = command(*words, "--home", home.root)
        assert ran.code == 2
        assert f"{home.root / '.env'} is not UTF-8 text" in ran.err
        assert "ller" not in ran.err


def test_a_disk_that_is_full_leaves_no_half_key(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        ran = command("init", tmp_path / "home")
    assert ran.code == 3
    assert "No space left on device" in ran.err
    assert not (tmp_path / "home" / "keys" / "master.key").exists()
    assert command("init", tmp_path / "home").code == 0
    assert len((tmp_path / "home" / "keys" / "master.key").read_text().strip()) == 64
