"""What becomes of what arrives: quiet periods, late instances, duplicates, conflicts, mixed patients (cases.md S2)."""

from __future__ import annotations

import copy
import time
from pathlib import Path

import pydicom
import pytest
from houses import House, edit, house, late, route_all, route_nobody, study

from gateway.flow import Leg, Next
from gateway.settings import Home


def files_in(target: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in target.rglob("*.dcm")}


def read(target: Path) -> list[pydicom.Dataset]:
    return sorted((pydicom.dcmread(path) for path in target.rglob("*.dcm")), key=lambda ds: str(ds.SOPInstanceUID))


def altered(ds: pydicom.FileDataset) -> pydicom.FileDataset:
    """The same SOP Instance UID with other bytes."""
    other = copy.deepcopy(ds)
    other.PixelData = bytes(reversed(ds.PixelData))
    return other


def test_a_study_is_sent_whole_and_the_ledger_tells_each_decision(gateway_house: House, target: Path) -> None:
    key = gateway_house.deliver(*study(3))
    assert gateway_house.ends(key) == [("research-archive", "sent", "")]
    assert len(files_in(target)) == 3
    job = gateway_house.job(key)
    events = gateway_house.events(key)
    assert [line["event"] for line in events] == ["routed", "cleared", "sent"]
    routed, cleared, sent = events
    assert routed["jobs"] == [{"job": job.job_key, "policy": "research-basic", "policy_digest": job.policy_digest}]
    assert (routed["route"], routed["instances"]) == ("cross-sectional", {"use": 3})
    assert cleared["policy_digest"] == sent["policy_digest"] == job.policy_digest
    assert [verdict["outcome"] for verdict in cleared["verdicts"]] == ["pass"] * len(cleared["verdicts"])
    assert "residual_identifiers" in {verdict["check"] for verdict in cleared["verdicts"]}
    (stage,) = cleared["steps"]
    assert stage.startswith("header@")
    assert cleared["steps"][stage]["instances"] == 3
    assert len(cleared["sha256"]) == 3
    assert cleared["issuer"] == "gate"
    assert sent["receipts"] == {"success 0000": 3}


def test_a_late_instance_is_a_follow_up_under_the_mapping_and_digest_it_began_with(
    gateway_house: House, policies: Path, target: Path
) -> None:
    (first,) = study()
    key = gateway_house.deliver(first)
    digest = gateway_house.job(key).policy_digest

    def other_dates(body: dict[str, object]) -> None:
        body["header"]["dates"] = {"shift_days": [1000, 1100], "scope": "patient"}  # type: ignore[index]
        body["header"]["patient_id"]["prefix"] = "OTHER-"  # type: ignore[index]

    edit(policies, "research-basic", other_dates)
    route_nobody(policies)
    gateway_house.parts.policies.reload()
    assert gateway_house.parts.policies.current.policies["research-basic"].digest != digest
    gateway_house.deliver(late(first))
    assert gateway_house.ends(key, 2) == [("research-archive", "sent", "")]
    assert gateway_house.job(key, 2).policy_digest == digest
    one, two = read(target)
    for word in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID", "PatientID", "StudyDate"):
        assert one[word].value == two[word].value, word
    assert one.SOPInstanceUID != two.SOPInstanceUID
    assert one.PatientID.startswith("DEMO-")
    # A new study is another matter: it finds no route any more.
    assert gateway_house.ends(gateway_house.deliver(*study())) == [("", "held", "no_route")]


def test_the_policy_of_now_applies_to_a_new_study(gateway_house: House, policies: Path, target: Path) -> None:
    edit(policies, "research-basic", lambda body: body["header"]["patient_id"].update(prefix="OTHER-"))
    gateway_house.parts.policies.reload()
    gateway_house.deliver(*study())
    (sent,) = read(target)
    assert sent.PatientID.startswith("OTHER-")


def test_the_same_person_has_one_pseudonym_in_a_project_and_another_in_the_next(
    gateway_house: House, policies: Path, target: Path, tmp_path: Path
) -> None:
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{tmp_path}/second"))
    route_all(policies, ("one", "research-basic", "research-archive"), ("two", "research-basic", "second"))
    gateway_house.parts.policies.reload()
    for _ in range(2):
        key = gateway_house.deliver(*study())
        assert gateway_house.ends(key) == [("research-archive", "sent", ""), ("second", "sent", "")]
    first, second = read(target), read(tmp_path / "second")
    assert len(first) == len(second) == 2
    assert len({ds.PatientID for ds in first}) == len({ds.PatientID for ds in second}) == 1
    assert first[0].PatientID != second[0].PatientID
    assert {ds.StudyInstanceUID for ds in first}.isdisjoint({ds.StudyInstanceUID for ds in second})


