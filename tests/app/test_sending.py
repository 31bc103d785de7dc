"""What archives answer, and what becomes of the job: retries, holds, partial sends, several targets (cases.md S4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from houses import House, add_policy, edit, house, route_all, study
from peers import free_port
from pynetdicom import AE, evt
from running import archive, policies_for

from gateway.errors import Retry
from gateway.settings import Home
from gateway.study import State


@contextmanager
def sending_to(home: Home, folder: Path, url: str, **settings: object) -> Iterator[House]:
    with house(home, policies_for(folder, url), network_timeout_s=5.0, **settings) as made:
        yield made


def one_answer(status: int, only: int = -1) -> Callable[[str], int]:
    """`status` for every instance, or for the one that comes as number `only`; success for the rest."""
    seen: list[str] = []

    def answer(uid: str) -> int:
        seen.append(uid)
        return status if only in {-1, len(seen) - 1} else 0x0000

    return answer


@pytest.mark.parametrize("status", [0xB000, 0xB006, 0xB007])
def test_a_warning_is_no_failure_and_is_told_as_a_warning(home: Home, tmp_path: Path, status: int) -> None:
    with archive(answer=one_answer(status, only=1)) as kept, sending_to(home, tmp_path / "p", kept.url) as made:
        key = made.deliver(*study(3))
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert made.events(key)[-1]["receipts"] == {"success 0000": 2, f"warning {status:04X}": 1}
        assert made.metric("deid_instances_sent_total", destination="research-archive", kind="warning") == 1
        assert made.metric("deid_instances_sent_total", destination="research-archive", kind="success") == 2
    assert sum(map(len, kept.received.values())) == 3


@pytest.mark.parametrize("status", [0xC000, 0xA900, 0x0122, 0x0110])
def test_a_refused_instance_holds_the_job_and_the_others_are_not_sent_again(
    home: Home, tmp_path: Path, status: int
) -> None:
    answers = {"status": status}
    refused: list[str] = []

    def answer(uid: str) -> int:
        if not refused:
            refused.append(uid)
        return answers["status"] if uid == refused[0] else 0x0000

    with archive(answer=answer) as kept, sending_to(home, tmp_path / "p", kept.url) as made:
        key = made.deliver(*study(3))
        assert made.ends(key) == [("research-archive", "held", "archive_refuses")]
        job = made.job(key)
        assert job.held_in == "forward"
        receipts = made.parts.database.receipts(job.job_key)
        assert sorted((r.kind, r.status) for r in receipts.values()) == [
            ("failure", status), ("success", 0), ("success", 0),
        ]  # fmt: skip
        line = made.events(key)[-1]
        assert (line["event"], line["reason"]) == ("held", "archive_refuses")
        assert line["receipts"] == {"success 0000": 2, f"failure {status:04X}": 1}
        answers["status"] = 0x0000
        assert made.metric("deid_archive_seconds_count") == 0  # held is not sent
        assert made.decide("release", job.job_key, reason="the archive was mended") == "done"
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert made.metric("deid_archive_seconds_count") == 1
        assert 0 < made.metric("deid_archive_seconds_sum") < 600
    assert [len(arrivals) for arrivals in kept.received.values()] == [1, 1, 1]


def test_out_of_resources_is_tried_again_with_growing_pauses_then_given_up_then_released(
    home: Home, tmp_path: Path
) -> None:
    answers = {"status": 0xA700}
    with (
        archive(answer=lambda _uid: answers["status"]) as kept,
        sending_to(home, tmp_path / "p", kept.url, retry_limit=6) as made,
    ):
        key = made.deliver(*study(2))
        assert made.ends(key) == [("research-archive", "held", "gave_up")]
        assert made.job(key).at == "archive_busy"
        assert made.pauses == [1.0, 2.0, 4.0, 8.0, 8.0]  # doubled up to the longest
        assert made.metric("deid_jobs_decided_total", state="held", reason="gave_up") == 1
        answers["status"] = 0x0000
        assert made.decide("release", made.job(key).job_key) == "done"
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert [line["event"] for line in made.events(key)] == ["routed", "cleared", "held", "released", "sent"]
    assert [len(arrivals) for arrivals in kept.received.values()] == [1, 1]


def test_an_archive_that_is_down_shows_as_a_pending_retry_and_is_reached_when_it_comes_back(
    home: Home, tmp_path: Path
) -> None:
    port = free_port()
    with sending_to(home, tmp_path / "p", f"dicom://ARCHIVE@127.0.0.1:{port}", retry_limit=4) as made:
        key = made.receive(*study())
        made.close()
        for _ in range(3):
            made.run_once()
        job = made.job(key)
        assert job.state == State.CLEARED
        following = made.run_once()
        assert [(task.attempt, task.tries, task.delay_s) for task in following] == [(1, 1, 1.0)]
        job = made.job(key)
        assert (job.state, job.reason, job.attempt) == (State.CLEARED, "archive_unreachable", 1)
        made.settle()
        assert made.ends(key) == [("research-archive", "held", "gave_up")]
        assert made.job(key).at == "archive_unreachable"


def test_what_was_sent_before_the_association_broke_is_not_sent_again(home: Home, tmp_path: Path) -> None:
    broken: list[str] = []
    received: list[str] = []

    def store(event: evt.Event) -> int:
        uid = str(event.request.AffectedSOPInstanceUID)
        if len(received) == 2 and not broken:
            broken.append(uid)
            event.assoc.abort()
            return 0xC000
        received.append(uid)
        return 0x0000

    ae = AE(ae_title="ARCHIVE")
    ae.add_supported_context("1.2.840.10008.5.1.4.1.1.2")
    server = ae.start_server(("127.0.0.1", 0), block=False, evt_handlers=[(evt.EVT_C_STORE, store)])
    assert server is not None
    try:
        url = f"dicom://ARCHIVE@127.0.0.1:{server.server_address[1]}"
        with sending_to(home, tmp_path / "p", url) as made:
            key = made.deliver(*study(4))
            assert made.ends(key) == [("research-archive", "sent", "")]
            assert made.pauses == [1.0]
            receipts = made.parts.database.receipts(made.job(key).job_key).values()
            assert sorted(receipt.attempts for receipt in receipts) == [1, 1, 1, 2]
    finally:
        server.shutdown()
    assert len(broken) == 1
    assert len(received) == len(set(received)) == 4


def test_an_archive_that_takes_no_offered_syntax_holds_the_study(home: Home, tmp_path: Path) -> None:
    ae = AE(ae_title="ARCHIVE")
    ae.add_supported_context("1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.1.2.4.90")
    server = ae.start_server(("127.0.0.1", 0), block=False)
    assert server is not None
    try:
        with sending_to(home, tmp_path / "p", f"dicom://ARCHIVE@127.0.0.1:{server.server_address[1]}") as made:
            key = made.deliver(*study())
            assert made.ends(key) == [("research-archive", "held", "archive_refuses_syntax")]
    finally:
        server.shutdown()


def test_several_targets_are_jobs_of_their_own_one_sent_one_held(
    home: Home, tmp_path: Path, target: Path, policies: Path
) -> None:
    def judge_nothing(body: dict[str, object]) -> None:
        body["gate"]["not_assessed"] = []  # type: ignore[index]

    add_policy(policies, "strict", judge_nothing)
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{tmp_path}/second"))
    route_all(policies, ("one", "research-basic", "research-archive"), ("two", "strict", "second"))
    with house(home, policies) as made:
        key = made.deliver(*study(2))
        assert made.ends(key) == [("research-archive", "sent", ""), ("second", "held", "not_assessed")]
        sent, held = made.job(key, destination="research-archive"), made.job(key, destination="second")
        assert sent.job_key != held.job_key
        assert sent.policy_digest != held.policy_digest
        assert sent.subject != held.subject
        assert len(list(target.rglob("*.dcm"))) == 2
        assert not (tmp_path / "second").exists()
        # The held one goes on its own way and touches the other one no more.
        before = {path: path.read_bytes() for path in target.rglob("*.dcm")}
        assert made.decide("release", held.job_key, reason="seen on the screen") == "done"
        assert made.ends(key) == [("research-archive", "sent", ""), ("second", "sent", "")]
        assert len(list((tmp_path / "second").rglob("*.dcm"))) == 2
        assert {path: path.read_bytes() for path in target.rglob("*.dcm")} == before
        (line,) = [e for e in made.events(key) if e["event"] == "cleared" and e["job"] == held.job_key]
        assert line["issuer"] == "review:dpo"


def test_a_destination_that_is_gone_holds_until_it_is_back(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        key = made.receive(*study())
        made.close()
        made.run_once()
        edit(policies, "destinations", lambda body: body.update(other=body.pop("research-archive")))
        edit(
            policies,
            "routes",
            lambda body: [t.update(destination="other") for route in body["routes"] for t in route["targets"]],
        )
        made.parts.policies.reload()
        made.settle()
        assert made.ends(key) == [("research-archive", "held", "destination_unknown")]
        edit(policies, "destinations", lambda body: body.update({"research-archive": f"folder:{target}"}))
        made.parts.policies.reload()
        assert made.decide("release", made.job(key).job_key, reason="it is back") == "done"
        assert made.ends(key) == [("research-archive", "sent", "")]


def test_a_policy_with_a_release_waits_visibly_and_nothing_leaves(home: Home, policies: Path, target: Path) -> None:
    add_policy(policies, "released", lambda body: body.update(release={"min_subjects": 2, "close": "manual"}))
    route_all(policies, ("demo", "released", "research-archive"))
    with house(home, policies) as made:
        key = made.deliver(*study())
        job = made.job(key)
        assert (job.state, job.reason) == (State.AWAITING_RELEASE, "")
        assert made.steps.pending() == []
        assert not target.exists()
        assert made.events(key)[-1]["state"] == "awaiting_release"
        assert made.decide("release", job.job_key) == "not held: it is awaiting_release"
        assert made.decide("rerun", job.job_key) == "it waits for its release, under the policy of now"
        assert made.decide("reject", job.job_key, reason="the person withdrew") == "done"
        assert made.ends(key) == [("research-archive", "rejected", "reviewer_rejected")]
        assert not target.exists()


def test_what_was_changed_after_the_gate_does_not_leave(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        key = made.receive(*study(2))
        made.close()
        for _ in range(3):
            made.run_once()
        job = made.job(key)
        assert job.state == State.CLEARED
        candidate = made.parts.home.work / job.job_key / "00002.dcm"
        candidate.write_bytes(candidate.read_bytes() + b"\0\0")
        made.settle()
        assert made.ends(key) == [("research-archive", "held", "clearance_broken")]
        assert len(list(target.rglob("*.dcm"))) <= 1


def test_pauses_double_and_end_at_the_longest(gateway_house: House) -> None:
    assert [gateway_house.steps.pause_s(tries) for tries in (0, 1, 2, 3, 4, 400)] == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert Retry("archive_busy").disposition == "retry"
