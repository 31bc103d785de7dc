"""Destinations that are paused or out of their hours, and which study goes first."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from houses import House, edit, house, study
from running import running, send, the_job, wait_idle

from gateway.app import gauges
from gateway.app.routing.openings import Openings, set_paused
from gateway.cli import run
from gateway.flow import Leg, Next
from gateway.settings import Home
from gateway.study import State


def hours_from_now(policies: Path, first_h: int, last_h: int) -> None:
    """The archive is sent to from so many hours from now, for as long as that."""
    now = datetime.now(UTC)
    begin, end = now + timedelta(hours=first_h), now + timedelta(hours=last_h)
    path = policies / "destinations.yaml"
    body = yaml.safe_load(path.read_text())
    entry = body["research-archive"]
    url = entry["url"] if isinstance(entry, dict) else entry
    body["research-archive"] = {"url": url, "hours": f"{begin:%H:%M}-{end:%H:%M}"}
    path.write_text(yaml.safe_dump(body))


def pause(made: House, name: str = "research-archive", *, paused: bool = True) -> bool:
    return set_paused(made.parts.home, made.parts.settings, name, paused=paused, actor="admin", reason="move of disks")


def files(target: Path) -> int:
    return len(list(target.rglob("*.dcm")))


def test_nothing_is_sent_to_a_paused_destination_and_all_of_it_when_it_is_resumed(
    gateway_house: House, target: Path
) -> None:
    assert pause(gateway_house)
    key = gateway_house.deliver(*study(2))
    assert gateway_house.ends(key) == [("research-archive", "cleared", "")]
    assert gateway_house.job(key).attempt == 0
    assert gateway_house.steps.pending() == []
    assert files(target) == 0
    assert not pause(gateway_house)
    assert pause(gateway_house, paused=False)
    gateway_house.settle()
    assert gateway_house.ends(key) == [("research-archive", "sent", "")]
    assert files(target) == 2
    lines = [line for line in gateway_house.parts.ledger.lines() if line["event"].startswith("destination_")]
    assert [(line["event"], line["destination"], line["actor"], line["reason_given"]) for line in lines] == [
        ("destination_paused", "research-archive", "admin", "move of disks"),
        ("destination_resumed", "research-archive", "admin", "move of disks"),
    ]


def test_out_of_its_hours_a_destination_gets_nothing_and_in_them_everything(
    home: Home, policies: Path, target: Path
) -> None:
    hours_from_now(policies, 2, 4)
    with house(home, policies) as made:
        key = made.deliver(*study(2))
        assert made.ends(key) == [("research-archive", "cleared", "")]
        assert files(target) == 0
        gauges.refresh(made.parts)
        assert made.metric("deid_destination_open", destination="research-archive") == 0
        assert made.metric("deid_destination_waiting_jobs", destination="research-archive") == 1
        assert made.metric("deid_oldest_unfinished_seconds") == 0  # nothing is late: it waits as it should
        hours_from_now(policies, -1, 1)
        made.parts.policies.reload()
        made.settle()
        assert made.ends(key) == [("research-archive", "sent", "")]
        gauges.refresh(made.parts)
        assert made.metric("deid_destination_open", destination="research-archive") == 1
    assert files(target) == 2


def test_a_note_of_a_recall_waits_for_a_pause_and_not_for_hours(gateway_house: House, policies: Path) -> None:
    hours_from_now(policies, 2, 4)
    gateway_house.parts.policies.reload()
    note, leg = Next(Leg.RECALL, "1", 1), Next(Leg.FORWARD, "j", 1)

    def lets() -> tuple[bool, bool]:
        now = Openings(gateway_house.parts.database, gateway_house.parts.policies.current.destinations)
        return now.lets(note, "research-archive"), now.lets(leg, "research-archive")

    assert lets() == (True, False)
    pause(gateway_house)
    assert lets() == (False, False)


def test_what_waits_is_told(gateway_house: House) -> None:
    pause(gateway_house)
    pause(gateway_house, "an-old-one")
    gateway_house.deliver(*study(1))
    database, known = gateway_house.parts.database, gateway_house.parts.policies.current.destinations
    told = {one.destination: one for one in Openings(database, known).all(database.cleared_by_destination())}
    assert told.keys() == {*known, "an-old-one"}
    archive = told["research-archive"]
    assert (archive.state, archive.waiting, archive.actor, archive.opens_at) == ("paused", 1, "admin", None)


def test_a_running_gateway_takes_up_what_waited(
    home: Home, policies: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.app.poller.RECONCILE_S", 0.3)
    monkeypatch.setattr("gateway.app.serve.RECONCILE_S", 0.3)
    with running(home, policies) as gateway:
        p = gateway.parts
        set_paused(p.home, p.settings, "research-archive", paused=True, actor="admin", reason="disks")
        datasets = study()
        for ds in datasets:
            assert send(ds, gateway.receiver.port) == 0x0000
        deadline = time.monotonic() + 120
        while p.database.cleared_by_destination().get("research-archive") != 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)  # some turns of the poller
        assert {the_job(gateway, ds).state for ds in datasets} == {State.CLEARED}
        assert files(target) == 0
        set_paused(p.home, p.settings, "research-archive", paused=False, actor="admin", reason="disks")
        wait_idle(gateway, seconds=120)
        assert {the_job(gateway, ds).state for ds in datasets} == {State.SENT}
    assert files(target) == 1


def test_the_priority_of_its_rule_is_the_rank_of_a_study(home: Home, policies: Path) -> None:
    for name, rank in (("urgent", 2), ("routine", 3), ("background", 4)):
        edit(policies, "routes", lambda body, name=name: [rule.update(priority=name) for rule in body["routes"]])
        with house(home, policies) as made:
            key = made.receive(*study(1))
            made.close()
            (intake,) = made.steps.pending()
            assert made.steps.rank(intake) == 1
            made.run_once()
            (scrub,) = made.steps.pending()
            assert (scrub.leg, made.steps.rank(scrub)) == (Leg.SCRUB, rank)
            made.settle()
            assert made.ends(key) == [("research-archive", "sent", "")]


def test_commands_pause_resume_and_list(home: Home, policies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        code = run(["destination", *arguments, "--home", str(home.root)])
        done = capsys.readouterr()
        return code, done.out + done.err

    (home.root / ".env").write_text(f"DEID_POLICIES={policies}\n")
    who = ("--by", "admin", "--reason", "move of disks")
    assert said("pause", "research-archive", *who) == (0, "research-archive is paused\n")
    code, text = said("pause", "research-archive", *who)
    assert (code, "paused already" in text) == (2, True)
    code, text = said("pause", "research-archif", *who)
    assert (code, "no destination research-archif" in text) == (2, True)
    assert said("resume", "research-archive", "--by", "jane@review", "--reason", "move of disks")[0] == 2  # not hers
    code, text = said("list", "--json")
    told = {one["destination"]: one for one in json.loads(text)}
    assert (told["research-archive"]["state"], told["research-archive"]["actor"]) == ("paused", "admin")
    assert run(["status", "--home", str(home.root)]) == 0
    assert "research-archive is paused; studies that wait for it: 0" in capsys.readouterr().out
    assert said("resume", "research-archive", *who) == (0, "research-archive is resumed\n")
    assert said("resume", "research-archive", *who)[0] == 2
