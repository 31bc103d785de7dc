"""C-STORE over TLS: to DCMTK's storescp, and to who is not whom we believe."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

from gateway.errors import Retry
from gateway.forward import TransportOptions, open_transport
from gateway.policy import Access
from gateway.tls import TlsFiles
from tests import peers
from tests.certificates import Authority, Pair
from tests.forward.archives import archive
from tests.forward.consignments import Consignment, consignment, data_set_bytes


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


@pytest.fixture
def goods(tmp_path: Path) -> Consignment:
    return consignment(tmp_path / "work", 3, payload=bytes(range(256)) * 12_000)  # more than one gathered write


@pytest.mark.peer
@pytest.mark.xdist_group("peers")
def test_storescp_holds_byte_for_byte_what_was_cleared(
    tmp_path: Path, authority: Authority, goods: Consignment
) -> None:
    theirs, ours = authority.issue("archive", "127.0.0.1"), authority.issue("gateway")
    options = ["+tls", str(theirs.key), str(theirs.certificate), "+cf", str(authority.file), "+B", "-pm"]
    with peers.storescp(tmp_path / "store", *options) as there:
        url = there.url.replace("dicom://", "dicom-tls://")
        access = Access(tls=TlsFiles(authority.file, ours.certificate, ours.key))
        transport = open_transport(url, TransportOptions(timeout_s=20, access=access))
        transport.probe()
        receipts: list[str] = []
        transport.send(goods.items, lambda receipt: receipts.append(receipt.kind))
        nameless = open_transport(url, TransportOptions(timeout_s=5, access=Access(tls=TlsFiles(authority.file))))
        with pytest.raises(Retry):  # it asks for a certificate, and gets none
            nameless.probe()
    assert receipts == ["success"] * 3
    files = [path for path in (tmp_path / "store").iterdir() if path.is_file()]
    found = {hashlib.sha256(data_set_bytes(path.read_bytes())).hexdigest() for path in files}
    assert found == set(goods.sent_hashes.values())


def context(pair: Pair) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pair.certificate, pair.key)
    return made


@pytest.mark.parametrize(
    ("hosts", "name", "reason"),
    [
        (["127.0.0.1"], "", ""),
        (["archive.example"], "archive.example", ""),
        (["archive.example"], "", "archive_untrusted"),
        (["127.0.0.1"], "archive.example", "archive_untrusted"),
        ([], "", "archive_untrusted"),
    ],
)
def test_the_name_in_the_certificate_is_the_one_asked_for(
    authority: Authority, goods: Consignment, hosts: list[str], name: str, reason: str
) -> None:
    access = Access(tls=TlsFiles(ca_file=authority.file), server_name=name)
    with archive([(CTImageStorage, [ExplicitVRLittleEndian])], tls=context(authority.issue("a", *hosts))) as there:
        transport = open_transport(
            f"dicom-tls://A@127.0.0.1:{there.port}", TransportOptions(timeout_s=5, access=access)
        )
        if not reason:
            transport.send(goods.items, lambda _: None)
            assert there.stored == goods.sent_hashes
            return
        with pytest.raises(Retry) as caught:
            transport.send(goods.items, lambda _: None)
    assert caught.value.reason == reason
    assert there.requests == []


def test_an_archive_in_the_clear_is_no_tls_archive(authority: Authority) -> None:
    access = Access(tls=TlsFiles(ca_file=authority.file))
    with archive([(CTImageStorage, [ExplicitVRLittleEndian])]) as there:
        transport = open_transport(
            f"dicom-tls://A@127.0.0.1:{there.port}", TransportOptions(timeout_s=2, access=access)
        )
        with pytest.raises(Retry, match="archive_unreachable"):
            transport.probe()


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    access = Access(tls=TlsFiles(ca_file=tmp_path / "gone.pem"))
    with archive([(CTImageStorage, [ExplicitVRLittleEndian])]) as there:
        transport = open_transport(f"dicom-tls://A@127.0.0.1:{there.port}", TransportOptions(access=access))
        with pytest.raises(Retry, match="archive_access") as caught:
            transport.probe()
    assert "gone.pem" in caught.value.at
