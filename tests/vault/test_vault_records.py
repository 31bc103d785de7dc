"""Records of the vault: sealed, bound to their place, found from what left, gone when they should be."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import EnvironmentFault
from gateway.pseudonyms import key_id
from gateway.vault import Identity, Vault, key_fault, vault_key

DAY_S = 86400
NOW = 20_000.5 * DAY_S
KEY = secrets.token_bytes(32)
WHO = Identity("brain", "SUBJ-1", "2.25.77", (("LEAK0001", "Synth Hospital"),), "1.2.3.4711", ("LEAKACC1",))
PLANTED = (b"LEAK0001", b"Synth Hospital", b"1.2.3.4711", b"LEAKACC1")


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault", KEY)


def keep(vault: Vault, who: Identity = WHO, work: str = "w1", days: int = 10, now: float = NOW) -> str:
    return vault.keep(who, ("dpo",), work=work, now=now, days=days)


def test_what_was_kept_is_opened_from_the_pseudonym_and_from_the_new_study_uid(vault: Vault) -> None:
    name = keep(vault)
    assert vault.find("SUBJ-1") == vault.find("2.25.77") == vault.find("SUBJ-1", "brain") == [name]
    opened = vault.open(name)
    assert (opened.identity, opened.roles) == (WHO, ("dpo",))
    assert opened.head.kept_at <= NOW < NOW + 10 * DAY_S <= opened.head.until


def test_nothing_else_finds_it(vault: Vault) -> None:
    keep(vault)
    for word in ("LEAK0001", "1.2.3.4711", "LEAKACC1", "SUBJ-2", "", "../brain", "*"):
        assert vault.find(word) == []
    assert vault.find("SUBJ-1", "lung") == []


def test_neither_names_nor_bytes_of_the_folder_tell_anything(vault: Vault) -> None:
    keep(vault)
    for path in vault.root.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
        assert not any(word in str(path.relative_to(vault.root)).encode() for word in (*PLANTED, b"SUBJ-1", b"2.25.77"))
        if path.is_file():
            assert not any(word in path.read_bytes() for word in (*PLANTED, b"SUBJ-1", b"2.25.77"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.data())
def test_a_record_with_one_changed_byte_does_not_open_and_says_which(vault: Vault, data: st.DataObject) -> None:
    name = keep(vault)
    path = vault.root / name
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :])
    with pytest.raises(EnvironmentFault) as refused:
        vault.open(name)
    assert name in str(refused.value)
    assert not any(word.decode() in str(refused.value) for word in PLANTED)


@pytest.mark.parametrize("length", [0, 3, 38, 39, 54])
def test_a_record_that_is_cut_off_does_not_open(vault: Vault, length: int) -> None:
    name = keep(vault)
    (vault.root / name).write_bytes((vault.root / name).read_bytes()[:length])
    with pytest.raises(EnvironmentFault, match="vault record"):
        vault.open(name)


def test_a_record_in_the_place_of_another_does_not_open(vault: Vault) -> None:
    mine = keep(vault)
    other = keep(vault, Identity("brain", "SUBJ-2", "2.25.78", (("LEAK0002", ""),), "1.2.3.4712", ()))
    (vault.root / mine).replace(vault.root / other)
    with pytest.raises(EnvironmentFault, match="changed, moved or renamed"):
        vault.open(other)


def test_another_key_is_named_and_opens_nothing(vault: Vault) -> None:
    name = keep(vault)
    other = secrets.token_bytes(32)
    with pytest.raises(EnvironmentFault) as refused:
        Vault(vault.root, other).open(name)
    assert key_id(KEY) in str(refused.value)
    assert key_id(other) in str(refused.value)
    assert Vault(vault.root, other).find("SUBJ-1") == []


def test_a_replay_writes_the_same_record_and_another_job_one_of_its_own(vault: Vault) -> None:
    assert keep(vault) == keep(vault)
    assert len(vault.find("SUBJ-1")) == 1
    keep(vault, work="w2")
    assert len(vault.find("SUBJ-1")) == 2


def test_many_at_once_all_arrive(vault: Vault) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: keep(vault, work=f"w{n % 20}"), range(40)))
    names = vault.find("SUBJ-1")
    assert len(names) == 20
    assert {vault.open(name).identity for name in names} == {WHO}


def test_a_crash_while_a_record_is_written_leaves_the_old_one(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    name = keep(vault)

    def gone(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("gateway.durable.publish", gone)
        with pytest.raises(KeyboardInterrupt):
            keep(vault)
        with pytest.raises(KeyboardInterrupt):
            keep(vault, work="w2")
    assert vault.find("SUBJ-1") == [name]
    assert vault.open(name).identity == WHO


def test_records_end_when_their_time_is_over_and_not_before(vault: Vault) -> None:
    short, long = keep(vault, days=10), keep(vault, work="w2", days=30)
    assert vault.expired(NOW + 10 * DAY_S) == []
    assert vault.expired(NOW + 11 * DAY_S) == [short]
    vault.remove([short])
    assert vault.find("SUBJ-1") == [long]
    vault.remove([long, long])
    assert list(vault.root.glob("*/*")) == []


def test_projects_that_use_one_pseudonym_for_two_people_stay_apart(vault: Vault) -> None:
    mine = keep(vault)
    other = keep(vault, Identity("lung", "SUBJ-1", "2.25.79", (("LEAK0002", ""),), "1.2.3.4713", ()))
    assert sorted(vault.find("SUBJ-1")) == sorted([mine, other])
    assert vault.find("SUBJ-1", "lung") == [other]


# -- its key ----------------------------------------------------------------------------------------------------------


def test_the_key_is_made_once_closed_to_others_and_found_again(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: vault_key(tmp_path, tmp_path / "vault", make=True), range(8)))
    assert len(found) == 1
    assert vault_key(tmp_path, tmp_path / "vault") in found
    assert (tmp_path / "vault.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["vault.key"]


def test_a_lost_key_is_not_made_anew_over_records(tmp_path: Path) -> None:
    keep(Vault(tmp_path / "vault", vault_key(tmp_path, tmp_path / "vault", make=True)))
    assert key_fault(tmp_path, tmp_path / "vault") == ""
    (tmp_path / "vault.key").unlink()
    with pytest.raises(EnvironmentFault, match="is gone"):
        vault_key(tmp_path, tmp_path / "vault", make=True)
    assert "restore it" in key_fault(tmp_path, tmp_path / "vault")


STRONG = bytes(range(7, 39)).hex()


@pytest.mark.parametrize(("text", "mode"), [("00" * 32, 0o600), ("zz", 0o600), (STRONG, 0o644)])
def test_a_weak_or_open_key_is_refused(tmp_path: Path, text: str, mode: int) -> None:
    (tmp_path / "vault.key").write_text(text)
    (tmp_path / "vault.key").chmod(mode)
    with pytest.raises(EnvironmentFault, match="vault key") as refused:
        vault_key(tmp_path, tmp_path / "vault")
    assert text not in str(refused.value)
