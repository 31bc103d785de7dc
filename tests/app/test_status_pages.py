"""/metrics after a known set of studies, and /healthz and /readyz that tell the truth."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from houses import late, study
from processes import wait_until
from prometheus_client.parser import text_string_to_metric_families
from running import archive, policies_for, running, send, wait_idle

from gateway.app import poller as poller_module
from gateway.app.serve import Gateway
from gateway.errors import REASONS
from gateway.flow import Next
from gateway.flow import engine as engine_module
from gateway.gate import CHECKS
from gateway.process_settings import ALL, ROLES
from gateway.settings import Home
from gateway.study import State


def get(gateway: Gateway, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{gateway.status.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(gateway: Gateway) -> Samples:
    """Every sample of /metrics by name and labels."""
    status, text = get(gateway, "/metrics")
    assert status == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)


@pytest.fixture
def served(home: Home, policies: Path) -> Iterator[Gateway]:
    with running(home, policies) as gateway:
        yield gateway


def test_metrics_after_a_known_set_of_studies(home: Home, tmp_path: Path) -> None:
    with archive() as kept:
        policies = policies_for(tmp_path / "policies", kept.url)
        with running(home, policies) as gateway:
            port = gateway.receiver.port
            assert value(scrape(gateway), "deid_ledger_lines") == 1  # started
            two, three = study(2), study(3)
            (photograph,), (nobody,) = study(modality="XC"), study(patient="")
            for ds in (*two, *three, three[0], photograph, nobody):
                assert send(ds, port) == 0x0000
            assert send(study()[0], port, calling="STRANGER") == -1
            wait_idle(gateway)
            samples = scrape(gateway)
            ledger = gateway.parts.ledger
            assert value(samples, "deid_ledger_lines") == len(list(ledger.lines()))
            lines = [line["event"] for line in ledger.lines()]
            sent_bytes = sum(
                instance["size_bytes"]
                for job in gateway.parts.database.jobs_in(State.SENT)
                for instance in json.loads(job.clearance)["instances"]
            )
    decided = {
        (dict(labels)["state"], dict(labels)["reason"]): count
        for (name, labels), count in samples.items()
        if name == "deid_jobs_decided_total"
    }
    assert decided == {("sent", ""): 2, ("held", "not_assessed"): 1, ("held", "missing_patient_id"): 1}
    assert sorted(lines) == ["cleared"] * 2 + ["held"] * 2 + ["routed"] * 3 + ["sent"] * 2 + ["started"]
    now = {labels: count for (name, labels), count in samples.items() if name == "deid_jobs"}
    assert {tuple(dict(labels).values()): count for labels, count in now.items()} == {
        ("", "sent"): 2,
        ("not_assessed", "held"): 1,
    }
    assert value(samples, "deid_studies", state="held", reason="missing_patient_id") == 1
    assert value(samples, "deid_study_generations_closed_total") == 4
    for stage, count in {"intake": 4, "scrub": 3, "gate": 3, "forward": 2}.items():
        assert value(samples, "deid_stage_seconds_count", stage=stage) == count, stage
        assert value(samples, "deid_stage_seconds_bucket", stage=stage, le="+Inf") == count
        assert 0 < value(samples, "deid_stage_seconds_sum", stage=stage) < 60
    assert value(samples, "deid_instances_received_total", result="success") == 8
    assert value(samples, "deid_store_seconds_count") == 8
    assert value(samples, "deid_instances_sent_total", destination="research-archive", kind="success") == 5
    assert value(samples, "deid_sent_bytes_total", destination="research-archive") == sent_bytes > 0
    associations = sum(count for (name, _), count in samples.items() if name == "deid_associations_total")
    assert associations == 9
    assert value(samples, "deid_open_associations") == 0
    assert value(samples, "deid_queue_depth") == value(samples, "deid_oldest_unfinished_seconds") == 0
    assert value(samples, "deid_spool_free_bytes") > 0
    assert sum(count for (name, _), count in samples.items() if name == "deid_unforeseen_failures_total") == 0
    assert_bounded(samples)


PARTS = ("receiver", "backload", "engine", "poller", "watch", "disk", "database", "ledger")


def assert_bounded(samples: Samples) -> None:
    """Label values come from lists that our code and the policy files know, never from what was received."""
    known = {
        "state": {str(state) for state in State} | {"routed", "duplicate"},
        "reason": {"", *REASONS},
        "stage": {"intake", "scrub", "gate", "forward"},
        "check": {*CHECKS, "encoding"},
        "destination": {"research-archive", "local-folder"},
        "kind": {"success", "warning", "failure"},
        "part": {*PARTS},
        "role": {ALL, *ROLES},
    }
    for name, labels in samples:
        for label, found in labels:
            if label == "le":
                float(found)
            elif label == "result":
                assert found.replace("_", "").isalpha(), (name, found)
            else:
                assert found in known[label], (name, label, found)


def test_queue_depth_and_age_while_the_archive_is_down(home: Home, tmp_path: Path) -> None:
    policies = policies_for(tmp_path / "policies", "dicom://ARCHIVE@127.0.0.1:9")
    with running(home, policies, retry_base_s=60.0, retry_max_s=60.0) as gateway:
        (ds,) = study()
        send(ds, gateway.receiver.port)
        deadline = time.monotonic() + 20
        while value(scrape(gateway), "deid_jobs", state="cleared", reason="archive_unreachable") != 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(0.3)
        samples = scrape(gateway)
        assert value(samples, "deid_queue_depth") == 1
        assert 0.3 < value(samples, "deid_oldest_unfinished_seconds") < 30
        send(late(ds), gateway.receiver.port)
        assert value(scrape(gateway), "deid_studies", state="received", reason="") == 1


def test_many_scrapes_at_once_are_all_whole(served: Gateway) -> None:
    for _ in range(3):
        send(study()[0], served.receiver.port)
    wait_idle(served)
    found: list[float] = []

    def ask() -> None:
        found.extend(value(scrape(served), "deid_jobs", state="sent", reason="") for _ in range(10))

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert found == [3.0] * 40


def test_a_well_gateway_is_healthy_and_ready(served: Gateway) -> None:
    time.sleep(0.5)
    assert get(served, "/healthz") == (200, "ok\n")
    status, body = get(served, "/readyz")
    assert (status, json.loads(body)) == (
        200,
        dict.fromkeys(PARTS, True),
    )
    assert get(served, "/patients/ZZSYNTH")[0] == 404


def test_a_dead_poller_is_not_healthy(served: Gateway) -> None:
    served.poller._stopping.set()
    served.poller._thread.join(timeout=5)
    assert get(served, "/healthz") == (503, "stalled\n")
    status, body = get(served, "/readyz")
    assert (status, json.loads(body)["poller"]) == (503, False)
    assert not served.healthy()


def test_a_gateway_that_takes_no_connections_is_neither_healthy_nor_ready(served: Gateway) -> None:
    served.receiver.stop()
    status, body = get(served, "/readyz")
    assert (status, json.loads(body)["receiver"]) == (503, False)
    assert get(served, "/healthz")[0] == 503


def test_a_hung_poller_is_not_healthy(served: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(poller_module, "STALLED_S", 0.5)
    monkeypatch.setattr(served.poller, "once", lambda: go_on.wait(10))
    time.sleep(1.2)
    assert get(served, "/healthz")[0] == 503
    lease = SimpleNamespace(heard_s=0.0)  # of several processes one whose database is away: a restart mends nothing
    monkeypatch.setattr(served.poller, "_lease", lease)
    assert get(served, "/healthz")[0] == 200
    assert get(served, "/readyz")[0] == 503
    lease.heard_s = poller_module.OUTAGE_S
    assert get(served, "/healthz")[0] == 503
    monkeypatch.setattr(poller_module, "STALLED_S", 30.0)
    go_on.set()
    deadline = time.monotonic() + 10
    while get(served, "/healthz")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_poller_that_has_much_to_do_at_once_is_healthy_and_ready(
    served: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night's studies are complete in one turn: on a busy machine that takes longer than a hung one is given."""
    monkeypatch.setattr(poller_module, "STALLED_S", 1.0)
    done: list[str] = []

    def slowly(task: Next) -> None:
        time.sleep(0.3)
        done.append(task.key)

    monkeypatch.setattr(served.engine, "enqueue", slowly)
    many = [(f"study{number}", 1) for number in range(10)]
    monkeypatch.setattr(served.parts.database, "close_complete", lambda **_: many if not done else [])
    while len(done) < len(many):
        assert served.dead() == []
        assert served.checks()["poller"]
        time.sleep(0.05)
    monkeypatch.setattr(poller_module, "STALLED_S", 0.2)
    monkeypatch.setattr(served.poller, "once", lambda: time.sleep(1.0))
    wait_until(lambda: served.dead() == ["poller"], seconds=10, what="one that hangs is named")


