"""`vault open|list|erase`, as a person types them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from commands import Command

from gateway.settings import Home
from gateway.vault import Identity, Vault, vault_key

WHO = Identity("brain", "SUBJ-1", "2.25.77", (("LEAK0001", "Synth Hospital"), ("LEAK0002", "")), "1.2.3.4711", ("AC1",))
WORDED = ("--role", "dpo", "--reason", "incidental finding")


@pytest.fixture
def kept(home: Home) -> Home:
    vault = Vault(home.vault, vault_key(home.keys, home.vault, make=True))
    vault.keep(WHO, ("dpo",), work="w1", now=time.time(), days=30)
    return home


def test_opening_shows_who_it_is_and_writes_the_ledger(command: Command, kept: Home) -> None:
    ran = command("vault", "open", *WORDED, "SUBJ-1", "--home", kept.root)
    assert ran.code == 0
    for word in ("LEAK0001 of Synth Hospital", "LEAK0002", "1.2.3.4711", "AC1", "SUBJ-1"):
        assert word in ran.out
    assert b"vault_opened" in kept.ledger.read_bytes()
    assert b"LEAK" not in kept.ledger.read_bytes()
    assert command("ledger", "verify", "--home", kept.root).code == 0


def test_the_json_holds_the_same(command: Command, kept: Home) -> None:
    (row,) = command("vault", "open", *WORDED, "2.25.77", "--by", "J. Doe", "--home", kept.root, "--json").json
    assert row["patient_ids"] == [{"id": "LEAK0001", "issuer": "Synth Hospital"}, {"id": "LEAK0002", "issuer": ""}]
    assert (row["study_instance_uid"], row["accession_numbers"]) == ("1.2.3.4711", ["AC1"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("open", "--role", "nurse", "--reason", "curious", "SUBJ-1"), "may not see"),
        (("open", "--role", "dpo", "--reason", "x", "SUBJ-1"), "a reason (--reason) that says something"),
        (("open", "--role", "dpo", "--reason", "incidental finding", "SUBJ-2"), "not in the vault"),
        (("open", "--role", "dpo", "--reason", "for LEAK0001", "SUBJ-1"), "write it without"),
        (("erase", "--reason", "consent withdrawn", "--by", "J. Doe", "SUBJ-2"), "in the vault"),
        (("erase", "--reason", "LEAK0001 withdrew", "--by", "J. Doe", "SUBJ-1"), "write it without"),
    ],
)
def test_what_is_not_possible_ends_with_exit_2_and_shows_nothing(
    command: Command, kept: Home, words: tuple[str, ...], says: str
) -> None:
    ran = command("vault", *words, "--home", kept.root)
    assert (ran.code, says in ran.err) == (2, True)
    assert "LEAK" not in ran.out + ran.err


def test_a_tampered_record_is_named_with_exit_3(command: Command, kept: Home) -> None:
    (path,) = kept.vault.rglob("*.rec")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    ran = command("vault", "open", *WORDED, "SUBJ-1", "--home", kept.root)
    assert (ran.code, path.name in ran.err) == (3, True)
    assert "LEAK" not in ran.out + ran.err


def test_a_lost_key_is_told_with_exit_3(command: Command, kept: Home) -> None:
    (kept.keys / "vault.key").unlink()
    for words in (("open", *WORDED, "SUBJ-1"), ("list",)):
        ran = command("vault", *words, "--home", kept.root)
        assert (ran.code, "vault key" in ran.err) == (3, True)
    assert command("keys", "verify", "--home", kept.root).code == 3


def test_the_list_holds_numbers_only(command: Command, kept: Home) -> None:
    ran = command("vault", "list", "--home", kept.root, "--json")
    assert ran.json == [{"project": "brain", "people": 1, "records": 1, "expired": 0}]
    assert "SUBJ-1" not in command("vault", "list", "--home", kept.root).out


def test_an_empty_vault_says_so(command: Command, home: Home) -> None:
    assert "empty" in command("vault", "list", "--home", home.root).out


def test_erasing_takes_the_records(command: Command, kept: Home) -> None:
    words = ("--reason", "consent withdrawn", "--by", "J. Doe", "--home", kept.root)
    assert command("vault", "erase", "SUBJ-1", *words, "--json").json == {"removed": 1}
    assert list(Path(kept.vault).rglob("*.rec")) == []
    assert b"vault_erased" in kept.ledger.read_bytes()
