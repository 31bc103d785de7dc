"""What people may decide about a held study, what they may not, and what the ledger keeps of it (decisions.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from houses import House, edit, house, late, route_all, route_nobody, study
from running import archive, policies_for

from gateway.app.decisions import stored_verdicts
from gateway.flow import Leg, Next
from gateway.settings import Home
from gateway.study import Clearance, State


def strict(folder: Path) -> None:
    """Nothing is accepted unjudged, so the gate holds every study."""
    edit(folder, "research-basic", lambda body: body["gate"].update(not_assessed=[]))


@pytest.fixture
def held(gateway_house: House, policies: Path) -> str:
    """The key of a job that the gate held."""
    strict(policies)
    gateway_house.parts.policies.reload()
    key = gateway_house.deliver(*study(2))
    job = gateway_house.job(key)
    assert (job.state, job.reason, job.held_in) == (State.HELD, "not_assessed", "gate")
    return job.job_key


def test_a_release_sends_what_was_judged_under_the_reviewers_name(
    gateway_house: House, held: str, target: Path
) -> None:
    verdicts = stored_verdicts(gateway_house.parts.database.job(held))  # type: ignore[arg-type]
    assert gateway_house.decide("release", held, by="Dr Able", reason="no text on any slice") == "done"
    job = gateway_house.parts.database.job(held)
    assert job is not None
    assert (job.state, job.round, job.held_in, job.reason) == (State.SENT, 2, "", "")
    clearance = Clearance.from_json(job.clearance)
    assert clearance.issuer == "review:Dr Able"
    assert clearance.is_sealed_by(gateway_house.parts.keys.seal)
    assert clearance.verdicts == tuple(f"{verdict.check}={verdict.outcome}" for verdict in verdicts)
    assert {entry.approver for entry in clearance.not_assessed} == {"review:Dr Able"}
    assert len(list(target.rglob("*.dcm"))) == 2
    events = gateway_house.events(job.study_key)
    assert [line["event"] for line in events] == ["routed", "held", "released", "cleared", "sent"]
    released = events[2]
    assert (released["actor"], released["reason_given"]) == ("Dr Able", "no text on any slice")
    assert released["policy_digest"] == job.policy_digest
    assert events[1]["verdicts"]
    assert events[1]["steps"]


def test_a_rerun_begins_again_under_the_policies_of_now(
    gateway_house: House, held: str, policies: Path, target: Path
) -> None:
    before = gateway_house.parts.database.job(held)
    assert before is not None
    entry = {"aspects": ["burned_in_text", "recognizable_features", "image_identity"], "modality": ["CT"]}
    edit(
        policies,
        "research-basic",
        lambda body: body["gate"].update(not_assessed=[{**entry, "reason": "a test", "approver": "tests"}]),
    )
    gateway_house.parts.policies.reload()
    assert gateway_house.decide("rerun", held, reason="policy amended") == "done"
    job = gateway_house.parts.database.job(held)
    assert job is not None
    assert (job.state, job.round) == (State.SENT, 2)
    assert job.policy_digest != before.policy_digest
    events = gateway_house.events(job.study_key)
    assert [line["event"] for line in events] == ["routed", "held", "rerun", "cleared", "sent"]
    assert [line.get("policy_digest") for line in events[1:]] == [before.policy_digest] + [job.policy_digest] * 3
    assert len(list(target.rglob("*.dcm"))) == 2


def test_a_reject_is_final(gateway_house: House, held: str, target: Path) -> None:
    assert gateway_house.decide("reject", held, reason="wrong body part") == "done"
    for kind in ("release", "rerun", "reject"):
        assert gateway_house.decide(kind, held) == "not held: it is rejected"
    assert not target.exists()
    (line,) = [line for line in gateway_house.events() if line["event"] == "rejected"]
    assert (line["job"], line["reason_given"]) == (held, "wrong body part")
    assert gateway_house.metric("deid_jobs_decided_total", state="rejected", reason="reviewer_rejected") == 1


def test_a_header_that_could_not_be_cleaned_cannot_be_released(gateway_house: House) -> None:
    (ds,) = study()
    ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = "1.2.3.4.5.6.7"
    key = gateway_house.deliver(ds)
    job = gateway_house.job(key)
    assert (job.state, job.held_in) == (State.HELD, "scrub")
    assert "header could not be cleaned" in gateway_house.decide("release", job.job_key)
    assert gateway_house.job(key) == job
    assert gateway_house.decide("rerun", job.job_key) == "done"
    assert gateway_house.job(key).round == 2
    assert gateway_house.ends(key) == [("research-archive", "held", job.reason)]  # nothing had changed
    assert gateway_house.decide("reject", job.job_key) == "done"


def test_what_was_partly_sent_is_not_rerun_and_its_rest_is_released_as_it_is(home: Home, tmp_path: Path) -> None:
    answers: dict[str, int] = {}

    def answer(uid: str) -> int:
        return answers.setdefault(uid, 0x0000 if not answers else 0xC000)

    policies = tmp_path / "policies"
    with archive(answer=answer) as kept, house(home, policies_for(policies, kept.url)) as made:
        key = made.deliver(*study(2))
        job = made.job(key)
        assert made.ends(key) == [("research-archive", "held", "archive_refuses")]
        edit(policies, "research-basic", lambda body: body["header"]["patient_id"].update(prefix="OTHER-"))
        made.parts.policies.reload()
        assert made.decide("rerun", job.job_key).startswith("part of it has been sent already")
        answers.update(dict.fromkeys(answers, 0x0000))
        assert made.decide("release", job.job_key) == "done"
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert made.job(key).clearance == job.clearance
    assert [len(arrivals) for arrivals in kept.received.values()] == [1, 1]


def test_what_was_partly_sent_and_rejected_is_still_known_when_it_comes_again(home: Home, tmp_path: Path) -> None:
    """Sent is sent: under a changed policy the same object would go out with other bytes (DESIGN.md invariant 4)."""
    first: list[str] = []

    def answer(uid: str) -> int:
        first.append(uid)
        return 0x0000 if uid == first[0] else 0xC000

    policies = tmp_path / "policies"
    with archive(answer=answer) as kept, house(home, policies_for(policies, kept.url)) as made:
        datasets = study(2)
        key = made.deliver(*datasets)
        digest = made.job(key).policy_digest
        assert made.decide("reject", made.job(key).job_key) == "done"
        edit(policies, "research-basic", lambda body: body["header"]["patient_id"].update(prefix="OTHER-"))
        made.parts.policies.reload()
        made.deliver(*datasets)
        assert made.parts.database.generations(key)[-1].state == "duplicate"
        made.deliver(late(datasets[0]))
        assert made.job(key, 3).policy_digest == digest
    assert all(len(set(arrivals)) == 1 for arrivals in kept.received.values())


def test_a_rerun_of_a_follow_up_stays_with_the_policy_its_study_was_sent_under(
    gateway_house: House, policies: Path, target: Path
) -> None:
    (ds,) = study()
    key = gateway_house.deliver(ds)
    digest = gateway_house.job(key).policy_digest
    more = late(ds, PatientComments="seen ^ by nobody")
    more.SOPClassUID = more.file_meta.MediaStorageSOPClassUID = "1.2.3.4.5.6.7"
    gateway_house.deliver(more)
    held = gateway_house.job(key, 2)
    assert held.state == State.HELD
    edit(policies, "research-basic", lambda body: body["header"]["dates"].update(shift_days=[1000, 1100]))
    gateway_house.parts.policies.reload()
    assert gateway_house.decide("rerun", held.job_key) == "done"
    assert gateway_house.job(key, 2).policy_digest == digest
    (line,) = [line for line in gateway_house.events(key) if line["event"] == "rerun"]
    assert line["policy_digest"] == digest


def test_a_study_without_jobs_can_be_rerun_or_rejected_but_not_released(gateway_house: House, policies: Path) -> None:
    route_nobody(policies)
    gateway_house.parts.policies.reload()
    key = gateway_house.deliver(*study())
    assert gateway_house.ends(key) == [("", "held", "no_route")]
    assert "nothing of it has been cleaned yet" in gateway_house.decide("release", f"{key}.1")
    assert gateway_house.decide("rerun", f"{key}.1") == "done"
    assert gateway_house.ends(key) == [("", "held", "no_route")]
    route_all(policies, ("demo", "research-basic", "research-archive"))
    gateway_house.parts.policies.reload()
    assert gateway_house.decide("rerun", f"{key}.1", reason="a route was added") == "done"
    assert gateway_house.ends(key) == [("research-archive", "sent", "")]
    assert [line["event"] for line in gateway_house.events(key)] == [
        *("held", "rerun", "held", "rerun", "routed", "cleared"),
        "sent",
    ]
    assert gateway_house.decide("reject", f"{key}.1") == "not held: it is routed"


@pytest.mark.parametrize("key", ["no-such-key", "abc.1", "abc.", ".", "abc.²", "abc." + "9" * 30, ""])
def test_an_unknown_key_is_told(gateway_house: House, key: str) -> None:
    assert gateway_house.decide("reject", key) == "no such key"


def test_an_unknown_kind_of_decision_is_told(gateway_house: House, held: str) -> None:
    assert gateway_house.decide("forget", held).startswith("unknown decision")
    assert gateway_house.parts.database.job(held).state == State.HELD  # type: ignore[union-attr]


def test_an_intent_is_carried_out_once_however_often_its_leg_runs(gateway_house: House, held: str) -> None:
    serial = gateway_house.parts.database.add_intent(kind="reject", key=held, actor="dpo", reason="wrong body part")
    for _ in range(3):
        gateway_house.run(Next(Leg.DECIDE, str(serial), 1))
    assert [line["event"] for line in gateway_house.events()].count("rejected") == 1