def test_trouble_that_a_restart_would_not_mend_is_not_ready_yet_healthy(
    served: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller_module, "STALLED_S", 3.0)

    def fail() -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(served.poller, "once", fail)
    time.sleep(3.2)
    assert get(served, "/healthz")[0] == 200
    status, body = get(served, "/readyz")
    assert (status, json.loads(body)["poller"]) == (503, False)


def test_a_poller_survives_what_nobody_foresaw(served: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []

    def fail() -> None:
        turns.append(1)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(served.poller, "once", fail)
        time.sleep(1.0)
    assert len(turns) >= 2
    send(study()[0], served.receiver.port)
    wait_idle(served)
    assert served.parts.database.count_states() == {("sent", ""): 1}


def test_a_dead_engine_is_not_healthy(served: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "STARTING_S", 0.0)
    import dbos._dbos

    for event in dbos._dbos._get_dbos_instance().background_thread_stop_events:
        event.set()
    deadline = time.monotonic() + 10
    while get(served, "/healthz")[0] == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert json.loads(get(served, "/readyz")[1])["engine"] is False


def test_a_full_disk_is_not_ready(home: Home, policies: Path) -> None:
    with running(home, policies, min_free_bytes=1 << 60) as gateway:
        status, body = get(gateway, "/readyz")
        assert (status, json.loads(body)["disk"]) == (503, False)
        assert get(gateway, "/healthz")[0] == 200


def test_a_damaged_ledger_is_not_ready_and_metrics_go_on(served: Gateway) -> None:
    send(study()[0], served.receiver.port)
    wait_idle(served)
    with open(served.parts.ledger.path, "ab") as file:
        file.write(b'{"line":99}\n')
    status, body = get(served, "/readyz")
    assert (status, json.loads(body)["ledger"]) == (503, False)
    samples = scrape(served)
    assert value(samples, "deid_ledger_lines") != value(samples, "deid_ledger_lines")  # not a number
    assert value(samples, "deid_jobs", state="sent", reason="") == 1
    # And nothing is decided any more until it is restored.
    (ds,) = study()
    send(ds, served.receiver.port)
    time.sleep(3)
    assert served.parts.database.count_states() == {("sent", ""): 1}
