"""`scrub` and a running gateway on one home: one ledger, one mapping, and neither is in the other's way."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pydicom
import pytest
from running import Archive, GatewayProcess, archive, dataset_sha256, policies_for, send

sys.path.append(str(Path(__file__).parents[1] / "app"))

from processes import wait_until
from scrubbing import process, tree, write_study

from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, load_settings


@pytest.fixture
def kept() -> Iterator[Archive]:
    with archive() as made:
        yield made


def test_both_append_to_one_sound_ledger_and_give_the_same_bytes(home: Home, tmp_path: Path, kept: Archive) -> None:
    for person in range(12):
        write_study(tmp_path / "src" / str(person), person, 3)
    paths = sorted((tmp_path / "src").rglob("*.dcm"))
    # A study must not be closed between two of its instances, however busy the machine is.
    served = GatewayProcess(home, policies_for(tmp_path / "policies", kept.url), {"DEID_QUIET_S": "8"})
    served.start()
    try:
        beside = [process(home, tmp_path / "src", tmp_path / f"dst{i}") for i in range(2)]
        for path in paths:
            assert send(path, served.dicom_port) == 0x0000
        for run in beside:
            out, said = run.communicate(timeout=200)
            assert run.returncode == 0, said.decode()
            assert b"12 sent" in out
        wait_until(lambda: len(kept.received) == len(paths), seconds=120, what="everything is in the archive")
    finally:
        assert served.stop() == 0
    assert tree(tmp_path / "dst0") == tree(tmp_path / "dst1")
    by_scrub = {path.stem: dataset_sha256(path) for path in (tmp_path / "dst0").rglob("*.dcm")}
    assert len(by_scrub) == len(paths)
    assert kept.received == {uid: [digest] for uid, digest in by_scrub.items()}
    ledger = Ledger(home.ledger, Keys(master_key(home, load_settings(home.root))).ledger)
    assert ledger.verify().sound
    sent = [line["job"] for line in ledger.lines() if line["event"] == "sent"]
    assert len(sent) == len(set(sent)) == 36
    patients = {pydicom.dcmread(path).PatientID for path in (tmp_path / "dst0").rglob("*.dcm")}
    assert len(patients) == 12
