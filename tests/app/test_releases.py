"""Releases: studies wait, are judged over their people, and leave or stay as a whole."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from houses import House, house
from releasing import CARDS, LIMIT, LINKABILITY, film, judged

from gateway.app import candidates
from gateway.app.person.retention import DAY_S, Retention
from gateway.app.release.closing import Closing
from gateway.app.release.dossier import dossier_of
from gateway.app.release.references import FOLDER, read_members, views_in
from gateway.app.release.releases import Releasing
from gateway.app.release.report import document_of
from gateway.app.tasks import scrub_instance
from gateway.errors import Hold
from gateway.settings import Home
from gateway.study import State, Step

ISOLATION: dict[str, Any] = {"record_isolation": {"k": 2}}


def deliver(made: House, people: range, **how: Any) -> list[str]:
    return [made.deliver(film(person, **how)) for person in people]


def close(made: House, name: str = "research-basic-1") -> str:
    return made.decide("close", name, reason="the month is over")


def states(made: House) -> dict[str, int]:
    found: dict[str, int] = {}
    for job in made.parts.database.jobs_in():
        found[str(job.state)] = found.get(str(job.state), 0) + 1
    return found


def noise_instead(source: Path, target: Path, *rest: Any) -> Step:
    """A header stage that puts noise in the place of the picture: nothing of the person is left in it."""
    step = scrub_instance(source, target, *rest)
    ds = pydicom.dcmread(target)
    seed = int.from_bytes(ds.SOPInstanceUID.encode()[-8:], "big")
    ds.PixelData = np.random.default_rng(seed).integers(0, 4096, (ds.Rows, ds.Columns), dtype=np.uint16).tobytes()
    ds.save_as(target, enforce_file_format=True)
    return step


@pytest.fixture
def untouched(home: Home, policies: Path) -> Iterator[House]:
    with house(home, judged(policies, LINKABILITY)) as made:
        yield made


@pytest.fixture
def anonymous(home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(candidates, "scrub_instance", noise_instead)
    with house(home, judged(policies, LINKABILITY)) as made:
        yield made


def test_untouched_pixels_are_held_for_linkability_and_the_reason_says_by_how_much(untouched: House) -> None:
    keys = deliver(untouched, range(51))
    assert states(untouched) == {"awaiting_release": 51}
    assert close(untouched) == "done"
    assert states(untouched) == {"held": 51}
    job = untouched.job(keys[0])
    assert (job.state, job.reason, job.held_in) == (State.HELD, "linkability", "release")
    assert job.at.startswith("linkability by g")
    assert "same_scan: at most 1.000" in job.at  # all is told apart: what shuffled labels read has no room left
    assert f"limit {LIMIT:g}" in job.at
    assert "51 people" in job.at
    (release,) = untouched.parts.database.releases_in("blocked")
    assert (release.name, release.reason, release.looks) == ("research-basic-1", "linkability", 1)
    (line,) = [line for line in untouched.events() if line["event"] == "release_blocked"]
    assert (line["subjects"], len(line["jobs"]), line["reason"]) == (51, 51, "linkability")
    sexes = [one for one in line["strata"] if one["attribute"] == "sex"]
    assert sorted((one["group"], one["people"], one["found"]) for one in sexes) == [("F", 26, 1.0), ("M", 25, 1.0)]
    p = untouched.parts
    dossier = dossier_of(p.home, p.settings, p.database, "research-basic-1")
    assert [dict(one) for one in dossier.strata] == line["strata"]
    assert "Groups of people" in str(document_of(dossier, 0.0))
    assert "LEAK" not in json.dumps(line)
    untouched.parts.metrics.release_score.clear()
    from gateway.app.gauges import refresh

    refresh(untouched.parts)
    label = {"policy": "research-basic", "release": "1", "check": "linkability", "attack": "same_scan"}
    for card in CARDS:
        where = {**label, "card": card, "view": "whole", "scope": "release"}
        assert untouched.metric("deid_release_score", **where, kind="upper") == 1
        assert untouched.metric("deid_release_score", **where, kind="estimate") == 1
        assert untouched.metric("deid_release_score", **where, kind="limit") == LIMIT
    assert untouched.metric("deid_releases", policy="research-basic", state="blocked") == 1
    assert untouched.decide("release", job.job_key).startswith("it was held with its whole release")
    assert untouched.decide("reject", job.job_key) == "done"


def test_a_release_without_a_trace_is_cleared_and_sent(anonymous: House, target: Path) -> None:
    deliver(anonymous, range(50))
    assert list(target.rglob("*.dcm")) == []
    assert close(anonymous) == "done"
    assert states(anonymous) == {"sent": 50}
    assert len(list(target.rglob("*.dcm"))) == 50
    (first,) = anonymous.parts.database.releases_in("sent")
    assert {figure["scope"] for figure in first.figures} == {"release"}
    judged_by = {figure["card"]: figure["upper"] for figure in first.figures if not figure["note"]}
    assert set(judged_by) == set(CARDS)
    assert max(judged_by.values()) <= LIMIT
    assert {figure["note"] for figure in first.figures if figure["attack"] == "other_visit"} == {"too_few_to_tell"}
    events = [line["event"] for line in anonymous.events() if line["event"].startswith("release_")]
    assert events == ["release_closed", "release_cleared", "release_sent"]


def test_the_next_release_is_judged_with_those_before_it(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        for number in (1, 2):
            deliver(made, range(10 * number, 10 * number + 2))
            assert close(made, f"research-basic-{number}") == "done"
        assert states(made) == {"sent": 4}
        second = made.parts.database.release_named("research-basic-2")
        assert second is not None
        assert [(figure["scope"], figure["people"]) for figure in second.figures] == [("release", 2), ("all", 4)]


def test_too_few_people_close_nothing(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=3)) as made:
        deliver(made, range(2))
        made.deliver(film(1, visit=1))  # one more study is no further person
        assert close(made) == "it has 2 people of at least 3; collect more, then close it"
        assert close(made, "research-basic-7") == "no such release"
        assert states(made) == {"awaiting_release": 3}
        deliver(made, range(2, 3))
        assert close(made) == "done"
        assert states(made) == {"sent": 4}
        assert close(made) == "not open: it is sent"


def test_who_is_alone_with_a_kept_attribute_is_named_by_the_attribute(home: Home, policies: Path) -> None:
    keep = {"PatientSex": "a test of isolation", "PatientSize": "a test of isolation"}
    release = {"record_isolation": {"k": 2}}
    change = lambda body: body["header"].update(keep=keep)  # noqa: E731
    with house(home, judged(policies, release, people=4, change=change)) as made:
        for person in range(4):
            made.deliver(film(person, PatientSize="1.70" if person else "1.99"))
        assert close(made) == "done"
        (release_row,) = made.parts.database.releases_in("blocked")
        assert release_row.reason == "record_isolation"
        assert "PatientSize" in release_row.at
        assert "1.99" not in json.dumps(list(made.events()))


def test_the_night_closes_what_has_its_people_once(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2, close="nightly")) as made:
        deliver(made, range(2))
        (release,) = made.parts.database.releases_in("open")
        assert Closing(made.parts).close_due(release.opened_at + 1) == [] or release.opened_at % DAY_S > DAY_S - 2
        (leg,) = Closing(made.parts).close_due(release.opened_at + DAY_S)
        assert Closing(made.parts).close_due(release.opened_at + DAY_S) == []
        made.run(leg)
        made.settle()
        assert states(made) == {"sent": 2}


def test_a_release_that_closes_full_is_judged_with_the_last_of_its_people(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2, close="full")) as made:
        deliver(made, range(1))
        assert Closing(made.parts).close_due(time.time()) == []
        deliver(made, range(1, 2))
        (leg,) = Closing(made.parts).close_due(time.time())
        assert Closing(made.parts).close_due(time.time()) == []
        made.run(leg)
        made.settle()
        assert states(made) == {"sent": 2}


def test_a_crash_after_each_write_ends_the_same(home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Crash(BaseException):
        pass

    with house(home, judged(policies, ISOLATION, people=2)) as made:
        deliver(made, range(2))
        database = type(made.parts.database)
        end = database.end_audit

        def crash(*_given: object) -> None:
            raise Crash

        monkeypatch.setattr(database, "end_audit", crash)
        with pytest.raises(Crash):
            close(made)
        monkeypatch.setattr(database, "end_audit", end)
    with house(home, policies) as made:
        assert states(made) == {"awaiting_release": 2}
        made.settle()
        assert states(made) == {"sent": 2}
        events = [line["event"] for line in made.events() if line["event"].startswith("release_")]
        assert events == ["release_closed", "release_cleared", "release_sent"]


def test_an_image_that_no_card_knows_is_held_before_it_joins(home: Home, policies: Path) -> None:
    def change(body: dict[str, Any]) -> None:
        body["gate"]["not_assessed"][0]["modality"] = ["CR", "XC"]

    with house(home, judged(policies, LINKABILITY, change=change)) as made:
        key = made.deliver(film(1, modality="XC"))
        job = made.job(key)
        assert (job.state, job.reason) == (State.HELD, "no_identity_evidence")
        assert made.parts.database.releases_in() == []


def test_references_are_encrypted_and_leave_after_their_days(home: Home, policies: Path) -> None:
    with house(home, judged(policies, LINKABILITY)) as made:
        key = made.deliver(film(1))
        files = sorted((home.root / FOLDER).rglob("*.emb"))
        assert len(files) == 2 * len(CARDS)
        job = made.job(key)
        (row,) = made.parts.database.members(1)
        assert "LEAK" not in json.dumps([row.facts, row.person])
        now = made.parts.database.release(1).opened_at  # type: ignore[union-attr]
        Retention(made.parts).run(now + 364 * DAY_S)
        assert len(list((home.root / FOLDER).rglob("*.emb"))) == len(files)
        assert made.decide("reject", job.job_key) == "done"
        made.parts.database.set_release(1, state="blocked")
        Retention(made.parts).run(now + 366 * DAY_S)
        assert list((home.root / FOLDER).rglob("*.emb")) == []
        assert [line["event"] for line in made.events()].count("references_removed") == 1


def test_jobs_that_waited_before_there_were_releases_join_one(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        keys = deliver(made, range(2))
        with made.parts.database.transaction() as connection:
            for table in ("release_members", "releases"):
                connection.exec_driver_sql(f"DELETE FROM {table}")
        assert made.parts.database.release_of(made.job(keys[0]).job_key) is None
        assert Releasing(made.parts).take_in() == 2
        made.settle()
        assert states(made) == {"awaiting_release": 2}
        assert Releasing(made.parts).take_in() == 0
        (release,) = made.parts.database.releases_in("open")
        assert made.parts.database.waiting_people(release.serial) == 2
        assert [line["event"] for line in made.events()].count("cleared") == 2


def test_embeddings_of_another_version_of_a_card_are_no_evidence(home: Home, policies: Path) -> None:
    with house(home, judged(policies, LINKABILITY)) as made:
        made.deliver(film(1))
        (row,) = made.parts.database.members(1)
        facts = {**json.loads(row.facts), "kept": {"PatientSex": "hashed"}}
        other = replace(row, facts=json.dumps(facts).replace(next(views_in(row))[2], "0" * 64))
        member, before = read_members(home.root, made.parts.keys.master, [row], [other])
        assert set(member.embedded) == set(CARDS) > set(before.embedded)  # of those before, what can be compared stays
        assert (len(before.embedded), before.kept) == (1, {"PatientSex": "hashed"})
        with pytest.raises(Hold, match="another version of a card"):
            read_members(home.root, made.parts.keys.master, [other], [])
        for path in (home.root / FOLDER).rglob("*.emb"):
            path.unlink()
        (alone,) = read_members(home.root, made.parts.keys.master, [], [row])
        assert (alone.embedded, alone.person) == ({}, row.person)
        with pytest.raises(Hold, match="references are gone"):
            read_members(home.root, made.parts.keys.master, [row], [])
