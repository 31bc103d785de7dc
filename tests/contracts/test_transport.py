"""What every archive transport promises, run over all of TRANSPORTS. A new transport adds one site here."""

from __future__ import annotations

import contextlib
import hashlib
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

from gateway.errors import EnvironmentFault, Hold, Retry, UsageError
from gateway.forward import TRANSPORTS, Transport, TransportOptions, forward, open_transport
from gateway.policy import Access
from gateway.policy.destinations import Store
from gateway.study import Receipt
from gateway.tls import TlsFiles
from tests.certificates import Authority, Pair
from tests.forward.archives import archive
from tests.forward.consignments import SEAL, Consignment, consignment, data_set_bytes
from tests.forward.s3_stores import BUCKET, s3_store
from tests.forward.web_archives import web_archive
from tests.peers import free_port


@dataclass(frozen=True)
class Site:
    """An archive of one kind, and how to look into it."""

    up: Transport
    down: Transport  # of the same kind, where nothing takes anything
    stored: Callable[[], dict[str, str]]  # SOP Instance UID -> sha256 of the data set
    arrivals: Callable[[], int]  # how often something was written there


@contextlib.contextmanager
def dicom_site(tmp_path: Path) -> Iterator[Site]:
    with archive([(CTImageStorage, [ExplicitVRLittleEndian])]) as there:
        down = open_transport(f"dicom://GONE@127.0.0.1:{free_port()}", TransportOptions(timeout_s=5))
        yield Site(there.transport(), down, lambda: dict(there.stored), lambda: len(there.requests))


@contextlib.contextmanager
def folder_site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "archive"
    (tmp_path / "file").write_text("not a folder")

    def stored() -> dict[str, str]:
        files = root.rglob("*.dcm")
        return {path.stem: hashlib.sha256(data_set_bytes(path.read_bytes())).hexdigest() for path in files}

    def arrivals() -> int:
        return len({path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()})

    down = open_transport(f"folder:{tmp_path}/file/below", TransportOptions())
    yield Site(open_transport(f"folder:{root}", TransportOptions()), down, stored, arrivals)


@contextlib.contextmanager
def secure_dicom_site(tmp_path: Path) -> Iterator[Site]:
    authority = Authority(tmp_path / "tls")
    options = TransportOptions(timeout_s=5, access=Access(tls=TlsFiles(ca_file=authority.file)))
    context = server_context(authority.issue("archive", "127.0.0.1"))
    with archive([(CTImageStorage, [ExplicitVRLittleEndian])], tls=context) as there:
        up = open_transport(f"dicom-tls://ARCHIVE@127.0.0.1:{there.port}", options)
        down = open_transport(f"dicom-tls://GONE@127.0.0.1:{free_port()}", options)
        yield Site(up, down, lambda: dict(there.stored), lambda: len(there.requests))


@contextlib.contextmanager
def web_site(tmp_path: Path) -> Iterator[Site]:
    with web_archive() as there:
        down = open_transport(f"http://127.0.0.1:{free_port()}/dicom-web", TransportOptions(timeout_s=5))
        up = open_transport(there.url, TransportOptions(timeout_s=20))
        yield Site(up, down, lambda: dict(there.stored), lambda: len(there.requests))


@contextlib.contextmanager
def secure_web_site(tmp_path: Path) -> Iterator[Site]:
    authority = Authority(tmp_path / "tls")
    options = TransportOptions(timeout_s=20, access=Access(tls=TlsFiles(ca_file=authority.file)))
    with web_archive(tls=server_context(authority.issue("archive", "127.0.0.1"))) as there:
        down = open_transport(f"https://127.0.0.1:{free_port()}/dicom-web", options)
        yield Site(open_transport(there.url, options), down, lambda: dict(there.stored), lambda: len(there.requests))