def test_duplicates_vanish_within_a_study_and_in_a_later_association(gateway_house: House, target: Path) -> None:
    one, two = study(2)
    key = gateway_house.deliver(one, two, one)
    assert gateway_house.events(key)[0]["instances"] == {"use": 2, "duplicate": 1}
    before = files_in(target)
    gateway_house.deliver(two, one)
    assert files_in(target) == before
    assert [(row.generation, row.state) for row in gateway_house.parts.database.generations(key)] == [
        (1, "routed"),
        (2, "duplicate"),
    ]
    assert [line["event"] for line in gateway_house.events(key)] == ["routed", "cleared", "sent", "duplicate"]
    assert {row.generation for row in gateway_house.parts.database.instances_of(key)} == {1}
    # And the next one is a follow-up like any other.
    gateway_house.deliver(late(one))
    assert gateway_house.ends(key, 3) == [("research-archive", "sent", "")]


@pytest.mark.parametrize("after", [False, True])
def test_the_same_uid_with_other_bytes_holds_and_overwrites_nothing(
    gateway_house: House, target: Path, after: bool
) -> None:
    (ds,) = study()
    if after:
        key = gateway_house.deliver(ds)
        before = files_in(target)
        gateway_house.deliver(altered(ds))
        assert gateway_house.ends(key, 1) == [("research-archive", "sent", "")]
        assert gateway_house.ends(key, 2) == [("", "held", "conflicting_instance")]
        assert files_in(target) == before
    else:
        key = gateway_house.deliver(ds, altered(ds))
        assert gateway_house.ends(key) == [("", "held", "conflicting_instance")]
        assert files_in(target) == {}
    assert gateway_house.events(key)[-1]["reason"] == "conflicting_instance"
    names = {row.name for row in gateway_house.parts.database.instances_of(key)}
    assert gateway_house.events(key)[-1]["at"] in names


def sharing_a_uid(**first: object) -> tuple[pydicom.FileDataset, pydicom.FileDataset]:
    """One object each of two studies: both would leave under one UID, and the archive would keep one of them."""
    (one,), (two,) = study(**first), study(patient="LEAK0002")  # type: ignore[arg-type]
    two.SOPInstanceUID = two.file_meta.MediaStorageSOPInstanceUID = one.SOPInstanceUID
    return one, two


def test_a_uid_that_another_study_brought_before_holds_and_overwrites_nothing(
    gateway_house: House, target: Path
) -> None:
    one, two = sharing_a_uid()
    first = gateway_house.deliver(one)
    before = files_in(target)
    second = gateway_house.deliver(two)
    assert gateway_house.ends(first) == [("research-archive", "sent", "")]
    assert gateway_house.ends(second) == [("", "held", "conflicting_instance")]
    (row,) = gateway_house.parts.database.instances_of(second)
    assert gateway_house.events(second)[-1]["at"] == row.name
    gateway_house.deliver(one)  # as ever
    assert gateway_house.parts.database.generations(first)[-1].state == "duplicate"
    assert files_in(target) == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_studies_that_arrive_together_and_share_a_uid_the_first_is_sent(
    gateway_house: House, target: Path, order: tuple[int, int]
) -> None:
    keys = [gateway_house.receive(one) for one in sharing_a_uid()]
    gateway_house.close()
    for number in order:
        gateway_house.run(Next(Leg.INTAKE, keys[number], 1, 0, 1))
    assert gateway_house.ends(keys[0]) == [("research-archive", "sent", "")]
    assert gateway_house.ends(keys[1]) == [("", "held", "conflicting_instance")]
    assert len(files_in(target)) == 1


def test_the_second_study_of_a_uid_may_leave_once_the_first_was_rejected(gateway_house: House, target: Path) -> None:
    one, two = sharing_a_uid(patient="")
    first, second = gateway_house.deliver(one), gateway_house.deliver(two)
    assert gateway_house.ends(first) == [("", "held", "missing_patient_id")]
    assert gateway_house.ends(second) == [("", "held", "conflicting_instance")]
    assert gateway_house.decide("reject", f"{first}.1") == "done"
    assert gateway_house.decide("rerun", f"{second}.1") == "done"
    assert gateway_house.ends(second) == [("research-archive", "sent", "")]
    assert len(files_in(target)) == 1


@pytest.mark.parametrize("after", [False, True])
def test_one_study_with_two_patient_ids_holds(gateway_house: House, target: Path, after: bool) -> None:
    (ds,) = study()
    other = late(ds, PatientID="LEAK0002")
    if after:
        key = gateway_house.deliver(ds)
        gateway_house.deliver(other)
        assert gateway_house.ends(key, 2) == [("", "held", "mixed_patients")]
        assert len(files_in(target)) == 1
    else:
        key = gateway_house.deliver(ds, other)
        assert gateway_house.ends(key) == [("", "held", "mixed_patients")]
        assert files_in(target) == {}


def test_padding_makes_no_other_patient(gateway_house: House) -> None:
    (ds,) = study(patient="LEAK001")
    key = gateway_house.deliver(ds, late(ds, PatientID="LEAK001 "))
    assert gateway_house.ends(key) == [("research-archive", "sent", "")]


