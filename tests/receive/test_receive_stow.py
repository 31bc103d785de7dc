"""DICOMweb in: what is kept equals what C-STORE keeps, and no answer says more than is on disk."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydicom
import pytest
from dicomweb_client import DICOMwebClient
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydicom.uid import ExplicitVRLittleEndian
from pynetdicom import AE

from gateway.database import Database
from gateway.errors import EnvironmentFault, UsageError
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive import Receiver
from gateway.receive.part10 import NoFile, read_head
from gateway.receive.stow import StowReceiver
from gateway.settings import Home, Settings, load_settings
from gateway.spool import Spool
from tests import peers
from tests.certificates import Authority

TOKEN = "a token of forty hexadecimal digits or so"
CLIENT = f"PACS@127.0.0.1#{hashlib.sha256(TOKEN.encode()).hexdigest()}"
MULTIPART = 'multipart/related; type="application/dicom"; boundary=xyz'
CT, MR = (Path(pydicom.data.get_testdata_file(name)) for name in ("CT_small.dcm", "MR_small_RLE.dcm"))


@dataclass
class WebDoor:
    """A running DICOMweb door."""

    stow: StowReceiver
    spool: Spool
    database: Database
    metrics: Metrics
    keys: Keys

    def kept(self) -> list[Path]:
        return sorted(self.spool.root.rglob("*.dcm"))

    def parts(self) -> list[Path]:
        return list(self.spool.incoming.iterdir()) if self.spool.incoming.exists() else []

    def post(
        self, body: bytes, path: str = "/studies", token: str = TOKEN, kind: str = MULTIPART
    ) -> tuple[int, dict[str, Any]]:
        link = http.client.HTTPConnection("127.0.0.1", self.stow.port, timeout=20)
        try:
            link.request("POST", f"/dicom-web{path}", body, {"Content-Type": kind, "Authorization": f"Bearer {token}"})
            answer = link.getresponse()
            text = answer.read()
        finally:
            link.close()
        return answer.status, json.loads(text) if answer.getheader("Content-Type") == "application/dicom+json" else {}


@pytest.fixture
def open_web(home: Home, keys: Keys, settings: Callable[..., Settings]) -> Iterator[Callable[..., WebDoor]]:
    doors: list[WebDoor] = []

    def build(**overrides: object) -> WebDoor:
        chosen = {"stow_port": 0, "stow_clients": CLIENT, "min_free_bytes": 0, "network_timeout_s": 10.0, **overrides}
        spool, metrics, database = Spool(home.spool), Metrics(), Database.in_home(home.database)
        spool.incoming.mkdir(parents=True, exist_ok=True)
        stow = StowReceiver(settings=settings(**chosen), spool=spool, database=database, keys=keys, metrics=metrics)
        stow.start()
        doors.append(WebDoor(stow, spool, database, metrics, keys))
        return doors[-1]

    yield build
    for door in doors:
        door.stow.stop()
        door.database.close()


@pytest.fixture
def door(open_web: Callable[..., WebDoor]) -> WebDoor:
    return open_web()


def body(*files: bytes, kind: str = "application/dicom", boundary: str = "xyz", end: bool = True) -> bytes:
    parts = [f"--{boundary}\r\nContent-Type: {kind}\r\n\r\n".encode() + file + b"\r\n" for file in files]
    return b"".join(parts) + (f"--{boundary}--\r\n".encode() if end else b"")


def uids(answer: dict[str, Any], sequence: str) -> list[tuple[str, int]]:
    """SOP Instance UID and failure reason (0: none) of the items of a sequence."""
    items = answer.get(sequence, {"Value": []})["Value"]
    return [
        (item.get("00081155", {"Value": [""]})["Value"][0], item.get("00081197", {"Value": [0]})["Value"][0])
        for item in items
    ]


STORED, FAILED = "00081199", "00081198"


def test_what_is_kept_is_what_c_store_keeps_byte_for_byte(
    door: WebDoor, home: Home, keys: Keys, settings: Callable[..., Settings]
) -> None:
    status, answer = door.post(body(CT.read_bytes(), MR.read_bytes()))
    sent = [pydicom.dcmread(path) for path in (CT, MR)]
    assert status == 200
    assert uids(answer, STORED) == [(str(ds.SOPInstanceUID), 0) for ds in sent]
    by_web = {path.read_bytes() for path in door.kept()}
    for path in door.kept():
        path.unlink()
    values = settings(allowed_peers="PACS@127.0.0.1", min_free_bytes=0, network_timeout_s=10.0)
    receiver = Receiver(settings=values, spool=door.spool, database=door.database, keys=keys, metrics=Metrics())
    receiver.start()
    try:
        entity = AE("PACS")
        for dataset in sent:
            entity.add_requested_context(dataset.SOPClassUID, dataset.file_meta.TransferSyntaxUID)
        association = entity.associate("127.0.0.1", receiver.port, ae_title="DEID")
        # Paths, so that pynetdicom sends the data set's bytes as they lie there.
        assert [association.send_c_store(path).Status for path in (CT, MR)] == [0, 0]
        association.release()
    finally:
        receiver.stop()
    assert {path.read_bytes() for path in door.kept()} == by_web
    assert door.parts() == []


def test_the_rows_say_which_study_each_belongs_to(door: WebDoor) -> None:
    door.post(body(CT.read_bytes()))
    (row,) = door.database.instances_of(door.keys.opaque("study", pydicom.dcmread(CT).StudyInstanceUID))
    assert row.size_bytes == door.kept()[0].stat().st_size
    assert door.metrics.registry.get_sample_value("deid_instances_received_total", {"result": "success"}) == 1


def test_a_client_library_stores_a_study(door: WebDoor) -> None:
    client = DICOMwebClient(
        f"http://127.0.0.1:{door.stow.port}/dicom-web", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    datasets = [pydicom.dcmread(CT), pydicom.dcmread(MR)]
    answer = client.store_instances(datasets)
    assert [item.ReferencedSOPInstanceUID for item in answer.ReferencedSOPSequence] == [
        ds.SOPInstanceUID for ds in datasets
    ]
    assert len(door.kept()) == 2


@pytest.mark.peer
@pytest.mark.xdist_group("peers")
def test_orthanc_sends_by_dicomweb(door: WebDoor, tmp_path: Path) -> None:
    server = [f"http://127.0.0.1:{door.stow.port}/dicom-web/", "", ""]
    named = {"Url": server[0], "HttpHeaders": {"Authorization": f"Bearer {TOKEN}"}}
    plugin = peers.orthanc_dicomweb()
    with peers.Orthanc(tmp_path, Plugins=[plugin], DicomWeb={"Enable": True, "Servers": {"deid": named}}) as orthanc:
        link = http.client.HTTPConnection("127.0.0.1", orthanc.http_port, timeout=30)
        link.request("POST", "/instances", CT.read_bytes())
        instance = json.loads(link.getresponse().read())["ID"]
        link.request("POST", "/dicom-web/servers/deid/stow", json.dumps({"Resources": [instance], "Synchronous": True}))
        answer = link.getresponse()
        assert answer.status == 200, answer.read()
        link.close()
    (kept,) = door.kept()
    assert pydicom.dcmread(kept).PixelData == pydicom.dcmread(CT).PixelData


# -- answers ------------------------------------------------------------------------------------------------------


def changed(path: Path, **meta: str) -> bytes:
    dataset = pydicom.dcmread(path)
    for keyword, value in meta.items():
        setattr(dataset.file_meta, keyword, value)
    out = io.BytesIO()
    pydicom.dcmwrite(out, dataset, enforce_file_format=False, little_endian=True, implicit_vr=False)
    return out.getvalue()


def test_some_are_stored_and_each_failure_has_its_reason(door: WebDoor) -> None:
    odd = [
        changed(CT, MediaStorageSOPClassUID="1.2.3"),
        changed(CT, MediaStorageSOPInstanceUID="1" * 65),
        CT.read_bytes()[:100],
        b"no file at all",
        b"",
    ]
    status, answer = door.post(body(*odd, MR.read_bytes()))
    assert status == 202
    assert [reason for _, reason in uids(answer, FAILED)] == [0x0122, 0x0117, 0xC000, 0xC000, 0xC000]
    assert [uid for uid, _ in uids(answer, STORED)] == [str(pydicom.dcmread(MR).SOPInstanceUID)]
    assert len(door.kept()) == 1
    assert door.parts() == []
    status, answer = door.post(body(*odd))
    assert (status, STORED in answer) == (409, False)


def test_a_transfer_syntax_that_nobody_knows_is_refused_by_its_own_reason(door: WebDoor) -> None:
    data = CT.read_bytes().replace(ExplicitVRLittleEndian.encode() + b"\0", b"1.2.840.10008.9.9\0\0\0")
    assert len(data) == CT.stat().st_size
    status, answer = door.post(body(data))
    assert status == 409
    assert [reason for _, reason in uids(answer, FAILED)] == [0xC122]


def test_of_another_study_nothing_is_kept(door: WebDoor) -> None:
    study = str(pydicom.dcmread(CT).StudyInstanceUID)
    status, answer = door.post(body(CT.read_bytes(), MR.read_bytes()), f"/studies/{study}")
    assert status == 202
    assert uids(answer, FAILED) == [(str(pydicom.dcmread(MR).SOPInstanceUID), 0xA900)]
    assert len(door.kept()) == 1
    assert door.parts() == []


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", MULTIPART, 400),
        (b"--xyz--\r\n", MULTIPART, 400),
        (b"garbage", MULTIPART, 400),
        (b"", "application/dicom", 415),
        (b"", 'multipart/related; type="application/dicom+json"; boundary=xyz', 415),
        (b"", "multipart/form-data; boundary=xyz", 415),
        (b"", "multipart/related", 415),
        (b"", f"multipart/related; boundary={'x' * 300}", 400),
    ],
)
def test_what_is_no_store_request_is_told_so(door: WebDoor, content: bytes, kind: str, status: int) -> None:
    assert door.post(content, kind=kind)[0] == status
    assert door.kept() == door.parts() == []


def test_other_headers_of_a_part_are_passed_over(door: WebDoor) -> None:
    part = b"--xyz\r\nX-Empty:\r\nContent-Type: application/dicom; transfer-syntax=*\r\nContent-Location: a\r\n\r\n"
    status, _ = door.post(part + CT.read_bytes() + b"\r\n--xyz--\r\n")
    assert (status, len(door.kept())) == (200, 1)


def test_a_body_that_ends_early_keeps_what_was_whole(door: WebDoor) -> None:
    status, answer = door.post(body(CT.read_bytes(), MR.read_bytes(), end=False)[:-3000])
    assert status == 202
    assert len(uids(answer, STORED)) == 1
    assert [reason for _, reason in uids(answer, FAILED)] == [0x0110]
    assert len(door.kept()) == 1
    assert door.parts() == []


def test_other_methods_and_paths_are_not_there(door: WebDoor) -> None:
    link = http.client.HTTPConnection("127.0.0.1", door.stow.port, timeout=20)
    for method, path in (("GET", "/dicom-web/studies"), ("POST", "/"), ("POST", "/dicom-web/studies/1/series/2")):
        link.request(method, path)
        answer = link.getresponse()
        answer.read()
        assert answer.status in (404, 405)
    link.close()


# -- who may ------------------------------------------------------------------------------------------------------


def test_without_a_token_of_ours_nothing_is_read(door: WebDoor) -> None:
    for token in ("", "x", TOKEN[:-1], TOKEN + "x", hashlib.sha256(TOKEN.encode()).hexdigest()):
        assert door.post(body(CT.read_bytes()), token=token)[0] == 401
    assert door.kept() == door.parts() == []


def test_a_token_belongs_to_a_host(open_web: Callable[..., WebDoor]) -> None:
    digest = CLIENT.rpartition("#")[2]
    assert open_web(stow_clients=f"PACS@10.1.2.3#{digest}").post(body(CT.read_bytes()))[0] == 401


def test_any_host_may_be_let_in_and_nobody_is_by_default(open_web: Callable[..., WebDoor]) -> None:
    digest = CLIENT.rpartition("#")[2]
    assert open_web(stow_clients=f"PACS@*#{digest}").post(body(CT.read_bytes()))[0] == 200
    assert open_web(stow_clients="").post(body(CT.read_bytes()))[0] == 401


def test_on_the_network_it_speaks_tls_or_not_at_all(open_web: Callable[..., WebDoor], tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="DEID_STOW_TLS_CERTIFICATE"):
        open_web(stow_host="0.0.0.0")
    authority = Authority(tmp_path / "tls")
    ours, pacs = authority.issue("gateway", "127.0.0.1"), authority.issue("pacs")
    tls = {"stow_tls_certificate": ours.certificate, "stow_tls_key": ours.key, "stow_tls_ca": authority.file}
    door = open_web(**tls)
    context = ssl.create_default_context(cafile=authority.file)
    headers = {"Content-Type": MULTIPART, "Authorization": f"Bearer {TOKEN}"}
    link = http.client.HTTPSConnection("127.0.0.1", door.stow.port, timeout=20, context=context)
    with suppress(ssl.SSLError, ConnectionError):
        link.request("POST", "/dicom-web/studies", body(CT.read_bytes()), headers)
        pytest.fail(f"answered {link.getresponse().status} to somebody without a certificate")
    link.close()
    context.load_cert_chain(pacs.certificate, pacs.key)
    link = http.client.HTTPSConnection("127.0.0.1", door.stow.port, timeout=20, context=context)
    link.request("POST", "/dicom-web/studies", body(CT.read_bytes()), headers)
    assert link.getresponse().status == 200
    link.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"stow_clients": "PACS@host"},
        {"stow_clients": "PACS@host#abc"},
        {"stow_clients": f"{CLIENT},{CLIENT.replace('PACS', 'OTHER')}"},
        {"stow_tls_ca": "a.pem"},
        {"stow_tls_certificate": "a.pem"},
    ],
)
def test_settings_that_do_not_fit_are_refused(home: Home, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        load_settings(home.root, **wrong)


# -- trouble ------------------------------------------------------------------------------------------------------


def test_below_the_disk_watermark_senders_are_told_to_come_again(open_web: Callable[..., WebDoor]) -> None:
    door = open_web(min_free_bytes=1 << 60)
    assert door.post(body(CT.read_bytes()))[0] == 503
    assert door.kept() == door.parts() == []


def test_a_database_that_fails_is_no_success(door: WebDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    def broken(*_: object) -> None:
        raise OperationalError("", {}, Exception())

    monkeypatch.setattr(Database, "record_instances", broken)
    status, answer = door.post(body(CT.read_bytes()))
    assert status == 409
    assert [reason for _, reason in uids(answer, FAILED)] == [0xA700]


def test_a_sender_that_falls_silent_or_goes_leaves_nothing(open_web: Callable[..., WebDoor]) -> None:
    door = open_web(network_timeout_s=0.5, max_associations=1)
    head = (
        f"POST /dicom-web/studies HTTP/1.1\r\nHost: x\r\nContent-Type: {MULTIPART}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: 100000\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", door.stow.port), timeout=20) as silent:
        silent.sendall(head + body(CT.read_bytes(), end=False)[:20000])
        assert b" 408 " in silent.recv(1000)
    with socket.create_connection(("127.0.0.1", door.stow.port), timeout=20) as going:
        going.sendall(head + body(CT.read_bytes(), end=False)[:20000])
    peers.wait_until(lambda: door.parts() == [], seconds=10, what="the spool")
    peers.wait_until(lambda: door.post(body(CT.read_bytes()))[0] == 200, seconds=10, what="a free place")
    assert len(door.kept()) == 1


def test_there_are_so_many_places(open_web: Callable[..., WebDoor]) -> None:
    door = open_web(max_associations=1, network_timeout_s=5.0)
    head = (
        f"POST /dicom-web/studies HTTP/1.1\r\nHost: x\r\nContent-Type: {MULTIPART}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: 100000\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", door.stow.port), timeout=20) as first:
        first.sendall(head + body(CT.read_bytes(), end=False)[:20000])
        peers.wait_until(lambda: len(door.parts()) == 1, seconds=10, what="the first")
        assert door.post(body(MR.read_bytes()))[0] == 503


def test_while_too_many_studies_wait_none_is_taken(
    open_web: Callable[..., WebDoor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.receive.arrival.LOOK_AT_QUEUE_EVERY_S", 0.0)
    door = open_web(max_waiting_studies=1)
    assert door.post(body(CT.read_bytes()))[0] == 200
    assert door.post(body(MR.read_bytes()))[0] == 200
    assert door.post(body(CT.read_bytes()))[0] == 503
    assert len(door.kept()) == 2


def test_many_at_once_are_all_kept(door: WebDoor) -> None:
    statuses: list[int] = []

    def send(number: int) -> None:
        dataset = pydicom.dcmread(CT)
        dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{number}"
        out = io.BytesIO()
        dataset.save_as(out)
        statuses.append(door.post(body(out.getvalue()))[0])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 8
    assert len(door.kept()) == 8


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), cuts=st.integers(0, 6))
def test_noise_never_takes_the_door_down_and_keeps_no_half(door: WebDoor, seed: int, cuts: int) -> None:
    noise = random.Random(seed)
    data = bytearray(body(CT.read_bytes(), MR.read_bytes()))
    for _ in range(cuts):
        at, size = noise.randrange(len(data)), noise.randrange(1, 200)
        data[at : at + size] = noise.randbytes(noise.randrange(0, 200))
    status, _ = door.post(bytes(data))
    assert status in (200, 202, 400, 409)
    assert door.parts() == []


# -- the beginning of a file ------------------------------------------------------------------------------------------


def test_the_head_says_what_pydicom_says_and_grows_byte_by_byte() -> None:
    for path in (CT, MR):
        data = path.read_bytes()
        meta = pydicom.dcmread(path, stop_before_pixels=True).file_meta
        found = read_head(data[:4096])
        assert found is not None
        assert (found.class_uid, found.instance_uid, found.transfer_syntax_uid) == (
            str(meta.MediaStorageSOPClassUID),
            str(meta.MediaStorageSOPInstanceUID),
            str(meta.TransferSyntaxUID),
        )
        answers = [read_head(data[:size]) for size in range(found.size_bytes + 20)]
        first = next(size for size, answer in enumerate(answers) if answer is not None)
        assert first == found.size_bytes + 8  # one more element must be seen to know that the meta is over
        assert set(answers[first:]) == {found}


@given(st.binary(max_size=400))
def test_any_bytes_are_a_head_or_none(data: bytes) -> None:
    for blob in (data, bytes(128) + b"DICM" + data):
        try:
            read_head(blob)
        except NoFile:
            continue
