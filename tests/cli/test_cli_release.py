"""`release list|show|close` on tables that a gateway left, with no gateway running."""

from __future__ import annotations

import json

import pytest
from commands import Command

from gateway.database import Database, Job, NewMember
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, load_settings
from gateway.study import State

WORDS = ("--by", "dpo", "--reason", "the month is over")
FIGURE = {
    "check": "linkability",
    "scope": "release",
    "limit": 0.1,
    "card": "gradients",
    "attack": "same_scan",
    "metric": "cosine",
    "estimate": 0.7,
    "upper": 0.81,
    "people": 150,
    "note": "",
}


@pytest.fixture
def database(home: Home) -> Database:
    """lung-1 was blocked with three studies of two people, lung-2 is open with one."""
    tables = Database.in_home(home.database)
    for number, person in ((1, "a"), (2, "a"), (3, "b"), (4, "c")):
        study, key = f"s{number}", f"j{number}"
        tables.record_instance(study_key=study, name="0001.dcm", sop_key="sop", size_bytes=1)
        tables.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
        job = Job(key, study, 1, "ct", "demo", "lung", "ab" * 32, "research-archive")
        tables.route_study(study, 1, [job])
        row = tables.job(key)
        assert row is not None
        if number == 4:
            tables.close_release(1)
            at = "linkability by gradients, same_scan: at most 0.810, limit 0.1 (estimate 0.700, 150 people)"
            facts = {"state": "blocked", "reason": "linkability", "at": at, "scores": json.dumps([FIGURE])}
            held = {"state": State.HELD, "reason": "linkability", "held_in": "release"}
            tables.end_audit(1, facts, ["j1", "j2", "j3"], held)
        tables.join_release(row, {"state": State.AWAITING_RELEASE}, NewMember(person, study, f"{key}/r1"))
    return tables


def test_no_release_is_said(command: Command, home: Home) -> None:
    ran = command("release", "list", "--home", home.root)
    assert (ran.code, ran.err) == (0, "")
    assert "no release yet" in ran.out
    assert command("release", "list", "--home", home.root, "--json").json == []


def test_releases_are_listed_with_people_and_reasons(command: Command, home: Home, database: Database) -> None:
    rows = command("release", "list", "--home", home.root, "--json").json
    assert [(r["release"], r["state"], r["people"], r["studies"], r["reason"]) for r in rows] == [
        ("lung-1", "blocked", 2, 3, "linkability"),
        ("lung-2", "open", 1, 1, ""),
    ]
    out = command("release", "list", "--home", home.root).out
    assert "lung-1" in out
    assert "can be linked to originals" in out


def test_one_release_is_shown_with_its_figures(command: Command, home: Home, database: Database) -> None:
    found = command("release", "show", "lung-1", "--home", home.root, "--json").json
    assert found["scores"] == [{"view": "whole", **FIGURE}]
    assert found["policy_digest"] == "ab" * 32
    out = command("release", "show", "lung-1", "--home", home.root).out
    for word in ("gradients", "same_scan", "0.810", "0.1", "150", "exceeds it"):
        assert word in out


def test_of_each_attribute_the_worst_group_is_shown(command: Command, home: Home, database: Database) -> None:
    assert "In whom most are found" not in command("release", "show", "lung-1", "--home", home.root).out
    group = {"attribute": "sex", "group": "M", "groups": 2, "people": 80, "found": 0.312, "upper": 0.41, "gallery": 50}
    strata = [
        {**group, "card": "gradients"},
        {**group, "group": "F", "found": 0.101, "upper": 0.2, "card": "gradients"},
    ]
    strata.append({**group, "attribute": "age_band", "group": "40 to 49 years", "found": 0.777, "card": "gradients"})
    ledger = Ledger(home.ledger, Keys(master_key(home, load_settings(home.root))).ledger)
    ledger.append("release_escalated", "first", release="lung-1", looks={"release": 1}, strata=strata[1:2])
    ledger.append("release_blocked", "second", release="lung-1", looks={"release": 2}, strata=strata)
    ledger.append("release_recalled", "third", release="lung-1")
    ledger.append("release_cleared", "other", release="lung-11", looks={"release": 1}, strata=strata[1:2])
    out = command("release", "show", "lung-1", "--home", home.root).out
    for word in ("In whom most are found", "0.312", "0.410", "2 groups", "40 to 49 years", "0.777"):
        assert word in out
    assert "0.101" not in out  # not the worst
    assert command("release", "show", "lung-1", "--home", home.root, "--json").json["strata"] == strata


def test_closing_is_written_down_for_the_engine(command: Command, home: Home, database: Database) -> None:
    ran = command("release", "close", "lung-2", "--home", home.root, *WORDS, "--json")
    assert (ran.code, ran.json["outcome"]) == (0, "waiting")
    (intent,) = database.open_intents()
    assert (intent.kind, intent.key, intent.actor) == ("close", "lung-2", "dpo")


@pytest.mark.parametrize("name", ["lung-3", "lung", "other-1", "lung-1x", "-", "lung-99999999999999999999"])
def test_an_unknown_release_is_a_usage_error(command: Command, home: Home, database: Database, name: str) -> None:
    for arguments in (("show", "--", name), ("close", *WORDS, "--", name)):
        ran = command("release", arguments[0], "--home", home.root, *arguments[1:])
        assert ran.code == 2
        assert "no release is called" in ran.err
    assert database.open_intents() == []


def test_closing_needs_a_name_and_a_reason(command: Command, home: Home, database: Database) -> None:
    assert command("release", "close", "lung-2", "--home", home.root, "--by", "x", "--reason", "y").code == 2


def test_a_report_is_written_where_it_is_asked_for(command: Command, home: Home, database: Database) -> None:
    out = home.root.parent / "file"
    ran = command("release", "report", "lung-1", "--out", out, "--home", home.root)
    assert (ran.code, ran.err) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["lung-1.html", "lung-1.pdf"]
    assert "0.81" in (out / "lung-1.html").read_text()
    paths = command("release", "report", "lung-2", "--out", out, "--home", home.root, "--json").json
    assert paths == {"release": "lung-2", "html": str(out / "lung-2.html"), "pdf": str(out / "lung-2.pdf")}
    ran = command("release", "report", "lung-9", "--out", out, "--home", home.root)
    assert (ran.code, ran.out) == (2, "")
    assert "no release is called lung-9" in ran.err


def test_a_place_that_cannot_be_written_is_said(command: Command, home: Home, database: Database) -> None:
    blocked = home.root.parent / "a-file"
    blocked.write_text("x")
    ran = command("release", "report", "lung-1", "--out", blocked, "--home", home.root)
    assert ran.code in (2, 3)
    assert str(blocked) in ran.err
