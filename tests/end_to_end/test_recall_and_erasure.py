"""A running gateway in front of Orthanc: a study is recalled with a note, its person erased, with kills on the way."""

from __future__ import annotations

import io
import random
import time
from pathlib import Path
from typing import Any

import pydicom
import pytest
from houses import edit, study
from persons import with_vault
from running import GatewayProcess, accept_everything, policies_for, send

from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, load_settings
from tests import peers
from tests.cli.commands import as_process

WORDS = ("--by", "dpo", "--reason", "consent was withdrawn")


def wait(true: Any, what: str, seconds: float = 90.0) -> None:
    peers.wait_until(true, seconds=seconds, what=what)


@pytest.mark.peer
def test_a_study_is_recalled_from_orthanc_and_its_person_erased_with_kills_on_the_way(
    home: Home, tmp_path: Path
) -> None:
    dice = random.Random(11)
    with peers.Orthanc(tmp_path) as orthanc:
        policies = policies_for(tmp_path / "policies", orthanc.dicom.url, change=accept_everything)
        with_vault(policies)
        entry = {"url": orthanc.dicom.url, "rejection_notes": True}
        edit(policies, "destinations", lambda body: body.update({"research-archive": entry}))
        gateway = GatewayProcess(home, policies, {"DEID_WORKERS": "1", "DEID_QUIET_S": "0.5"})
        environment = {
            "DEID_HOME": str(home.root),
            "DEID_POLICIES": str(policies),
            "DEID_WORKERS": "1",
        }
        gateway.start()
        try:
            mine, other = study(2), study(2, patient="LEAK0002")
            for ds in (*mine, *other):
                assert send(ds, gateway.dicom_port) == 0
            wait(lambda: len(orthanc.instances()) == 4, "four instances in Orthanc")
            database = gateway.database()
            wait(lambda: database.count_states() == {("sent", ""): 2}, "both sent")
            study_key = Keys(master_key(home, load_settings(home.root))).opaque("study", str(mine[0].StudyInstanceUID))
            (job,) = database.jobs_of(study_key, 1)
            shipment = database.shipment(job.job_key)
            assert shipment is not None

            ran = as_process("recall", "study", shipment.study_uid, *WORDS, "--json", env=environment)
            assert (ran.code, ran.err) == (0, "")
            gateway.kill()
            gateway.start()
            wait(lambda: len(orthanc.instances()) == 5, "the note in Orthanc")
            files = [pydicom.dcmread(io.BytesIO(data)) for data in orthanc.files_by_sop_uid().values()]
            (note,) = [ds for ds in files if ds.Modality == "KO"]
            named = {str(item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID) for item in note.ContentSequence}
            assert named == {one["sop_instance_uid"] for one in ran.json["receivers"][0]["instances"]}
            assert named == {
                str(ds.SOPInstanceUID)
                for ds in files
                if ds.StudyInstanceUID == shipment.study_uid and ds.Modality != "KO"
            }
            wait(lambda: [row.note for row in database.notes("sent", "due")] == ["sent"], "the note is known as sent")

            gateway.kill()
            gateway.start(wait=False)
            ran = as_process("subject", "erase", *WORDS, "--json", stdin=b"LEAK0001\n", env=environment)
            assert (ran.code, ran.err) == (0, "")
            for _ in range(3):
                time.sleep(dice.uniform(0.0, 0.6))
                gateway.kill()
                gateway.start(wait=False)
            gateway.wait_ready(seconds=90)
            wait(lambda: all(one.done_at is not None for one in database.erasures()), "the erasure is done")
            assert not list((home.spool / study_key).glob("*.dcm"))
            assert len(list(home.spool.rglob("*.dcm"))) == 2  # of the other person
            assert len(list(home.vault.rglob("*.rec"))) == 1
            assert len(orthanc.instances()) == 5
            database.close()
        finally:
            assert gateway.stop() == 0
    keys = Keys(master_key(home, load_settings(home.root)))
    assert Ledger(home.ledger, keys.ledger).verify().sound
    for path in (home.ledger, home.database, gateway.log, home.engine_database):
        assert b"LEAK0001" not in path.read_bytes()