@pytest.mark.parametrize("patient", ["", None, " "])
def test_a_missing_patient_id_holds(gateway_house: House, target: Path, patient: str | None) -> None:
    (ds,) = study()
    if patient is None:
        del ds.PatientID
    else:
        ds.PatientID = patient
    key = gateway_house.deliver(ds)
    assert gateway_house.ends(key) == [("", "held", "missing_patient_id")]
    assert files_in(target) == {}


def test_what_was_rejected_counts_as_never_received_so_a_corrected_study_goes_through(
    gateway_house: House, target: Path
) -> None:
    (ds,) = study()
    other = late(ds, PatientID="LEAK0002")
    key = gateway_house.deliver(ds, other)
    assert gateway_house.decide("reject", f"{key}.1") == "done"
    assert gateway_house.ends(key) == [("", "rejected", "reviewer_rejected")]
    other.PatientID = ds.PatientID
    gateway_house.deliver(ds, other)
    assert gateway_house.ends(key, 2) == [("research-archive", "sent", "")]
    assert len(files_in(target)) == 2
    # What had been rejected is not counted as known afterwards either.
    gateway_house.deliver(ds)
    assert gateway_house.parts.database.generations(key)[-1].state == "duplicate"


def test_an_object_that_cannot_be_read_holds_its_study_and_is_not_lost(gateway_house: House) -> None:
    (ds,) = study()
    gateway_house.receive(ds)
    key = gateway_house.receive_bytes(b"\0" * 128 + b"DICM" + b"\x02\x00\x00\x00UL\x04\x00\x7f", ds)
    gateway_house.settle()
    assert gateway_house.ends(key) == [("", "held", "unreadable_object")]
    assert len(list(gateway_house.parts.spool.root.rglob("*.dcm"))) == 2


def test_a_dicomdir_is_refused(gateway_house: House) -> None:
    (ds,) = study()
    ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.1.3.10"
    key = gateway_house.deliver(ds)
    assert gateway_house.ends(key) == [("", "refused", "dicomdir")]
    assert gateway_house.events(key)[-1]["event"] == "refused"


def test_a_follow_up_waits_for_the_generation_before_it(gateway_house: House, target: Path) -> None:
    """A second delivery of the same object while the first is still being looked at must not be sent twice."""
    (ds,) = study()
    key = gateway_house.receive(ds)
    assert gateway_house.close() == [(key, 1)]
    gateway_house.receive(ds)
    assert gateway_house.close() == []
    gateway_house.settle()
    assert [row.state for row in gateway_house.parts.database.generations(key)] == ["routed", "duplicate"]
    assert len(files_in(target)) == 1


def test_a_rerun_generation_joins_the_mapping_that_a_later_one_got(gateway_house: House, policies: Path) -> None:
    """Both held for want of a route; the later one is rerun first, then the policy changes, then the earlier one."""
    route_nobody(policies)
    gateway_house.parts.policies.reload()
    (ds,) = study()
    key = gateway_house.deliver(ds)
    gateway_house.deliver(late(ds))
    assert gateway_house.ends(key, 2) == [("", "held", "no_route")]
    route_all(policies, ("demo", "research-basic", "research-archive"))
    gateway_house.parts.policies.reload()
    assert gateway_house.decide("rerun", f"{key}.2") == "done"
    digest = gateway_house.job(key, 2).policy_digest
    edit(policies, "research-basic", lambda body: body["header"]["patient_id"].update(prefix="OTHER-"))
    gateway_house.parts.policies.reload()
    assert gateway_house.decide("rerun", f"{key}.1") == "done"
    assert gateway_house.ends(key, 1) == [("research-archive", "sent", "")]
    assert gateway_house.job(key, 1).policy_digest == digest


def test_quiet_period_forced_limit_and_expected_count_close_a_study(home: Home, policies: Path) -> None:
    rule = {"quiet_s": 60.0, "forced_s": 3600.0, "use_expected": True}
    with house(home, policies) as made:
        database = made.parts.database
        quiet, busy, told = (study(2) for _ in range(3))
        now = time.time()
        quiet_key, busy_key = made.receive(quiet[0]), made.receive(busy[0])
        told_key = made.receive(told[0], expected=2)
        assert database.close_complete(**rule) == []
        database.set_study(quiet_key, 1, last_at=now - 61)
        database.set_study(busy_key, 1, last_at=now - 59, first_at=now - 3599)
        assert database.close_complete(**rule) == [(quiet_key, 1)]
        made.receive(told[1], expected=2)
        assert database.close_complete(**rule) == [(told_key, 1)]
        made.receive(busy[1])  # begins a new quiet period
        database.set_study(busy_key, 1, first_at=now - 3601)
        assert database.close_complete(**rule) == [(busy_key, 1)]
        made.settle()
        assert {len(made.parts.database.instances_of(key, 1)) for key in (busy_key, told_key)} == {2}
