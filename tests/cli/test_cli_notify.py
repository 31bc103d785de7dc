"""`notify test|events|list`: what a person sees of messages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from commands import Command

from gateway.app.message.notices import EVENTS, Notice, identity
from gateway.app.message.queue import Outbox
from gateway.settings import Home

KEY = "k" * 40


def test_events_are_listed_with_when_they_are_told(command: Command) -> None:
    rows = command("notify", "events", "--json").json
    assert {row["event"] for row in rows} == set(EVENTS)
    assert {row["event"] for row in rows if row["told"] == "collected"} == {
        "held",
        "release_blocked",
        "release_cleared",
        "recalled",
    }


def test_without_a_channel_a_test_says_what_to_set(command: Command, home: Home) -> None:
    ran = command("notify", "test", "--home", home.root)
    assert ran.code == 2
    assert "DEID_NOTIFY_WEBHOOK_URL" in ran.err


def test_a_test_that_does_not_arrive_ends_with_3_and_shows_no_secret(
    command: Command, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_NOTIFY_WEBHOOK_URL", "http://127.0.0.1:1/token-of-the-hook")
    monkeypatch.setenv("DEID_NOTIFY_WEBHOOK_KEY", KEY)
    ran = command("notify", "test", "--home", home.root)
    assert ran.code == 3
    assert "the connection was refused" in ran.out
    assert "no message left by webhook" in ran.err
    shown = command("settings", "--home", home.root)
    for text in (ran.out, ran.err, shown.out):
        assert "token-of-the-hook" not in text
        assert KEY not in text
    assert "(set)" in shown.out


def test_bad_settings_are_named(command: Command, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEID_NOTIFY_MAIL_URL", "smtp://mail.example")
    ran = command("notify", "test", "--home", home.root)
    assert ran.code == 2
    assert "DEID_NOTIFY_MAIL_FROM" in ran.err


def test_what_waits_is_listed(command: Command, home: Home) -> None:
    assert "nothing waits" in command("notify", "list", "--home", home.root).out
    box = Outbox(home.root)
    box.open()
    box.add([Notice(identity("a"), "held", time.time(), reason="no_route")])
    box.bundle([Notice(identity("b"), "disk_low", time.time())], ["mail"], time.time())
    rows = command("notify", "list", "--home", home.root, "--json").json
    assert [(row["channel"], row["subject"]) for row in rows] == [
        ("mail", "disk low"),
        ("being collected", "1 study held"),
    ]


def test_the_queue_of_a_home_that_never_told_anything_is_empty(command: Command, home: Home) -> None:
    assert command("notify", "list", "--home", home.root, "--json").json == []
    assert not Path(home.root / "notify").exists()
