"""Recall: who has what under which UIDs, notes to those that take them, and issuing anew under other UIDs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydicom
import pytest
from houses import House, add_policy, edit, house, late, route_all, study
from persons import sent
from running import archive

from gateway.app import sending as sending_module
from gateway.app.recall.manifest import as_csv, manifest_of, write_manifest
from gateway.app.recall.recalls import Recalling
from gateway.app.shipments import pseudonym_of
from gateway.settings import Home


def takes_notes(folder: Path, url: str, *, notes: bool = True) -> None:
    entry: dict[str, Any] = {"url": url, "rejection_notes": notes}
    edit(folder, "destinations", lambda body: body.update({"research-archive": entry}))


def in_releases(folder: Path) -> None:
    edit(folder, "research-basic", lambda body: body.update(release={"min_subjects": 1}))


def manifest(made: House, number: int = 1) -> dict[str, Any]:
    recall = made.parts.database.recall(number)
    assert recall is not None
    return manifest_of(made.parts.database, recall, made.parts.keys.master)


def kinds(target: Path) -> list[str]:
    return sorted(str(ds.Modality) for ds in sent(target))


def test_a_study_is_recalled_with_what_was_sent_when_and_to_whom(home: Home, policies: Path, tmp_path: Path) -> None:
    got = tmp_path / "got"
    got.mkdir()
    with archive(got) as kept:
        takes_notes(policies, kept.url)
        with house(home, policies) as made:
            key = made.deliver(*study(2))
            images = {str(ds.SOPInstanceUID): ds for ds in sent(got)}
            assert made.decide("recall:study:113039", key, reason="consent withdrawn") == "done: recall 1"
            assert made.ends(key) == [("research-archive", "recalled", "")]
            told = manifest(made)
            (receiver,) = told["receivers"]
            assert (receiver["receiver"], receiver["studies"], receiver["rejection_notes"]) == (
                "research-archive",
                1,
                {"sent": 1},
            )
            assert {
                (e["patient_id"], e["study_instance_uid"], e["series_instance_uid"], e["sop_instance_uid"])
                for e in receiver["instances"]
            } == {(ds.PatientID, ds.StudyInstanceUID, ds.SeriesInstanceUID, uid) for uid, ds in images.items()}
            assert {e["status"] for e in receiver["instances"]} == {"0000"}
            assert {e["sha256_dataset"] for e in receiver["instances"]} == {kept.received[uid][0] for uid in images}
            assert told["code"]["meaning"] == "Data Retention Policy Expired"
            rows = list(csv.DictReader(io.StringIO(as_csv(told))))
            assert [row["sop_instance_uid"] for row in rows] == [e["sop_instance_uid"] for e in receiver["instances"]]
            names = [path.name for path in write_manifest(told, tmp_path / "out")]
            assert names == ["recall-1.json", "recall-1.csv"]
            assert json.loads((tmp_path / "out" / names[0]).read_text()) == told
            assert "LEAK" not in as_csv(told)
            (note,) = [ds for ds in sent(got) if ds.Modality == "KO"]
            (evidence,) = note.CurrentRequestedProcedureEvidenceSequence
            (series,) = evidence.ReferencedSeriesSequence
            assert {one.ReferencedSOPInstanceUID for one in series.ReferencedSOPSequence} == set(images)
            assert (note.PatientID, note.StudyInstanceUID) == (rows[0]["patient_id"], rows[0]["study_instance_uid"])
            events = [line["event"] for line in made.events()]
            assert events[-3:] == ["recalled", "job_recalled", "recall_told"]
            again = made.decide("recall:study:113039", key, reason="consent withdrawn")
            assert again.startswith("all that receivers have of it was recalled before")


def test_what_nobody_has_cannot_be_recalled_and_a_reason_names_nobody(gateway_house: House) -> None:
    made = gateway_house
    assert made.decide("recall:study:113039", "0" * 24) == "no receiver has anything of it"
    key = made.deliver(*study())
    outcome = made.decide("recall:study:113039", key, reason="LEAK0001 has called")
    assert outcome.startswith("the reason names something")
    assert made.ends(key) == [("research-archive", "sent", "")]
    assert made.parts.database.recalls() == []


def test_a_receiver_that_takes_no_notes_gets_none_until_it_does(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        key = made.deliver(*study())
        made.decide("recall:study:113037", key)
        assert manifest(made)["receivers"][0]["rejection_notes"] == {"none": 1}
        assert made.decide("notes", "1") == "no note of it is to be sent"
    takes_notes(policies, f"folder:{target}")
    with house(home, policies) as made:
        assert made.decide("notes", "1") == "done: 1 notes"
        assert kinds(target) == ["CT", "KO"]
        assert made.decide("notes", "1") == "no note of it is to be sent"


def test_a_silent_archive_is_told_later_and_a_person_may_ask_again(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        key = made.deliver(*study())
    takes_notes(policies, "dicom://ARCHIVE@127.0.0.1:1")
    with house(home, policies, retry_limit=2) as made:
        made.decide("recall:study:113039", key)
        (row,) = made.parts.database.recalled_in(1)
        assert (row.note, row.reason, row.at) == ("failed", "gave_up", "archive_unreachable")
        assert made.pauses == [1.0]
        assert [line["event"] for line in made.events()][-1] == "recall_not_told"
    takes_notes(policies, f"folder:{target}")
    with house(home, policies) as made:
        assert made.decide("notes", "1") == "done: 1 notes"
        assert kinds(target) == ["CT", "KO"]


def test_a_release_is_recalled_as_a_whole_and_what_was_about_to_leave_stays(
    home: Home, policies: Path, target: Path
) -> None:
    in_releases(policies)
    with house(home, policies) as made:
        one, two, three = (made.deliver(*study(patient=f"LEAK000{n}")) for n in (1, 2, 3))
        made.decide("close", "research-basic-1")
        release = made.parts.database.release_named("research-basic-1")
        assert release is not None
        assert release.state == "sent"
        waiting = made.job(three)
        with made.parts.database.transaction() as connection:  # as if it had not been sent yet
            connection.exec_driver_sql(f"DELETE FROM outgoing WHERE job_key = '{waiting.job_key}'")
        made.parts.database.set_job(waiting.job_key, state="cleared")
        made.parts.database.set_release(release.serial, state="cleared")
        serial = made.parts.database.add_intent(
            kind="recall:release:113039", key=release.name, actor="dpo", reason="all"
        )
        made.steps.decide(serial)
        assert [made.ends(key)[0][1:] for key in (one, two, three)] == [
            ("recalled", ""),
            ("recalled", ""),
            ("held", "recalled"),
        ]
        found = made.parts.database.release_named("research-basic-1")
        assert found is not None
        assert found.state == "recalled"
        assert manifest(made)["release"] == "research-basic-1"
        assert len(manifest(made)["receivers"][0]["instances"]) == 2


def test_a_pseudonym_and_a_subject_mean_every_study_of_the_person(gateway_house: House, target: Path) -> None:
    made = gateway_house
    one, two, other = made.deliver(*study()), made.deliver(*study()), made.deliver(*study(patient="LEAK0002"))
    keys = made.parts.keys
    (pseudonym,) = {str(ds.PatientID) for ds in sent(target)} - {manifest_pseudonym(made, other)}
    assert (
        made.decide("recall:pseudonym:113039", keys.opaque("issued", "demo", pseudonym.casefold())) == "done: recall 1"
    )
    assert [made.ends(key)[0][1] for key in (one, two, other)] == ["recalled", "recalled", "sent"]
    assert made.decide("recall:subject:113039", f"{keys.person('LEAK0002')}.") == "done: recall 2"
    assert made.ends(other)[0][1] == "recalled"


def manifest_pseudonym(made: House, study_key: str) -> str:
    shipment = made.parts.database.shipment(made.job(study_key).job_key)
    assert shipment is not None
    return pseudonym_of(shipment, made.parts.keys.master)


def test_what_arrives_there_during_a_recall_is_recalled_as_well(
    home: Home, policies: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_notes(policies, f"folder:{target}")
    real: Callable[..., None] = sending_module.forward
    with house(home, policies) as made:

        def forward(clearance: Any, files: Any, *, on_receipt: Any, **rest: Any) -> None:
            def answered(receipt: Any) -> None:
                on_receipt(receipt)
                if receipt.name == "00001":
                    job = made.parts.database.job(clearance.job_key)
                    assert job is not None
                    serial = made.parts.database.add_intent(
                        kind="recall:study:113039", key=job.study_key, actor="dpo", reason="all of it"
                    )
                    intent = made.parts.database.intent(serial)
                    assert intent is not None
                    for leg in Recalling(made.parts).carry_out(intent):  # the note about the first one leaves at once
                        made.run(leg)

            real(clearance, files, on_receipt=answered, **rest)

        monkeypatch.setattr(sending_module, "forward", forward)
        key = made.deliver(*study(2))
        assert made.ends(key) == [("research-archive", "recalled", "")]
        assert len(manifest(made)["receivers"][0]["instances"]) == 2
        notes = [ds for ds in sent(target) if ds.Modality == "KO"]
        assert sorted(len(ds.ContentSequence) for ds in notes) == [1, 2]


def test_a_later_issue_has_other_instance_and_series_uids_everywhere_in_the_study(
    home: Home, policies: Path, target: Path
) -> None:
    first, second = study(2)
    second.ReferencedImageSequence = [reference(first), reference(first, instance="1.2.3.4.99")]
    with house(home, policies) as made:
        key = made.deliver(first, second)
        before = {int(ds.InstanceNumber): ds for ds in sent(target)}
        made.decide("recall:study:113039", key)
        assert made.decide("reissue", "1") == "done: 1 studies"
        jobs = sorted(made.parts.database.jobs_of(key, 1), key=lambda job: job.issue)
        assert [(job.issue, str(job.state)) for job in jobs] == [(1, "recalled"), (2, "sent")]
        after = {int(ds.InstanceNumber): ds for ds in sent(target) if ds.SOPInstanceUID not in uids(before)}
        assert set(after) == {1, 2}
        for number, ds in after.items():
            old = before[number]
            assert (ds.StudyInstanceUID, ds.PatientID) == (old.StudyInstanceUID, old.PatientID)
            assert ds.FrameOfReferenceUID == old.FrameOfReferenceUID
            assert ds.SeriesInstanceUID != old.SeriesInstanceUID
        references = [str(one.ReferencedSOPInstanceUID) for one in after[2].ReferencedImageSequence]
        old_references = [str(one.ReferencedSOPInstanceUID) for one in before[2].ReferencedImageSequence]
        assert references[0] == after[1].SOPInstanceUID
        assert references[1] == old_references[1]  # of another study: its UID stays
        (line,) = [line for line in made.events() if line["event"] == "reissued"]
        assert (line["job"], line["before"], line["issue"]) == (jobs[1].job_key, jobs[0].job_key, 2)
        assert made.decide("reissue", "1") == "all of it was issued anew before"
        made.deliver(late(first))  # follows the newest issue
        assert made.job(key, 2).issue == 2
        series = {str(ds.SeriesInstanceUID) for ds in sent(target)}
        assert series == {str(before[1].SeriesInstanceUID), str(after[1].SeriesInstanceUID)}


def uids(found: dict[int, pydicom.Dataset]) -> set[str]:
    return {str(ds.SOPInstanceUID) for ds in found.values()}


def reference(ds: pydicom.Dataset, instance: str = "") -> pydicom.Dataset:
    item = pydicom.Dataset()
    item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = ds.SOPClassUID, instance or ds.SOPInstanceUID
    return item


def test_late_instances_of_a_recalled_study_are_held_until_it_is_issued_anew(gateway_house: House) -> None:
    made = gateway_house
    (ds,) = study()
    key = made.deliver(ds)
    made.decide("recall:study:113039", key)
    made.deliver(late(ds))
    assert made.ends(key, 2) == [("", "held", "recalled")]
    made.decide("reissue", made.job(key).job_key)
    assert made.decide("rerun", f"{key}.2") == "done"
    assert made.ends(key, 2) == [("research-archive", "sent", "")]


def test_nothing_is_issued_anew_without_originals_or_under_uids_that_stay(
    home: Home, policies: Path, target: Path
) -> None:
    with house(home, policies) as made:
        key = made.deliver(*study())
        assert made.decide("reissue", made.job(key).job_key) == "nothing of it was recalled"
        made.decide("recall:study:113039", key)
        edit(policies, "research-basic", lambda body: body["header"]["options"].append("retain-uids"))
        made.parts.policies.reload()
        assert "keeps UIDs" in made.decide("reissue", "1")
        for path in made.parts.spool.root.rglob("*.dcm"):
            path.unlink()
        assert "originals are gone" in made.decide("reissue", "1")
        assert len(made.parts.database.jobs_of(key, 1)) == 1


def test_another_receiver_of_the_study_stays_at_its_own_issue(home: Home, policies: Path, target: Path) -> None:
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{target.parent}/second"))
    add_policy(policies, "twin", lambda _body: None)
    route_all(policies, ("demo", "research-basic", "research-archive"), ("demo", "twin", "second"))
    with house(home, policies) as made:
        (ds,) = study()
        key = made.deliver(ds)
        recalled = made.job(key, destination="research-archive")
        made.decide("recall:study:113039", key)
        made.decide("reissue", recalled.job_key)
        twin = made.job(key, destination="second")
        assert made.decide("reissue", twin.job_key) == "done: 1 studies"
        issues = {(job.destination, job.issue): str(job.state) for job in made.parts.database.jobs_of(key, 1)}
        assert issues == {
            ("research-archive", 1): "recalled",
            ("research-archive", 2): "sent",
            ("second", 1): "recalled",
            ("second", 3): "sent",  # never the UIDs that another receiver has other bytes under
        }
        made.deliver(late(ds))
        found = {
            folder: {str(ds.SeriesInstanceUID) for ds in sent(folder)} for folder in (target, target.parent / "second")
        }
        assert [len(series) for series in found.values()] == [2, 2]
        assert len(set().union(*found.values())) == 3
