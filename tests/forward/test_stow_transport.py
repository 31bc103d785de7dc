"""STOW-RS: what each answer of a web archive means, who we are there, and what never happens."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import warnings
from pathlib import Path

import pytest

from gateway.errors import Hold, Retry, StudyError, UsageError
from gateway.forward import TransportOptions, forward, open_transport
from gateway.policy import Access
from gateway.study import Receipt
from gateway.tls import TlsFiles
from tests import peers
from tests.certificates import Authority
from tests.forward.consignments import SEAL, Consignment, consign, consignment, data_set_bytes
from tests.forward.web_archives import Reply, failed, stored, web_archive


@pytest.fixture
def goods(tmp_path: Path) -> Consignment:
    return consignment(tmp_path / "work", 3)


def deliver(
    goods: Consignment, url: str, access: Access | None = None, timeout_s: float = 10.0
) -> tuple[list[Receipt], StudyError | None]:
    receipts: list[Receipt] = []
    transport = open_transport(url, TransportOptions(timeout_s=timeout_s, access=access or Access()))
    try:
        forward(
            goods.clearance,
            goods.files,
            seal_key=SEAL,
            transport=transport,
            done=frozenset(),
            on_receipt=receipts.append,
        )
    except StudyError as error:
        return receipts, error
    return receipts, None


ANSWERS = {  # of the second of three -> its receipt, and what is raised
    "stored": (lambda uid: (200, stored(uid)), (0, "success"), None),
    "stored, nothing said": (lambda _: (200, b""), (0, "success"), None),
    "stored with a warning": (lambda uid: (200, stored(uid, warning=0xB000)), (0xB000, "warning"), None),
    "an array": (lambda uid: (200, b"[" + stored(uid) + b"]"), (0, "success"), None),
    "accepted with a warning": (lambda uid: (202, stored(uid, warning=0xB006)), (0xB006, "warning"), None),
    "failed under 200": (lambda uid: (200, failed(uid, 0xA900)), (0xA900, "failure"), (Hold, "archive_refuses")),
    "failed under 202": (lambda uid: (202, failed(uid, 0x0110)), (0x0110, "failure"), (Hold, "archive_refuses")),
    "failed under 409": (lambda uid: (409, failed(uid, 0xC000)), (0xC000, "failure"), (Hold, "archive_refuses")),
    "full under 409": (lambda uid: (409, failed(uid, 0xA700)), (0xA700, "failure"), (Retry, "archive_busy")),
    "conflict, nothing said": (lambda _: (409, b""), (-1, "failure"), (Hold, "archive_refuses")),
    "accepted, nothing said": (lambda _: (202, b""), (-1, "failure"), (Retry, "archive_aborted")),
    "another instance stored": (lambda _: (200, stored("1.2.3")), (-1, "failure"), (Retry, "archive_aborted")),
    "a page": (lambda _: (200, b"<html>please sign in</html>"), (-1, "failure"), (Retry, "archive_aborted")),
    "a strange code": (
        lambda uid: (200, stored(uid).replace(b"[{", b'[{"00081197":{"Value":["x"]},', 1)),
        (0, "success"),
        None,
    ),
    "no code": (
        lambda uid: (409, failed(uid, 1).replace(b"[1]", b'["x"]')),
        (0x0110, "failure"),
        (Hold, "archive_refuses"),
    ),
    "bad request": (lambda _: (400, b"{}"), (-1, "failure"), (Hold, "archive_refuses")),
    "unsupported": (lambda _: (415, b""), (-1, "failure"), (Hold, "archive_refuses_syntax")),
    "too large": (lambda _: (413, b""), (-1, "failure"), (Hold, "archive_refuses")),
    "not known": (lambda _: (401, b""), (-1, "failure"), (Retry, "archive_rejects_us")),
    "forbidden": (lambda _: (403, b""), (-1, "failure"), (Retry, "archive_rejects_us")),
    "no such place": (lambda _: (404, b""), (-1, "failure"), (Retry, "archive_rejects_us")),
    "elsewhere": (lambda _: (307, b""), (-1, "failure"), (Retry, "archive_rejects_us")),
    "slow down": (lambda _: (429, b""), (-1, "failure"), (Retry, "archive_busy")),
    "unavailable": (lambda _: (503, b"later"), (-1, "failure"), (Retry, "archive_busy")),
    "no space": (lambda _: (507, b""), (-1, "failure"), (Retry, "archive_busy")),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_an_answer_means(goods: Consignment, name: str) -> None:
    reply, receipt, raised = ANSWERS[name]

    def answer(number: int, uid: str) -> Reply:
        return reply(uid) if number == 1 else (200, stored(uid))  # type: ignore[no-untyped-call, no-any-return]

    with web_archive(answer) as there:
        receipts, error = deliver(goods, there.url)
    assert [(one.status, one.kind) for one in receipts] == [(0, "success"), receipt, (0, "success")]
    assert (error and (type(error), error.reason)) == raised
    assert len(there.requests) == 3


@pytest.mark.parametrize("body", [b"[" * 5000, b"null", b"[]", b'{"00081199": 7}', b'{"00081199": {"Value": [7]}}'])
def test_a_hostile_answer_is_no_delivery(goods: Consignment, body: bytes) -> None:
    with web_archive(lambda *_: (200, body)) as there:
        receipts, error = deliver(goods, there.url)
    assert {one.kind for one in receipts} == {"failure"}
    assert isinstance(error, Retry)


def test_of_an_endless_answer_no_more_than_its_beginning_is_read(goods: Consignment) -> None:
    with web_archive(lambda number, uid: (200, b" " * (4 << 20)) if number == 0 else (200, stored(uid))) as there:
        receipts, error = deliver(goods, there.url)
    assert [one.kind for one in receipts] == ["success", "success", "success"]
    assert error is None


def test_a_connection_that_breaks_loses_one_and_ends_the_call(goods: Consignment) -> None:
    with web_archive(lambda number, uid: None if number == 1 else (200, stored(uid))) as there:
        receipts, error = deliver(goods, there.url)
        assert isinstance(error, Retry)
        assert error.reason == "archive_aborted"
        assert [one.kind for one in receipts] == ["success", "failure"]
        assert len(there.requests) == 2


def test_a_silent_archive_is_not_waited_for_longer_than_said(goods: Consignment) -> None:
    wait = threading.Event()
    with web_archive(lambda _, uid: (wait.wait(20), (200, stored(uid)))[1]) as there:
        receipts, error = deliver(goods, there.url, timeout_s=0.3)
        wait.set()
    assert isinstance(error, Retry)
    assert [one.kind for one in receipts] == ["failure"]


def test_a_large_file_is_streamed_as_it_was_cleared(tmp_path: Path) -> None:
    goods = consignment(tmp_path / "work", 1, payload=bytes(range(256)) * 40_000)  # above what is kept in memory
    assert next(iter(goods.files.values())).stat().st_size > 8 << 20
    with web_archive() as there:
        receipts, error = deliver(goods, there.url)
    assert error is None
    assert [one.kind for one in receipts] == ["success"]
    assert there.stored == goods.sent_hashes
    assert "Transfer-Encoding" not in there.headers[0]


# -- who we are ---------------------------------------------------------------------------------------------------


def secret(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_token_and_a_user_are_shown_and_renewed_without_a_restart(tmp_path: Path, goods: Consignment) -> None:
    token = secret(tmp_path / "token", "first\n")
    with web_archive() as there:
        transport = open_transport(there.url, TransportOptions(access=Access(token_file=token)))
        transport.probe()
        token.write_text("second")
        transport.send(goods.items[:1], lambda _: None)
        access = Access(user="gate", password_file=secret(tmp_path / "password", "secret word"))
        open_transport(there.url, TransportOptions(access=access)).send(goods.items[:1], lambda _: None)
    shown = [headers["Authorization"] for headers in there.headers]
    assert shown == ["Bearer first", "Bearer second", "Basic " + base64.b64encode(b"gate:secret word").decode()]


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        ("word", 0o644, "open to others"),
        ("", 0o600, "one line"),
        ("a\nb", 0o600, "one line"),
        ("a\r\nX-Evil: 1", 0o600, "one line"),
        ("é", 0o600, "one line"),
        (None, 0o600, "cannot be read"),
    ],
)
def test_a_secret_that_is_none_or_open_sends_nothing_and_is_not_told(
    tmp_path: Path, goods: Consignment, text: str | None, mode: int, says: str
) -> None:
    path = tmp_path / "token"
    if text is not None:
        secret(path, text, mode)
    with web_archive() as there:
        receipts, error = deliver(goods, there.url, Access(token_file=path))
    assert isinstance(error, Retry)
    assert error.reason == "archive_access"
    assert says in error.at
    assert "word" not in error.at
    assert "Evil" not in error.at
    assert (receipts, there.requests) == ([], [])


# -- TLS ----------------------------------------------------------------------------------------------------------


def server(authority: Authority, *hosts: str, days: int = 30, client_ca: Path | None = None) -> ssl.SSLContext:
    pair = authority.issue("server", *hosts, days=days)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_over_tls_the_archive_must_be_who_we_believe(tmp_path: Path, goods: Consignment) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs", "another authority")
    believed = Access(tls=TlsFiles(ca_file=ours.file))
    with web_archive(tls=server(ours, "127.0.0.1")) as there:
        assert deliver(goods, there.url, believed)[1] is None
        assert there.stored == goods.sent_hashes
        for access in (Access(), Access(tls=TlsFiles(ca_file=theirs.file))):
            _, error = deliver(goods, there.url, access)
            assert isinstance(error, Retry)
            assert error.reason == "archive_untrusted"
        assert len(there.requests) == 3
    for context in (server(ours, "archive.example"), server(ours, "127.0.0.1", days=-1), server(ours)):
        with web_archive(tls=context) as there:
            _, error = deliver(goods, there.url, believed)
            assert isinstance(error, Retry)
            assert error.reason == "archive_untrusted"
            assert there.requests == []


def test_an_archive_that_asks_gets_our_certificate(tmp_path: Path, goods: Consignment) -> None:
    authority = Authority(tmp_path / "ca")
    gateway = authority.issue("gateway")
    with web_archive(tls=server(authority, "127.0.0.1", client_ca=authority.file)) as there:
        _, error = deliver(goods, there.url, Access(tls=TlsFiles(ca_file=authority.file)))
        assert isinstance(error, Retry)
        assert there.requests == []
        access = Access(tls=TlsFiles(authority.file, gateway.certificate, gateway.key))
        assert deliver(goods, there.url, access)[1] is None
        gateway.key.chmod(0o644)
        _, error = deliver(goods, there.url, access)
    assert isinstance(error, Retry)
    assert error.reason == "archive_access"
    assert "chmod 600" in error.at


def test_tls_1_1_is_not_spoken(tmp_path: Path, goods: Consignment) -> None:
    authority = Authority(tmp_path / "ca")
    old = server(authority, "127.0.0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with web_archive(tls=old) as there:
        _, error = deliver(goods, there.url, Access(tls=TlsFiles(ca_file=authority.file)))
    assert isinstance(error, Retry)
    assert there.requests == []


# -- real, and refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "raised"), [(200, ""), (204, ""), (405, ""), (501, ""), (401, "archive_rejects_us")]
)
def test_a_probe_asks_and_stores_nothing(status: int, raised: str) -> None:
    with web_archive(probe_status=status) as there:
        transport = open_transport(there.url, TransportOptions())
        if raised:
            with pytest.raises(Retry, match=raised):
                transport.probe()
        else:
            transport.probe()
    assert there.requests == []


@pytest.mark.parametrize(
    "url",
    ["http://archive.example/dicom-web", "https://", "https://u:p@host/x", "https://host/x?y=1", "https://host/#a"],
)
def test_a_url_that_is_none_or_in_the_clear_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        open_transport(url, TransportOptions())


@pytest.mark.peer
@pytest.mark.xdist_group("peers")
def test_orthanc_takes_what_was_cleared_over_dicomweb(tmp_path: Path, pydicom_files: list[Path]) -> None:
    names = {"CT_small.dcm", "MR_small_RLE.dcm", "J2K_pixelrep_mismatch.dcm", "SC_rgb_small_odd.dcm", "chrX2.dcm"}
    goods = consign([path for path in pydicom_files if path.name in names])
    plugin = peers.orthanc_dicomweb()
    with peers.Orthanc(tmp_path, Plugins=[plugin], DicomWeb={"Enable": True, "Root": "/dicom-web/"}) as orthanc:
        url = f"http://127.0.0.1:{orthanc.http_port}/dicom-web"
        open_transport(url, TransportOptions(timeout_s=20)).probe()
        receipts, error = deliver(goods, url, timeout_s=20)
        assert error is None
        assert {one.kind for one in receipts} == {"success"}
        stored_files = orthanc.files_by_sop_uid()
        again, error = deliver(goods, url, timeout_s=20)
        assert error is None
        assert {one.kind for one in again} == {"success"}
        studies = json.loads(orthanc.get("/dicom-web/studies"))
        assert len(studies) == len({study["0020000D"]["Value"][0] for study in studies}) > 1
    found = {uid: hashlib.sha256(data_set_bytes(file)).hexdigest() for uid, file in stored_files.items()}
    assert found == goods.sent_hashes
