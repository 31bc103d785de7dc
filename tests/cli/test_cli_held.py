"""`held list|show|release|rerun|reject` on tables that a gateway left, with no gateway running."""

from __future__ import annotations

import json

import pytest
from commands import Command

from gateway.database import Database, Intent, Job
from gateway.errors import REASONS
from gateway.flow import Leg
from gateway.settings import Home
from gateway.study import Outcome, State

DECISIONS = ("release", "rerun", "reject")
WORDS = ("--by", "dpo", "--reason", "seen by eye, nothing in it")


@pytest.fixture
def database(home: Home) -> Database:
    """j1 of s1 was held by the gate; s2 was held before routing; j3 of s3 was sent; j4 of s4 waits for a release."""
    tables = Database.in_home(home.database)
    for study in ("s1", "s2", "s3", "s4"):
        tables.record_instance(study_key=study, name="0001.dcm", sop_key="sop", size_bytes=1)
        tables.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
        if study != "s2":
            job = Job(
                job_key=f"j{study[1]}",
                study_key=study,
                generation=1,
                route="ct",
                project="lung",
                policy="research-basic",
                policy_digest="ab" * 32,
                destination="research-archive",
            )
            tables.route_study(study, 1, [job])
    tables.set_study("s2", 1, state="held", reason="no_route")
    finding = {"check": "residual_identifiers", "instance": "00001", "where": "(0008,1030)", "rule": "name"}
    verdict = {
        "check": "residual_identifiers",
        "outcome": str(Outcome.HOLD),
        "reason": "residual_identifier",
        "findings": [finding],
        "assessed": {},
    }
    tables.set_job(
        "j1",
        state=State.HELD,
        reason="residual_identifier",
        at="00001 (0008,1030)",
        held_in="gate",
        verdicts=json.dumps([verdict]),
    )
    tables.set_job("j3", state=State.SENT)
    tables.set_job("j4", state=State.AWAITING_RELEASE)
    return tables


def test_nothing_held_is_said(command: Command, home: Home) -> None:
    ran = command("held", "list", "--home", home.root)
    assert (ran.code, ran.out) == (0, "nothing is held\n")
    assert command("held", "list", "--home", home.root, "--json").json == []


def test_list_shows_what_waits_with_what_to_do(command: Command, home: Home, database: Database) -> None:
    ran = command("held", "list", "--home", home.root)
    assert ran.code == 0
    for word in ("j1", "s2.1", "j4", "gate", "intake", "residual_identifier", REASONS["no_route"].hint):
        assert word in ran.out
    assert "j3" not in ran.out
    rows = {row["key"]: row for row in command("held", "list", "--home", home.root, "--json").json}
    assert rows.keys() == {"j1", "s2.1", "j4"}
    assert (rows["j1"]["stage"], rows["j1"]["reason"], rows["j1"]["state"]) == ("gate", "residual_identifier", "held")
    assert (rows["s2.1"]["stage"], rows["s2.1"]["reason"]) == ("intake", "no_route")
    assert rows["j4"]["state"] == "awaiting_release"
    assert all(0 <= row["age_s"] < 60 for row in rows.values())


def test_show_tells_places_and_rules(command: Command, home: Home, database: Database) -> None:
    ran = command("held", "show", "j1", "--home", home.root)
    assert ran.code == 0
    for word in ("(0008,1030)", "residual_identifiers", REASONS["residual_identifier"].says, "research-archive"):
        assert word in ran.out
    told = command("held", "show", "j1", "--home", home.root, "--json").json
    assert told["policy_digest"] == "ab" * 32
    assert told["findings"] == [
        {"check": "residual_identifiers", "instance": "00001", "where": "(0008,1030)", "rule": "name"}
    ]
    assert REASONS["no_route"].hint in command("held", "show", "s2.1", "--home", home.root).out


@pytest.mark.parametrize(
    "key", ["nosuch", "s2", "s2.2", "s2.x", "s1.1", "s2.99999999999999999999", "", ".", "../x", "j1'"]
)
def test_an_unknown_key_is_a_usage_error_for_every_command(
    command: Command, home: Home, database: Database, key: str
) -> None:
    for words in (("show", key), *((decision, key, *WORDS) for decision in DECISIONS)):
        ran = command("held", *words, "--home", home.root)
        assert ran.code == 2, words
        assert "held list" in ran.err
    assert database.open_intents() == []


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("key", ["j1", "s2.1"])
def test_a_decision_is_written_down_for_the_gateway(
    command: Command, home: Home, database: Database, decision: str, key: str
) -> None:
    ran = command("held", decision, key, *WORDS, "--home", home.root)
    assert ran.code == 0
    assert "written down" in ran.out
    (intent,) = database.open_intents()
    assert isinstance(intent, Intent)
    assert (intent.kind, intent.key, intent.actor, intent.reason) == (decision, key, "dpo", WORDS[3])


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("leg", [str(leg) for leg in Leg])
def test_a_job_is_decided_whatever_leg_held_it(
    command: Command, home: Home, database: Database, decision: str, leg: str
) -> None:
    """The leg `scrub` of the gateway is not the command `scrub`, whose studies have no row."""
    database.set_job("j1", held_in=leg)
    assert command("held", decision, "j1", *WORDS, "--home", home.root).code == 0
    assert [(one.kind, one.key) for one in database.open_intents()] == [(decision, "j1")]


def test_a_decision_for_scripts(command: Command, home: Home, database: Database) -> None:
    ran = command("held", "reject", "j1", *WORDS, "--home", home.root, "--json")
    assert ran.code == 0
    assert ran.json == {"decision": "reject", "key": "j1", "intent": 1, "outcome": "waiting"}


def test_what_is_not_held_cannot_be_decided(command: Command, home: Home, database: Database) -> None:
    ran = command("held", "release", "j3", *WORDS, "--home", home.root)
    assert ran.code == 2
    assert "it is sent" in ran.err
    assert database.open_intents() == []


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--by"),
        (("--by", "dpo"), "--reason"),
        (("--reason", "seen by eye"), "--by"),
        (("--by", " ", "--reason", "seen by eye"), "a name"),
        (("--by", "dpo", "--reason", "  ok  "), "a reason"),
        (("--by", "d" * 129, "--reason", "seen by eye"), "128"),
        (("--by", "dpo", "--reason", "x" * 513), "512"),
        (("--by", "dpo", "--reason", "two\nlines"), "one line"),
        (("--by", "d\x1bpo", "--reason", "seen by eye"), "printable"),
    ],
)
def test_a_decision_needs_a_name_and_a_reason(
    command: Command, home: Home, database: Database, decision: str, words: tuple[str, ...], says: str
) -> None:
    ran = command("held", decision, "j1", *words, "--home", home.root)
    assert ran.code == 2
    assert says in ran.err
    assert database.open_intents() == []