@contextlib.contextmanager
def s3_site(tmp_path: Path) -> Iterator[Site]:
    secret = tmp_path / "secret"
    secret.write_text("of the access key")
    secret.chmod(0o600)

    def at(access: Access) -> Transport:
        with_key = replace(access, user="KEY", password_file=secret)
        return open_transport(f"s3://{BUCKET}/ct", TransportOptions(timeout_s=5, access=with_key))

    with s3_store() as there:
        down = at(Access(store=Store(endpoint=f"http://127.0.0.1:{free_port()}")))
        yield Site(at(there.access()), down, there.stored, lambda: len(there.puts))


def server_context(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


SITES = {
    "dicom": dicom_site,
    "dicom-tls": secure_dicom_site,
    "folder": folder_site,
    "http": web_site,
    "https": secure_web_site,
    "s3": s3_site,
}


def test_every_transport_has_a_site_here() -> None:
    assert SITES.keys() == TRANSPORTS.keys()


@pytest.fixture(params=sorted(TRANSPORTS))
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with SITES[request.param](tmp_path) as made:
        yield made


@pytest.fixture
def goods(tmp_path: Path) -> Consignment:
    return consignment(tmp_path / "work", 5)


def carry(goods: Consignment, to: Transport, done: frozenset[str] = frozenset()) -> list[Receipt]:
    """forward(), with the receipts; what it raises passes."""
    receipts: list[Receipt] = []
    forward(goods.clearance, goods.files, seal_key=SEAL, transport=to, done=done, on_receipt=receipts.append)
    return receipts


def test_every_instance_arrives_once_and_byte_for_byte(site: Site, goods: Consignment) -> None:
    receipts = carry(goods, site.up)
    assert receipts == [Receipt(name, 0, "success") for name in goods.files]
    assert site.stored() == goods.sent_hashes
    assert site.arrivals() == 5


def test_what_is_done_is_not_sent_again(site: Site, goods: Consignment) -> None:
    done = frozenset(["0001", "0004"])
    receipts = carry(goods, site.up, done)
    assert [receipt.name for receipt in receipts] == ["0002", "0003", "0005"]
    assert site.arrivals() == 3
    assert carry(goods, site.up, frozenset(goods.files)) == []
    assert site.arrivals() == 3


def test_sending_again_succeeds_and_changes_nothing(site: Site, goods: Consignment) -> None:
    carry(goods, site.up)
    before = site.stored()
    assert {receipt.kind for receipt in carry(goods, site.up)} == {"success"}
    assert site.stored() == before == goods.sent_hashes


def test_a_probe_of_an_archive_that_is_there_returns(site: Site) -> None:
    site.up.probe()
    assert site.stored() == {}


def test_an_archive_that_is_not_there_is_worth_another_try(site: Site, goods: Consignment) -> None:
    receipts: list[Receipt] = []
    with pytest.raises(Retry) as caught:
        forward(
            goods.clearance,
            goods.files,
            seal_key=SEAL,
            transport=site.down,
            done=frozenset(),
            on_receipt=receipts.append,
        )
    assert caught.value.reason == "archive_unreachable"
    assert all(receipt.kind == "failure" for receipt in receipts)
    with pytest.raises((Retry, EnvironmentFault)):
        site.down.probe()


@pytest.mark.parametrize("where", ["preamble", "file meta", "data set", "appended", "truncated", "gone"])
def test_a_file_that_is_not_as_cleared_never_leaves(site: Site, goods: Consignment, where: str) -> None:
    path = goods.files["0003"]
    file = path.read_bytes()
    at = {"preamble": 5, "file meta": 250, "data set": len(file) - 3}.get(where)
    if at is not None:
        path.write_bytes(file[:at] + bytes([file[at] ^ 1]) + file[at + 1 :])
    elif where == "gone":
        path.unlink()
    else:
        path.write_bytes(file + b"\0\0" if where == "appended" else file[:-2])
    with pytest.raises(Hold) as caught:
        carry(goods, site.up)
    assert caught.value.reason == "clearance_broken"
    assert goods.clearance.instances[2].sop_instance_uid not in site.stored()
    assert site.stored().items() <= goods.sent_hashes.items()


@pytest.mark.parametrize("field", ["sop_class_uid", "sop_instance_uid", "transfer_syntax_uid", "sha256_dataset"])
def test_a_clearance_that_does_not_describe_its_file_sends_nothing(site: Site, goods: Consignment, field: str) -> None:
    first, *others = goods.clearance.instances
    other = {"sha256_dataset": "0" * 64}.get(field, "1.2.840.10008.1.2")
    with pytest.raises(Hold) as caught:
        carry(goods.resealed([replace(first, **{field: other}), *others]), site.up)
    assert caught.value.reason in {"clearance_broken", "archive_refuses_syntax"}
    assert first.sop_instance_uid not in site.stored()


def test_nothing_leaves_under_a_seal_that_is_not_ours(site: Site, goods: Consignment) -> None:
    forged = [
        Consignment(replace(goods.clearance, issuer="review:nobody"), goods.files),
        Consignment(replace(goods.clearance, mac=""), goods.files),
        Consignment(goods.clearance.sealed(b"t" * 32), goods.files),
        Consignment(replace(goods.clearance, instances=goods.clearance.instances[:-1]), goods.files),
    ]
    for goods_forged in forged:
        with pytest.raises(Hold) as caught:
            carry(goods_forged, site.up)
        assert caught.value.reason == "clearance_broken"
    assert site.stored() == {}
    assert site.arrivals() == 0


def test_files_and_clearance_must_name_the_same_instances(site: Site, goods: Consignment) -> None:
    extra = Consignment(goods.clearance, {**goods.files, "0006": goods.files["0001"]})
    missing = Consignment(goods.clearance, {name: path for name, path in goods.files.items() if name != "0002"})
    twice = goods.resealed([*goods.clearance.instances, goods.clearance.instances[0]])
    for wrong in (extra, missing, twice):
        with pytest.raises(Hold) as caught:
            carry(wrong, site.up)
        assert caught.value.reason == "clearance_broken"
    assert site.arrivals() == 0
    assert len(carry(missing, site.up, frozenset(["0002"]))) == 4


@pytest.mark.parametrize("uid", ["../../x", "..", ".", "/etc/x", "1..2", "1.2.", "", "1" * 65, "1.2\0"])
def test_a_uid_that_is_none_becomes_neither_a_name_nor_a_request(site: Site, goods: Consignment, uid: str) -> None:
    with pytest.raises(Hold) as caught:
        site.up.send(
            [replace(item, cleared=replace(item.cleared, sop_instance_uid=uid)) for item in goods.items], print
        )
    assert caught.value.reason in {"output_invalid", "clearance_broken"}
    assert site.stored() == {}


def test_errors_name_our_instances_and_no_uid(site: Site, goods: Consignment) -> None:
    goods.files["0002"].write_bytes(b"")
    with pytest.raises(Hold) as caught:
        carry(goods, site.up)
    assert "0002" in str(caught.value)
    assert not any(one.sop_instance_uid in str(caught.value) for one in goods.clearance.instances)


@pytest.mark.parametrize(
    "url",
    [
        "dicom://host:104",
        "dicom://AET@host",
        "dicom://AET@:104",
        "dicom://AET@host:0",
        "dicom://AET@host:99999",
        "dicom://AET@host:port",
        "dicom://SEVENTEENLETTERSX@host:104",
        "dicom:",
        "folder:",
        "ftp://host/dicom-web",
        "https://",
        "http://host/dicom-web",
        "s3://",
        "s3://Bucket",
        "s3://bucket/../other",
        "s3://bucket/a b",
        "",
    ],
)
def test_a_url_of_another_form_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError):
        open_transport(url, TransportOptions())
