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

from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
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
        {"name": "anna", "role": "privacy-officer"}
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
