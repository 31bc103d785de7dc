"""Back-loads from a PACS: what is asked, what arrives, at what pace, and what becomes of every fault."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydicom
import pytest
from houses import House, edit, house, study
from pacs import Pacs, pacs
from peers import Orthanc, OrthancServer, free_port
from pydicom.dataset import Dataset
from running import archive, running, wait_idle

from gateway.app import gauges
from gateway.app.backload import orders
from gateway.app.backload.lists import opened, read_list, sealed
from gateway.app.backload.runner import Backloading
from gateway.cli import run
from gateway.database.backloads import MOVED, STUDY
from gateway.errors import EnvironmentFault, PolicyError, UsageError
from gateway.pseudonyms import Keys
from gateway.receive import Receiver
from gateway.settings import Home

PLANTS = ("LEAK0001", "ACC4711X")


def from_pacs(policies: Path, url: str, **more: object) -> None:
    edit(policies, "destinations", lambda body: body.update(sources={"pacs": {"url": url, **FAST, **more}}))


FAST = {"studies_per_hour": 100_000}


@dataclass
class Loading:
    """A house with an open door, and a back-load that is carried out turn by turn. `ahead_s`: how far its clock is."""

    house: House
    door: Receiver
    runner: Backloading
    ahead_s: float = 0.0

    @property
    def here(self) -> tuple[Home, Any]:
        return self.house.parts.home, self.house.parts.settings

    def start(self, text: str) -> int:
        path = self.house.parts.home.root.parent / "list.csv"
        path.write_text(text)
        return orders.start(*self.here, path, "pacs", actor="admin", reason="project 7")

    def turn(self) -> None:
        """One turn, and what it began comes to its end."""
        self.runner.once(time.time() + self.ahead_s)
        for future in list(self.runner._under_way):
            future.exception(timeout=30)

    def until(self, *states: str, turns: int = 60) -> orders.Progress:
        for _ in range(turns):
            self.turn()
            (now,) = orders.progress(*self.here)
            if now.backload.state in states:
                return now
            self.ahead_s += 61.0  # longer than any pause after a no, in few turns
        raise AssertionError(f"not {states}: {now.as_json()}")

    def arrived(self) -> int:
        return sum(1 for _ in self.house.parts.spool.root.rglob("*.dcm"))

    def told(self, kind: str) -> dict[tuple[str, str], int]:
        (now,) = orders.progress(*self.here)
        return {(state, reason): count for (k, state, reason), count in now.items.items() if k == kind}


@contextmanager
def loading(home: Home, policies: Path, **settings: object) -> Iterator[Loading]:
    values: dict[str, object] = {"allowed_peers": ("PACS@127.0.0.1",), "dicom_port": 0, "network_timeout_s": 5.0}
    with house(home, policies, **{**values, **settings}) as made:
        p = made.parts
        door = Receiver(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics)
        door.start()
        runner = Backloading(p)
        try:
            yield Loading(made, door, runner)
        finally:
            runner.stop()
            door.stop()


@contextmanager
def loading_from(
    home: Home,
    policies: Path,
    datasets: Sequence[pydicom.Dataset],
    *,
    source: dict[str, object] | None = None,
    **how: Any,
) -> Iterator[tuple[Loading, Pacs]]:
    """A PACS that has these, and a house that loads from it."""
    port = [0]
    with pacs(datasets, lambda: port[0], **how) as there:
        from_pacs(policies, there.url, **(source or {}))
        with loading(home, policies) as made:
            port[0] = made.door.port
            yield made, there


def several(count: int, instances: int = 1) -> list[pydicom.Dataset]:
    """Studies of different people, with accession numbers A0, A1, …"""
    made: list[pydicom.Dataset] = []
    for number in range(count):
        for ds in study(instances, patient=f"LEAK000{number}"):
            ds.AccessionNumber = f"A{number}"
            made.append(ds)
    return made


def accessions(count: int) -> str:
    return "accession_number\n" + "".join(f"A{number}\n" for number in range(count))


def test_the_studies_of_a_list_arrive_once_and_whole(home: Home, policies: Path) -> None:
    with loading_from(home, policies, several(3, instances=2)) as (made, there):
        made.start(accessions(3) + "A1\nA9\n")
        gauges.refresh(made.house.parts)
        waiting = {"source": "pacs", "kind": "entry", "state": "waiting"}
        assert made.house.metric("deid_backload_items", **waiting) == 4
        made.until("done")
        assert made.told("entry") == {("found", ""): 3, ("not_found", ""): 1}
        assert made.told("study") == {("moved", ""): 3}
        assert sorted(there.moved) == sorted(there.studies)
        assert made.arrived() == 6
        assert orders.missing(*made.here, 1) == [(6, "not_found", "")]
        line = made.house.events()[-1]
        assert line["event"] == "backload_done"
        assert line["counts"] == {"entry_found": 3, "entry_not_found": 1, "study_moved": 3}


def test_a_person_is_asked_for_with_days_and_every_study_comes_once(home: Home, policies: Path) -> None:
    datasets = [*study(1, patient="P1"), *study(1, patient="P1"), *study(1, patient="P2")]
    with loading_from(home, policies, datasets) as (made, there):
        made.start("patient_id,from,to\nP1,2020-01-01,2020-12-31\nP1,,\nP2,2020-01-31,\n")
        made.until("done")
        assert [str(query.StudyDate) for query in there.asked if "StudyDate" in query] == [
            "20200101-20201231",
            "20200131-",
        ]
        assert made.told("study") == {("moved", ""): 3}
        assert len(there.moved) == 3


def test_what_has_arrived_before_is_not_fetched_again(home: Home, policies: Path) -> None:
    datasets = study(2)
    with loading_from(home, policies, datasets) as (made, there):
        made.house.receive(*datasets)
        made.start(f"study_instance_uid\n{datasets[0].StudyInstanceUID}\n")
        made.until("done")
        assert (made.told("study"), there.moved) == ({("moved", "here_already"): 1}, [])


def test_nothing_that_identifies_lies_open_and_all_of_it_goes_at_the_end(home: Home, policies: Path) -> None:
    datasets = study(1)
    plants = [*PLANTS, str(datasets[0].StudyInstanceUID)]
    with loading_from(home, policies, datasets) as (made, _):
        made.start("accession_number\nACC4711X\nACC0000Y\n")

        def lying() -> str:
            files = [*home.root.glob("database.sqlite*"), home.ledger]
            return "".join(path.read_bytes().decode("latin-1") for path in files if path.exists())

        with made.house.parts.database.transaction() as connection:
            rows = connection.exec_driver_sql("SELECT ciphertext FROM backload_items").fetchall()
        assert [opened(made.house.parts.keys, row[0]) for row in rows] == [
            {"AccessionNumber": "ACC4711X"},
            {"AccessionNumber": "ACC0000Y"},
        ]
        assert not [plant for plant in plants if plant in lying()]
        made.until("done")
        assert not [plant for plant in plants if plant in lying()]
        with made.house.parts.database.transaction() as connection:
            assert connection.exec_driver_sql("SELECT DISTINCT ciphertext FROM backload_items").fetchall() == [("",)]


def test_no_more_studies_at_a_time_and_an_hour_than_the_source_allows(home: Home, policies: Path) -> None:
    limits = {"associations": 2, "studies_per_hour": 3600}
    with loading_from(home, policies, several(5), source=limits, takes_s=0.3) as (made, there):
        made.start(accessions(5))
        now = time.time()
        begun = []
        for second in range(400):
            made.runner.once(now + second / 2)
            time.sleep(0.1)
            begun.append(len(there.moved))
            if made.told("study") == {("moved", ""): 5}:
                break
        assert made.told("study") == {("moved", ""): 5}
        assert there.most_at_once <= 2
        first = next(index for index, count in enumerate(begun) if count)
        assert all(count <= 2 + (index - first) / 2 + 1 for index, count in enumerate(begun))


def test_out_of_its_hours_a_pacs_is_not_asked(home: Home, policies: Path) -> None:
    closed = time.gmtime(time.time() + 7200)
    hours = f"{closed.tm_hour:02}:00-{(closed.tm_hour + 4) % 24:02}:00"
    with loading_from(home, policies, several(1), source={"hours": hours}) as (made, there):
        made.start(accessions(1))
        for _ in range(3):
            made.turn()
        (now,) = orders.progress(*made.here)
        assert (now.waits, there.asked) == ("out of hours", [])
        made.ahead_s = 3 * 3600.0
        assert made.until("done").count("study", "moved") == 1


def test_pause_resume_and_stop_are_obeyed_and_told(home: Home, policies: Path) -> None:
    with loading_from(home, policies, several(3)) as (made, there):
        serial = made.start(accessions(3))
        orders.order(*made.here, serial, "pause", actor="admin", reason="a busy day")
        for _ in range(3):
            made.turn()
        assert there.asked == []
        with pytest.raises(UsageError, match="is paused"):
            orders.order(*made.here, serial, "pause", actor="admin", reason="again")
        orders.order(*made.here, serial, "resume", actor="admin", reason="a quiet day")
        while not there.moved:
            made.turn()
        orders.order(*made.here, serial, "stop", actor="admin", reason="enough")
        count = len(there.moved)
        for _ in range(3):
            made.turn()
        assert len(there.moved) == count
        with pytest.raises(UsageError, match="is stopped"):
            orders.order(*made.here, serial, "resume", actor="admin", reason="more")
        events = [line["event"] for line in made.house.events() if line["event"].startswith("backload")]
        assert events == ["backload_started", "backload_paused", "backload_resumed", "backload_stopped"]
        with made.house.parts.database.transaction() as connection:
            assert connection.exec_driver_sql("SELECT DISTINCT ciphertext FROM backload_items").fetchall() == [("",)]


def test_what_was_under_way_at_a_kill_is_asked_for_again(home: Home, policies: Path) -> None:
    datasets = several(3, instances=2)
    with loading_from(home, policies, datasets) as (made, there):
        made.start(accessions(3))
        while not there.moved:
            made.turn()
        serial = orders.progress(*made.here)[0].backload.serial
        assert made.house.parts.database.next_item(serial, time.time()) is not None  # asked for, and then the kill
        made.runner = Backloading(made.house.parts)
        made.until("done")
        assert made.told("study") == {("moved", ""): 3}
        assert sorted(set(there.moved)) == sorted(there.studies)
        assert made.arrived() == 6


def test_a_pacs_that_is_down_is_left_alone_and_no_entry_is_to_blame(home: Home, policies: Path) -> None:
    port = free_port()
    from_pacs(policies, f"dicom://PACS@127.0.0.1:{port}")
    datasets = several(2)
    with loading(home, policies) as made:
        made.start(accessions(2))
        made.turn()
        made.turn()
        assert made.told("entry") in (
            {("waiting", "unreachable"): 1, ("waiting", ""): 1},
            {("asked", ""): 1, ("waiting", ""): 1},
        )
        until = made.runner._rests["pacs"][1]
        assert 0 < until - time.time() <= 5.0
        with pacs(datasets, lambda: made.door.port, port=port):
            assert made.until("done").count("study", "moved") == 2


def test_a_partial_move_is_tried_again_and_told(home: Home, policies: Path) -> None:
    datasets = several(1, instances=2)
    datasets[1].SOPClassUID = datasets[1].file_meta.MediaStorageSOPClassUID = "1.2.3.4"  # nobody takes this
    with loading_from(home, policies, datasets) as (made, there):
        made.start(accessions(1))
        made.until("done")
        assert made.told("study") == {("failed", "partial"): 1}
        assert len(there.moved) == 3
        assert made.arrived() >= 1
        assert orders.missing(*made.here, 1) == [(2, "failed", "partial")]


def test_a_pacs_that_sends_elsewhere_is_found_out(home: Home, policies: Path) -> None:
    with archive() as other, pacs(several(1), lambda: other.port) as there:
        from_pacs(policies, there.url)
        with loading(home, policies) as made:
            made.start(accessions(1))
            made.until("done")
            assert made.told("study") == {("failed", "not_arrived"): 1}
            assert len(there.moved) == 3
        assert len(other.received) == 1


def test_a_pacs_that_does_not_know_us_pauses_the_back_load_with_the_reason(home: Home, policies: Path) -> None:
    with loading_from(home, policies, several(2), knows=("SOMEBODY",)) as (made, there):
        made.start(accessions(2))
        now = made.until("paused")
        assert now.backload.reason == "destination_unknown"
        assert len(there.moved) == 1
        assert "register it there" in orders.REASONS[now.backload.reason]


def test_another_ae_title_of_ours_may_be_moved_to(home: Home, policies: Path) -> None:
    with pacs(several(1), lambda: port[0], knows=("BULK",)) as there:
        from_pacs(policies, there.url, move_to="BULK")
        with loading(home, policies, called_ae_titles=("BULK",)) as made:
            port = [made.door.port]
            made.start(accessions(1))
            made.until("done")
            assert made.told("study") == {("moved", ""): 1}
            (file,) = made.house.parts.spool.root.rglob("*.dcm")
            assert pydicom.dcmread(file).file_meta.ReceivingApplicationEntityTitle == "BULK"


@pytest.mark.parametrize(
    ("answer", "reason"), [(0xFF00, "stalled"), (None, "unreachable"), (0xC001, "retrieve_refused")]
)
def test_a_move_that_hangs_breaks_or_fails_has_an_end(
    home: Home, policies: Path, answer: int | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.receive.query_retrieve.STALLED_PAUSES", 0.1)

    def answers(*_: Any) -> Iterator[tuple[Dataset, None]]:
        """As pynetdicom hands them on; an empty one stands for a lost association."""
        for _ in range(600):
            status = Dataset()
            if answer is not None:
                status.Status, status.NumberOfRemainingSuboperations = answer, 5
            yield status, None
            time.sleep(0.1)

    with loading_from(home, policies, several(1)) as (made, _):
        monkeypatch.setattr("pynetdicom.association.Association.send_c_move", answers)
        made.start(accessions(1))
        if reason == "unreachable":
            for _ in range(4):
                made.turn()
            assert made.told("study") == {("waiting", "unreachable"): 1}
        else:
            made.until("done")
            assert made.told("study") == {("failed", reason): 1}


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ("all it has", "find_unusable"),
        ("no uid", "find_unusable"),
        ("a path for a uid", "find_unusable"),
        ("refuses", "find_refused"),
        ("without end", "too_many_matches"),
    ],
)
def test_a_query_that_is_answered_wrongly_fetches_nothing(
    home: Home, policies: Path, answers: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.receive.query_retrieve.MATCHES_MAX", 5)

    def find(query: Dataset) -> Iterator[Any]:
        for number in range(1000 if answers == "without end" else 2):
            answer = Dataset()
            answer.QueryRetrieveLevel = "STUDY"
            answer.AccessionNumber = "A7" if answers == "all it has" else query.AccessionNumber
            uid = {"no uid": "", "a path for a uid": "../../x"}.get(answers, f"1.2.{number}")
            answer.StudyInstanceUID = uid
            if answers == "refuses":
                yield 0xA700, None
                return
            yield 0xFF00, answer

    with loading_from(home, policies, [], find=find) as (made, there):
        made.start(accessions(1))
        made.until("done")
        assert made.told("entry") == {("failed", reason): 1}
        assert there.moved == []


def test_a_number_that_looks_like_days_is_a_number(home: Home, policies: Path) -> None:
    def find(query: Dataset) -> Iterator[Any]:
        answer = Dataset()
        answer.QueryRetrieveLevel, answer.PatientID, answer.StudyInstanceUID = "STUDY", "20200615", "1.2.3"
        if query.PatientID != "20201231-20200101":  # the PACS passes over the key, and gives what it has
            yield 0xFF00, answer
            return
        answer.PatientID = query.PatientID
        yield 0xFF00, answer

    with loading_from(home, policies, [], find=find) as (made, there):
        made.start("patient_id\n20200101-20201231\n20201231-20200101\n")
        made.until("done")
        assert orders.missing(*made.here, 1)[:1] == [(2, "failed", "find_unusable")]
        assert made.told("entry") == {("failed", "find_unusable"): 1, ("found", ""): 1}
        assert set(there.moved) == {"1.2.3"}


def test_a_number_with_other_signs_than_ascii_is_asked_for_as_it_is(home: Home, policies: Path) -> None:
    with loading_from(home, policies, study(1, patient="Ω1")) as (made, there):
        made.start("patient_id\nΩ1\n")
        made.turn()
        assert made.told("entry") == {("found", ""): 1}
        assert [str(query.PatientID) for query in there.asked] == ["Ω1"]  # "?1" would mean other people


def test_without_room_here_nothing_is_asked_for_and_no_study_is_to_blame(home: Home, policies: Path) -> None:
    with pacs(several(1), lambda: 0) as there:
        from_pacs(policies, there.url)
        with loading(home, policies, min_free_bytes=1 << 60) as made:
            made.start(accessions(1))
            for _ in range(3):
                made.turn()
            assert (made.told("entry"), there.asked) == ({("waiting", ""): 1}, [])


def test_tls_files_that_cannot_be_read_fail_no_entry(home: Home, policies: Path) -> None:
    from_pacs(policies, f"dicom-tls://PACS@127.0.0.1:{free_port()}", ca_file="gone.pem")
    with loading(home, policies) as made:
        made.start(accessions(1))
        for _ in range(5):
            made.turn()
            made.ahead_s += 901.0
        made.runner.once(time.time())
        assert made.told("entry") == {("waiting", "unreachable"): 1}


def test_what_is_found_after_a_stop_is_not_kept(home: Home, policies: Path) -> None:
    with loading_from(home, policies, several(1)) as (made, _):
        serial = made.start(accessions(1))
        database = made.house.parts.database
        entry = database.next_item(serial, time.time())
        assert entry is not None
        orders.order(*made.here, serial, "stop", actor="admin", reason="enough")
        database.found_studies(entry, [sealed(made.house.parts.keys, STUDY, 2, {"StudyInstanceUID": "1.2.3"})])
        with database.transaction() as connection:
            assert connection.exec_driver_sql("SELECT DISTINCT ciphertext FROM backload_items").fetchall() == [("",)]


def test_what_another_process_brought_to_its_end_is_not_begun_again(home: Home, policies: Path) -> None:
    with loading_from(home, policies, several(1)) as (made, _):
        serial = made.start(accessions(1))
        database = made.house.parts.database
        item = database.next_item(serial, time.time())
        assert item is not None
        database.end_item(item.serial, MOVED)
        database.postpone_item(item.serial, due_at=0.0, tries=1, reason="partial")
        assert made.told("entry") == {("moved", ""): 1}


BAD_LISTS = {
    "": "does not name the columns",
    "name\nX\n": "does not name the columns",
    "accession_number,patient_id\nA,B\n": "does not name the columns",
    "accession_number,from\nA,2020-01-01\n": "does not name the columns",
    "accession_number\n": "the list is empty",
    "accession_number\nSECRET*\n": "matches others",
    "accession_number\nSECRET?\n": "matches others",
    "accession_number\nSECRET\\B\n": "matches others",
    "accession_number\nSECRET678901234567\n": "1 to 16 signs",
    "accession_number,\nSECRET\n": "does not name the columns",
    "patient_id,from,to\nSECRET,2020-13-01,\n": "are days",
    "patient_id,from,to\nSECRET,2021-01-01,2020-01-01\n": "from is after to",
    "patient_id,from,to\n,2020-01-01,\n": "1 to 64 signs",
    "patient_id,from,to\nSECRET\n": "another number of columns",
    "study_instance_uid\nSECRET\n": "is none",
}


@pytest.mark.parametrize("text", BAD_LISTS)
def test_a_list_with_a_fault_begins_nothing_and_is_not_quoted(tmp_path: Path, keys: Keys, text: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text)
    with pytest.raises(PolicyError) as caught:
        read_list(path, keys)
    assert BAD_LISTS[text] in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_a_first_line_without_end_is_a_fault(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / "list.csv"
    path.write_text("SECRET" * 30_000)
    with pytest.raises(PolicyError, match="does not name the columns"):
        read_list(path, keys)


def test_every_fault_of_a_list_is_told_by_its_line(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / "list.csv"
    path.write_text("\ufeffaccession_number\nA1\n\nB*\nA2\nC?\n", encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        read_list(path, keys)
    assert [fault.line for fault in caught.value.faults] == [4, 6]


def test_an_entry_of_another_key_is_not_read(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / "list.csv"
    path.write_text("accession_number\nA1\n")
    (entry,) = read_list(path, keys)
    with pytest.raises(EnvironmentFault, match="another master key"):
        opened(Keys(b"x" * 32), entry.ciphertext)


# -- a real PACS ----------------------------------------------------------------------------------------------------


def store_in(orthanc: OrthancServer, datasets: Sequence[pydicom.Dataset], folder: Path) -> None:
    for number, ds in enumerate(datasets):
        path = folder / f"{number}.dcm"
        ds.save_as(path, enforce_file_format=True)
        orthanc.post("/instances", path.read_bytes())


@pytest.mark.peer
@pytest.mark.xdist_group("peers")
@pytest.mark.parametrize("retrieve", ["move", "get"])
def test_a_list_is_fetched_from_orthanc_and_every_study_is_sent_on(
    home: Home, policies: Path, target: Path, tmp_path: Path, retrieve: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(policies, "routes", lambda body: [rule["when"].update(calling_ae="ORTHANC") for rule in body["routes"]])
    options = {"DicomCheckModalityHost": False, "DicomAlwaysAllowFind": True, "DicomAlwaysAllowMove": True}
    port = free_port()
    modalities = {"DEID": ["DEID", "127.0.0.1", port]}
    with Orthanc(tmp_path, DicomModalities=modalities, DicomAlwaysAllowGet=True, **options) as orthanc:
        store_in(orthanc, several(3, instances=2), tmp_path)
        from_pacs(policies, orthanc.dicom.url, retrieve=retrieve)
        (home.root / ".env").write_text(f"DEID_POLICIES={policies}\n")
        (tmp_path / "list.csv").write_text(accessions(4))
        with running(home, policies, dicom_port=port, allowed_peers=("ORTHANC@127.0.0.1",)) as gateway:
            order = ["backload", "start", str(tmp_path / "list.csv"), "--from", "pacs", "--by", "jane"]
            order += ["--reason", "project 7"]
            code = run([*order, "--follow", "--home", str(home.root)])
            said = capsys.readouterr()
            assert (code, "3 moved, 0 failed" in said.out) == (1, True), said
            wait_idle(gateway)
        assert len(list(target.rglob("*.dcm"))) == 6
        assert run(["backload", "status", "1", "--json", "--home", str(home.root)]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["studies"] == [{"state": "moved", "reason": "", "count": 3}]
        assert told["lines"] == [{"line": 5, "state": "not_found", "reason": ""}]
