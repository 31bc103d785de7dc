"""`policy signer|approve|approvals|revoke` and `policy new`, as people type them."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

from gateway.app.policy.approvals import UNCONFIRMED
from gateway.settings import SHIPPED_POLICIES, Home

sys.path.append(str(Path(__file__).parents[1] / "app"))

from scrubbing import write_study

WORDED = ("--by", "admin", "--reason", "by decision 7")
SIGNED = ("--role", "privacy-officer", "--reason", "reviewed with preview")


@pytest.fixture(autouse=True)
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Home) -> Path:
    """A home and a policies folder with one policy of its own, made from a starter."""
    folder = tmp_path / "policies"
    shutil.copytree(SHIPPED_POLICIES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("DEID_HOME", str(home.root))
    monkeypatch.setenv("DEID_POLICIES", str(folder))
    monkeypatch.setenv("DEID_WORKERS", "1")
    return folder


def sign(command: Command, tmp_path: Path, name: str = "jane", *more: object) -> Path:
    key = tmp_path / f"{name}.pem"
    words = ("--role", "privacy-officer", "--key", key, *WORDED, *(more or ("--no-passphrase",)))
    ran = command("policy", "signer", "new", name, *words)
    assert (ran.code, ran.err) == (0, "")
    return key


def own(command: Command, site: Path) -> Path:
    assert command("policy", "new", "ct-trial", "--from", "ct-header").code == 0
    path = site / "ct-trial.yaml"
    path.write_text(path.read_text().replace(UNCONFIRMED, "J. Doe, confirmed"))
    return path


def test_a_policy_from_a_starter_to_its_approval(command: Command, site: Path, tmp_path: Path) -> None:
    begun = command("policy", "new", "ct-trial", "--from", "ct-header")
    assert begun.code == 0
    assert "put in who answers (TO BE CONFIRMED)" in begun.out
    key = sign(command, tmp_path)
    early = command("policy", "approve", "ct-trial", "--by", "jane", "--key", key, *SIGNED)
    assert (early.code, "3 entries of gate.not_assessed say TO BE CONFIRMED" in early.err) == (2, True)
    path = site / "ct-trial.yaml"
    path.write_text(path.read_text().replace(UNCONFIRMED, "J. Doe, confirmed"))
    digest = command("policy", "check", path, "--json").json["sound"][0]["digest"]
    words = ("policy", "approve", "ct-trial", "--by", "jane", "--key", key, *SIGNED)
    assert command(*words, "--digest", "0" * 12).code == 2
    assert command(*words, "--digest", digest[:11]).code == 2
    done = command(*words, "--digest", digest[:12], "--json")
    assert (done.code, done.json["approved"], done.json["digest"]) == (0, True, digest)
    (listed,) = command("policy", "approvals", "ct-trial", "--json").json
    (record,) = listed["records"]
    assert (record["by"], record["role"], record["reason"]) == ("jane", "privacy-officer", "reviewed with preview")
    shown = command("policy", "approvals")
    assert shown.code == 1  # those that were shipped are not approved
    assert "ct-trial " in shown.out
    assert "approved by jane" in shown.out
    assert "research-basic" in shown.out
    assert command("ledger", "verify").code == 0


def test_what_is_revoked_is_not_approved(command: Command, site: Path, tmp_path: Path) -> None:
    own(command, site)
    key = sign(command, tmp_path)
    words = ("ct-trial", "--by", "jane", "--key", key, *SIGNED)
    assert command("policy", "approve", *words).code == 0
    taken = command("policy", "revoke", *words)
    assert (taken.code, "not approved: nobody approved this digest; the approval of jane was revoked" in taken.out) == (
        0,
        True,
    )
    assert command("policy", "approvals", "ct-trial").code == 1


def test_two_people_sign_with_keys_and_passphrases_of_their_own(
    command: Command, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_APPROVERS_NEEDED", "2")
    own(command, site)
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse battery\n")
    open_to_others = command(
        "policy", "signer", "new", "x", "--role", "a", "--key", tmp_path / "x.pem", *WORDED, "--passphrase-file", secret
    )
    assert (open_to_others.code, (tmp_path / "x.pem").exists()) == (3, False)
    secret.chmod(0o600)
    jane = sign(command, tmp_path, "jane", "--passphrase-file", secret)
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "john.pem"], cwd=tmp_path, check=True)
    subprocess.run(["openssl", "pkey", "-in", "john.pem", "-pubout", "-out", "pub.pem"], cwd=tmp_path, check=True)
    (tmp_path / "john.pem").chmod(0o600)
    words = ("john", "--role", "privacy-officer", "--public", tmp_path / "pub.pem", *WORDED)
    assert command("policy", "signer", "add", *words).code == 0
    approve = ("policy", "approve", "ct-trial", *SIGNED)
    first = command(*approve, "--by", "jane", "--key", jane, "--passphrase-file", secret)
    assert (first.code, "1 of 2 people approved" in first.out) == (1, True)
    wrong = command(*approve, "--by", "john", "--key", jane, "--passphrase-file", secret)
    assert (wrong.code, "this is not the key of john" in wrong.err) == (2, True)
    second = command(*approve, "--by", "john", "--key", tmp_path / "john.pem")
    assert (second.code, "approved by jane and john" in second.out) == (0, True)
    assert [row["known"] for row in command("policy", "signer", "list", "--json").json] == [True, True]
    assert command("policy", "signer", "remove", "john", *WORDED).code == 0
    assert command("policy", "approvals", "ct-trial").code == 1


def test_without_a_terminal_a_passphrase_comes_from_a_file_or_not_at_all(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse battery\n" * 2))
    key = tmp_path / "jane.pem"
    ran = command("policy", "signer", "new", "jane", "--role", "privacy-officer", "--key", key, *WORDED)
    assert (ran.code, key.exists()) == (2, False)
    assert "--passphrase-file" in ran.err


def test_a_private_key_stays_outside_the_home_and_none_is_shown(command: Command, home: Home, tmp_path: Path) -> None:
    inside = ("jane", "--role", "a", "--key", home.root / "jane.pem", *WORDED, "--no-passphrase")
    ran = command("policy", "signer", "new", *inside)
    assert (ran.code, (home.root / "jane.pem").exists()) == (2, False)
    key = sign(command, tmp_path)
    again = command("policy", "signer", "new", "jane", "--role", "a", "--key", tmp_path / "2.pem", *WORDED)
    assert (again.code, (tmp_path / "2.pem").exists()) == (2, False)
    bad = command(
        "policy", "signer", "new", "Bad Name", "--role", "a", "--key", tmp_path / "3.pem", *WORDED, "--no-passphrase"
    )
    assert (bad.code, (tmp_path / "3.pem").exists()) == (2, False)
    secret = "".join(key.read_text().splitlines()[1:-1])
    kept = b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    listed = command("policy", "signer", "list")
    assert "jane" in listed.out
    (home.root / "approvers.yaml").write_text(
        (home.root / "approvers.yaml").read_text().replace("privacy-officer", "admin")
    )
    changed = command("policy", "signer", "list")
    assert (changed.code, "not in the ledger" in changed.out) == (3, True)


def test_scrub_takes_only_an_approved_policy_where_the_site_says_so(
    command: Command, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_REQUIRE_APPROVAL", "true")
    own(command, site)
    write_study(tmp_path / "src", 1, 1)
    scrub = ("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "ct-trial")
    refused = command(*scrub)
    assert (refused.code, "is not approved: nobody approved this digest" in refused.err) == (2, True)
    assert not (tmp_path / "dst").exists()
    key = sign(command, tmp_path)
    assert command("policy", "approve", "ct-trial", "--by", "jane", "--key", key, *SIGNED).code == 0
    assert command(*scrub).code == 0


def test_starters_are_listed_and_a_wrong_name_is_helped(command: Command) -> None:
    starters = ["brain-lesion", "ct-header", "cxr-adjustable", "fundus-adjustable", "head-mr-deface"]
    assert [row["starter"] for row in command("policy", "new", "--json").json] == starters
    assert "head-mr-deface" in command("policy", "new").out
    ran = command("policy", "new", "x", "--from", "ct-heder")
    assert (ran.code, "did you mean ct-header?" in ran.err) == (2, True)
    assert command("policy", "new", "x").code == 2
    assert command("policy", "new", "research-basic", "--from", "ct-header").code == 2
