"""bench.pipeline: no two studies share a UID, every set has a policy that loads, and a wait ends with names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pydicom
import pytest

from bench.serving import arrival
from bench.serving.account import report
from bench.serving.arrival import Arrival, NotFinished, wait_for_objects
from bench.serving.gateway import Serving
from bench.serving.stages import FILMS, HEADS, STAGES, write_policies
from bench.serving.studies import INSTANCES, Studies
from gateway.app.policy.registry import REGISTRY
from gateway.database import Database, Job
from gateway.policy import load_policy
from gateway.settings import Home
from gateway.study import State


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Serving]:
    home = Home(tmp_path / "home")
    home.create()
    (tmp_path / "serve.log").write_text("the last line")
    database = Database.in_home(home.database)
    yield Serving(home, 0, 0, os.getpid(), tmp_path / "serve.log", database)
    database.close()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    folder.mkdir()
    return folder


def routed(gateway: Serving, key: str, state: State, **more: object) -> None:
    """A study of one object with one job."""
    gateway.database.record_instance(study_key=key, name="a", sop_key=f"sop {key}", size_bytes=1)
    job = Job(f"job {key}", key, 1, "route", "bench", "bench-0", "digest", "archive", "subject")
    gateway.database.route_study(key, 1, [job])
    gateway.database.set_job(job.job_key, state=state, **more)


@pytest.mark.parametrize("kind", [HEADS, FILMS])
def test_no_two_objects_share_a_uid(kind: str, tmp_path: Path) -> None:
    """Study 1 and study 11 once did: their objects overwrote each other in the archive, and the wait had no end."""
    studies = Studies(kind, tmp_path).write(tmp_path / "studies", range(1, 12, 10))
    images = [pydicom.dcmread(path, stop_before_pixels=True) for study in studies for path in study.iterdir()]
    assert len(images) == 2 * INSTANCES[kind]
    assert len({image.SOPInstanceUID for image in images}) == len(images)
    for word in ("StudyInstanceUID", "SeriesInstanceUID", "PatientID"):
        assert len({image[word].value for image in images}) == 2, word
    assert {image.NumberOfStudyRelatedInstances for image in images} == {INSTANCES[kind]}
    assert all(image.file_meta.MediaStorageSOPInstanceUID == image.SOPInstanceUID for image in images)


def test_each_set_is_called_by_a_title_of_its_own_and_has_a_policy_that_loads(tmp_path: Path) -> None:
    folder = write_policies(tmp_path / "policies", list(STAGES), "dicom://ARCHIVE@127.0.0.1:104")
    assert len({stages.called for stages in STAGES.values()}) == len(STAGES)
    for number, stages in enumerate(STAGES.values()):
        policy = load_policy(folder / f"bench-{number}.yaml", REGISTRY)
        assert [name for name, _ in policy.pixels] == [name for stage in stages.pixels for name in stage]
        assert set(policy.gate.study) == {"residual_identifiers", *stages.checks}


def test_what_is_held_before_routing_ends_the_wait_by_name(gateway: Serving, archive: Path) -> None:
    waiting = Arrival(gateway, archive)
    gateway.database.record_instance(study_key="0123", name="a", sop_key="sop", size_bytes=1)
    gateway.database.set_study("0123", 1, state="held", reason="conflicting_instance")
    with pytest.raises(NotFinished, match=r"(?s)0 of 1 objects.*study 0123 g1: held conflicting_instance.*last line"):
        waiting.wait(1, 1)


def test_a_held_job_ends_the_wait_by_name_and_place(gateway: Serving, archive: Path) -> None:
    waiting = Arrival(gateway, archive)
    routed(gateway, "0123", State.HELD, reason="residual_text", at="00001 frame 1")
    with pytest.raises(NotFinished, match=r"job job 0123 \(bench-0\): held residual_text 00001 frame 1, for"):
        waiting.wait(1, 1)


def test_objects_that_are_missing_though_all_was_sent_end_the_wait(
    gateway: Serving, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "GRACE_S", 0.5)
    routed(gateway, "before", State.SENT)
    waiting = Arrival(gateway, archive)
    routed(gateway, "0123", State.SENT)
    (archive / "one").touch()
    with pytest.raises(NotFinished, match="one has overwritten the other; 1 of 2 objects"):
        waiting.wait(1, 2)


def test_what_stands_still_ends_the_wait(gateway: Serving, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "PATIENCE_S", 0.5)
    waiting = Arrival(gateway, archive)
    routed(gateway, "0123", State.SCRUBBED)
    with pytest.raises(NotFinished, match=r"nothing changed.*\n.*scrubbed"):
        waiting.wait(1, 1)
    with pytest.raises(NotFinished, match="0 of 1 objects"):
        wait_for_objects(archive, 1)


def test_a_wait_ends_with_the_last_object_and_tells_how_many_are_there(gateway: Serving, archive: Path) -> None:
    waiting, told = Arrival(gateway, archive), list[int]()
    routed(gateway, "0123", State.SENT)
    (archive / "one").touch()
    waiting.wait(1, 1, told.append)
    waiting.settle(1)
    assert told == [1]


def test_the_result_has_medians_and_ratios_to_peers_of_the_same_studies() -> None:
    def ours(seconds: float) -> dict[str, object]:
        costs = {"cpu_s": {"serve": 4.0, "workers": 16.0}, "leg_s": {"scrub": 8.0}}
        return {
            "who": "gateway",
            "kind": HEADS,
            "studies": 10,
            "seconds": seconds,
            **costs,
            "others_cores": 1,
            "load": 3,
        }

    def theirs(kind: str, seconds: float) -> dict[str, object]:
        return {"who": "peer", "kind": kind, "studies": 10, "seconds": seconds, "others_cores": 1, "load": 3}

    rounds = {
        "header": [ours(10.0), ours(20.0), ours(90.0)],
        "orthanc, heads": [theirs(HEADS, 5.0)] * 3,
        "orthanc, films": [theirs(FILMS, 1.0)] * 3,
    }
    made = report(rounds, 3, {})
    assert made["studies_per_hour"] == {"header": 1800.0}
    assert made["peers_studies_per_hour"] == {"orthanc, heads": 7200.0, "orthanc, films": 36000.0}
    assert made["ratio_vs"] == {"header": {"orthanc": 0.25}}
    assert made["cpu_s_per_study"] == {"header": {"serve": 0.4, "workers": 1.6}}
    assert made["leg_s_per_study"] == {"header": {"scrub": 0.8}}
    assert made["studies_per_hour_range"]["header"] == [400.0, 3600.0]
    assert made["ratio_vs_range"] == {"header": {"orthanc": [0.0556, 0.5]}}


@pytest.mark.parametrize(("serve", "workers", "at_most"), [(0.4, 1.6, 3600.0), (3.0, 0.2, 1200.0)])
def test_what_the_cores_could_do_is_bounded_by_the_one_that_serve_has(
    serve: float, workers: float, at_most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    run = {"who": "gateway", "kind": HEADS, "studies": 1, "seconds": 1.0, "others_cores": 0, "load": 0, "leg_s": {}}
    made = report({"header": [{**run, "cpu_s": {"serve": serve, "workers": workers}}]}, 1, {})
    assert made["calculated_studies_per_hour_at_most"] == {"header": at_most}
