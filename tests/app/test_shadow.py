"""A policy in shadow: everything is done and judged, nothing leaves, nothing is called sent."""

from __future__ import annotations

from pathlib import Path

from houses import edit, house, study
from persons import with_vault

from gateway.settings import Home


def shadow(folder: Path, *, on: bool = True, releases: bool = False) -> None:
    def change(body: dict[str, object]) -> None:
        body["forward"] = {"shadow": on}
        if releases:
            body["release"] = {"min_subjects": 1}

    edit(folder, "research-basic", change)


def test_a_study_ends_shadowed_and_can_be_sent_later(home: Home, policies: Path, target: Path) -> None:
    shadow(policies)
    with_vault(policies)
    with house(home, policies) as made:
        key = made.deliver(*study(2))
        assert made.ends(key) == [("research-archive", "shadowed", "")]
        assert not list(target.rglob("*.dcm"))
        database = made.parts.database
        assert (database.receipts(made.job(key).job_key), database.shipment(made.job(key).job_key)) == ({}, None)
        assert not list(home.vault.rglob("*.rec"))
        assert [line["event"] for line in made.events(key)] == ["routed", "cleared", "shadowed"]
        assert made.metric("deid_jobs_decided_total", state="shadowed", reason="") == 1
        assert made.metric("deid_jobs_decided_total", state="sent", reason="") == 0
    shadow(policies, on=False)
    with house(home, policies) as made:
        assert made.decide("rerun", made.job(key).job_key) == "done"
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert len(list(target.rglob("*.dcm"))) == 2
        assert len(list(home.vault.rglob("*.rec"))) == 1


def test_what_was_only_looked_at_may_come_again(home: Home, policies: Path, target: Path) -> None:
    shadow(policies)
    (ds,) = study()
    with house(home, policies) as made:
        key = made.deliver(ds)
    shadow(policies, on=False)
    with house(home, policies) as made:
        made.deliver(ds)
        assert made.ends(key, 2) == [("research-archive", "sent", "")]


def test_a_changed_candidate_is_found_in_shadow_as_well(home: Home, policies: Path) -> None:
    shadow(policies)
    with house(home, policies) as made:
        key = made.receive(*study())
        made.close()
        for _ in range(3):
            made.run_once()
        (candidate,) = home.work.rglob("*.dcm")
        candidate.write_bytes(candidate.read_bytes()[:-2] + b"XX")
        made.settle()
        assert made.ends(key) == [("research-archive", "held", "clearance_broken")]


def test_a_release_in_shadow_is_judged_and_is_no_evidence_for_later_ones(home: Home, policies: Path) -> None:
    shadow(policies, releases=True)
    with house(home, policies) as made:
        key = made.deliver(*study())
        made.decide("close", "research-basic-1")
        database = made.parts.database
        release = database.release_named("research-basic-1")
        assert release is not None
        assert (release.state, release.looks) == ("shadowed", 1)
        assert made.ends(key) == [("research-archive", "shadowed", "")]
    shadow(policies, on=False)
    with house(home, policies) as made:
        database = made.parts.database
        made.decide("rerun", made.job(key).job_key)
        later = database.release_named("research-basic-2")
        assert later is not None
        assert later.state == "open"
        assert database.released_before(later) == []
        assert len(database.members(release.serial)) == 1  # the record of what was looked at stays


def test_shadow_off_has_the_digest_of_a_policy_that_does_not_speak_of_it(policies: Path, home: Home) -> None:
    with house(home, policies) as made:
        plain = made.parts.policies.current.policies["research-basic"].digest
        shadow(policies, on=False)
        made.parts.policies.reload()
        assert made.parts.policies.current.policies["research-basic"].digest == plain
        shadow(policies)
        made.parts.policies.reload()
        assert made.parts.policies.current.policies["research-basic"].digest != plain
