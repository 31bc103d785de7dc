"""`review`: accounts, the page alone, the page beside `serve`; and that the command line cannot sign as a page does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from commands import Command, as_process, clean_environment
from houses import house, study, to_folder
from running import GatewayProcess

from gateway.app.review.accounts import put_account
from gateway.app.review.page import accounts_of, people_of
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.review import Role
from gateway.review.provider import Identity
from gateway.settings import Home, load_settings

PASSWORD = "a quite long passphrase"


def add(home: Home, name: str, role: str, password: str = PASSWORD) -> object:
    return as_process("review", "user", "add", name, "--role", role, "--home", home.root, stdin=password.encode())


def events(home: Home) -> list[dict[str, object]]:
    ledger = Ledger(home.ledger, Keys(master_key(home, load_settings(home.root))).ledger)
    assert ledger.verify().sound
    return list(ledger.lines())


def test_accounts_are_added_changed_listed_and_removed_each_with_a_line_in_the_ledger(
    home: Home, command: Command
) -> None:
    assert add(home, "anna", "reviewer").code == 0  # type: ignore[attr-defined]
    assert add(home, "anna", "privacy-officer").out == "anna is now privacy-officer, with the new password\n"  # type: ignore[attr-defined]
    assert command("review", "user", "list", "--home", home.root, "--json").json == [
        {"name": "anna", "role": "privacy-officer", "by": "password"}
    ]
    assert command("review", "user", "remove", "anna", "--home", home.root).code == 0
    assert command("review", "user", "list", "--home", home.root, "--json").json == []
    assert command("review", "user", "remove", "anna", "--home", home.root).code == 2
    lines = [(line["event"], line["account"], line.get("role")) for line in events(home)]
    assert lines == [
        ("account_added", "anna", "reviewer"),
        ("account_changed", "anna", "privacy-officer"),
        ("account_removed", "anna", None),
    ]
    assert PASSWORD not in home.ledger.read_text()


def test_tokens_are_made_listed_and_revoked_and_the_secret_is_told_once(home: Home, command: Command) -> None:
    add(home, "anna", "reviewer")
    where = ("--home", home.root)
    made = command(
        *("review", "token", "new", "nightly", "--account", "anna", "--days", "7"),
        *("--scope", "studies:read", "--scope", "decisions:write", *where),
    )
    assert made.code == 0
    secret = made.out.strip()
    assert secret.startswith("deid_")
    assert len(secret) == len("deid_") + 43  # 256 bits
    listed = command("review", "token", "list", *where, "--json")
    (row,) = listed.json
    assert secret not in listed.out
    assert (row["name"], row["account"], row["state"]) == ("nightly", "anna", "counts")
    assert row["scopes"] == "decisions:write studies:read"
    assert command("review", "token", "revoke", "nightly", *where).code == 0
    assert command("review", "token", "revoke", "nightly", *where).code == 2
    assert command("review", "token", "list", *where, "--json").json == []
    assert [line["event"] for line in events(home)][1:] == ["token_made", "token_revoked"]


def test_tokens_go_with_their_account_and_do_not_come_back_with_its_name(home: Home, command: Command) -> None:
    where = ("--home", home.root)
    for name in ("anna", "ben"):
        put_account(home, load_settings(home.root), name, Role.REVIEWER, PASSWORD, by="uid 0")
        command(*("review", "token", "new", f"of-{name}", "--account", name, "--scope", "studies:read", *where))
    assert command("review", "user", "remove", "anna", *where).code == 0
    put_account(home, load_settings(home.root), "anna", Role.PRIVACY_OFFICER, PASSWORD, by="uid 0")  # somebody else
    assert [row["name"] for row in command("review", "token", "list", *where, "--json").json] == ["of-ben"]
    told = [(line["event"], line.get("token", line.get("account"))) for line in events(home)][4:]
    assert told == [("token_revoked", "of-anna"), ("account_removed", "anna"), ("account_added", "anna")]


def test_of_somebody_who_came_by_the_provider_only_the_name_is_taken_away_and_that_is_said(
    home: Home, command: Command
) -> None:
    where = ("--home", home.root)
    people_of(home).meet(Identity("anna.b", Role.REVIEWER, "a subject"), accounts_of(home))
    assert command("review", "user", "list", *where, "--json").json == [
        {"name": "anna.b", "role": "reviewer", "by": "provider"}
    ]
    said = command("review", "user", "remove", "anna.b", *where)
    assert "may no longer" not in said.out
    assert "at the sign-in provider" in " ".join(said.out.split())
    assert people_of(home).all() == {}
    put_account(home, load_settings(home.root), "ben", Role.VIEWER, PASSWORD, by="uid 0")
    assert command("review", "user", "remove", "ben", *where).out == "ben may no longer sign in\n"


def test_a_token_of_nobody_or_beyond_its_role_is_refused_with_a_reason(home: Home, command: Command) -> None:
    add(home, "vera", "viewer")
    for account, scope, says in (
        ("nobody", "studies:read", "no account nobody"),
        ("vera", "decisions:write", "no use for decisions:write"),
        ("vera", "all", "studies:read"),
    ):
        made = command(*("review", "token", "new", "tok", "--account", account, "--scope", scope, "--home", home.root))
        assert made.code == 2
        assert says in made.err


def test_the_document_of_the_api_is_printed_without_a_home(command: Command) -> None:
    told = command("review", "openapi").json
    assert told["openapi"] == "3.1.0"
    assert "/studies/{key}/decisions" in told["paths"]


@pytest.mark.parametrize(
    ("name", "role", "password", "says"),
    [
        ("anna", "emperor", PASSWORD, "viewer, reviewer, privacy-officer, vault-keeper, admin"),
        ("Anna", "reviewer", PASSWORD, "small letters"),
        ("a", "reviewer", PASSWORD, "2 to 63"),
        ("anna@review", "reviewer", PASSWORD, "small letters"),
        ("anna", "reviewer", "short", "12 to 256 characters"),
        ("anna", "reviewer", "x" * 257, "12 to 256 characters"),
        ("anna", "reviewer", "anna-anna-anna", "not in it"),
        ("anna", "reviewer", "aaaaaaaaaaaaa", "different characters"),
        ("anna", "reviewer", "", "12 to 256 characters"),
    ],
)
def test_what_no_account_may_have_is_refused_with_its_reason(
    home: Home, command: Command, monkeypatch: pytest.MonkeyPatch, name: str, role: str, password: str, says: str
) -> None:
    monkeypatch.setattr("gateway.cli.review._password", lambda: password)
    ran = command("review", "user", "add", name, "--role", role, "--home", home.root)
    assert ran.code == 2
    assert says in ran.err
    assert not (home.root / "review").exists()
    assert not home.ledger.exists()


def login_page(url: str, host: str = "") -> str:
    request = Request(f"{url}/login", headers={"Host": host} if host else {})
    with urlopen(request, timeout=10) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        assert "server" not in answer.headers
        return str(answer.read().decode())


def test_the_page_alone_serves_until_it_is_told_to_stop(home: Home, tmp_path: Path) -> None:
    environment = clean_environment(DEID_HOME=str(home.root), DEID_REVIEW_PORT="0")
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "review"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline().decode()
        assert said.startswith("review page: http://127.0.0.1:")
        assert "review user add" in process.stdout.readline().decode()
        assert "Sign in" in login_page(said.split()[-1])
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_page_comes_with_serve_where_a_port_is_set(home: Home, tmp_path: Path) -> None:
    policies = to_folder(tmp_path / "policies", tmp_path / "archive")
    gateway = GatewayProcess(home, policies, {"DEID_REVIEW_PORT": "0"})
    gateway.start()
    try:
        deadline = time.monotonic() + 20
        while "review page:" not in gateway.log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        url = gateway.log.read_text().partition("review page: ")[2].split()[0]
        assert "Sign in" in login_page(url)
    finally:
        assert gateway.stop() == 0


def test_a_page_that_would_send_passwords_in_the_clear_does_not_start(home: Home) -> None:
    ran = as_process("review", env={"DEID_HOME": str(home.root), "DEID_REVIEW_HOST": "0.0.0.0"})
    assert ran.code == 2
    assert "without TLS" in ran.err


def test_nobody_signs_as_a_page_does_at_the_command_line(home: Home, tmp_path: Path, command: Command) -> None:
    with house(home, to_folder(tmp_path / "policies", tmp_path / "archive")) as made:
        key = made.deliver(*study())
        job = made.job(key).job_key
    ran = command("held", "release", job, "--by", "anna@review", "--reason", "looked at it", "--home", home.root)
    assert ran.code == 2
    assert "@review" in ran.err


def test_help_loads_no_web_framework() -> None:
    code = "import sys; from gateway.cli import run; run(['--help']); print('jinja2' in sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ), check=True)
    assert ran.stderr.strip() == "False"
    assert "review" in ran.stdout
