"""DICOM over TLS (PS3.15 B.12): who is let in, what is stored, renewed certificates, and what a stranger cannot do."""

from __future__ import annotations

import hashlib
import random
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pydicom
import pytest
from pydicom.uid import CTImageStorage
from pynetdicom import AE

from gateway.errors import EnvironmentFault, UsageError
from gateway.settings import Home, Settings, load_settings
from gateway.tls import fingerprint
from tests import peers
from tests.certificates import Authority, Pair
from tests.receive.conftest import Door

Open = Callable[..., Door]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


@pytest.fixture
def ours(authority: Authority) -> Pair:
    return authority.issue("gateway", "127.0.0.1")


@pytest.fixture
def pacs(authority: Authority) -> Pair:
    return authority.issue("pacs", "127.0.0.1")


def settings_of(ours: Pair, ca: Path | None = None, **more: object) -> dict[str, object]:
    made = {"dicom_tls_port": 0, "dicom_tls_certificate": ours.certificate, "dicom_tls_key": ours.key, **more}
    return made | ({"dicom_tls_ca": ca} if ca else {})


def client(authority: Authority, pair: Pair | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.file)
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


def send(port: int, dataset: pydicom.Dataset, context: ssl.SSLContext, host: str = "127.0.0.1") -> int | None:
    """Status of one C-STORE by pynetdicom; None without an association."""
    entity = AE("PACS")
    entity.acse_timeout = entity.dimse_timeout = entity.network_timeout = 10
    entity.add_requested_context(dataset.SOPClassUID, dataset.file_meta.TransferSyntaxUID)
    association = entity.associate(host, port, ae_title="DEID", tls_args=(context, host))
    if not association.is_established:
        return None
    try:
        return int(association.send_c_store(dataset).Status)
    finally:
        association.release()


@pytest.fixture
def ct() -> pydicom.Dataset:
    return pydicom.dcmread(pydicom.data.get_testdata_file("CT_small.dcm"))


def test_a_sender_with_a_certificate_we_believe_is_stored_and_others_are_not(
    open_door: Open, authority: Authority, ours: Pair, pacs: Pair, ct: pydicom.Dataset, tmp_path: Path
) -> None:
    door = open_door(**settings_of(ours, authority.file))
    assert send(door.receiver.tls_port, ct, client(authority, pacs)) == 0
    stranger = Authority(tmp_path / "strangers", "stranger").issue("pacs2", "127.0.0.1")
    for context in (client(authority), client(authority, stranger)):
        assert send(door.receiver.tls_port, ct, context) is None
    old = authority.issue("old", "127.0.0.1", days=-1)
    assert send(door.receiver.tls_port, ct, client(authority, old)) is None
    (kept,) = door.kept()
    assert pydicom.dcmread(kept).PixelData == ct.PixelData
    assert door.ended("no_tls", 3)
    assert door.ended("released")


@pytest.mark.peer
@pytest.mark.xdist_group("peers")
def test_dcmtk_sends_over_tls_what_it_sends_in_the_clear(
    open_door: Open, authority: Authority, ours: Pair, pacs: Pair
) -> None:
    door = open_door(**settings_of(ours, authority.file), allowed_peers="STORESCU@127.0.0.1")
    file = str(pydicom.data.get_testdata_file("MR_small.dcm"))
    tool = peers.dcmtk("storescu")
    tls = ["+tls", str(pacs.key), str(pacs.certificate), "+cf", str(authority.file)]
    hashes = []
    for port, options in ((door.receiver.tls_port, tls), (door.port, [])):
        command = [tool, *options, "-aec", "DEID", "127.0.0.1", str(port), file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        hashes.append(hashlib.sha256(door.kept()[-1].read_bytes()).hexdigest())
    assert hashes[0] == hashes[1]
    refused = [tool, "-aec", "DEID", "127.0.0.1", str(door.receiver.tls_port), file]  # in the clear, on the TLS port
    assert subprocess.run(refused, capture_output=True, timeout=60, check=False).returncode != 0


def test_a_peer_may_be_bound_to_its_certificate(
    open_door: Open, authority: Authority, ours: Pair, pacs: Pair, ct: pydicom.Dataset
) -> None:
    bound = f"PACS@127.0.0.1#{fingerprint(pacs.der)}"
    door = open_door(**settings_of(ours, authority.file), allowed_peers=bound)
    other = authority.issue("other", "127.0.0.1")
    assert send(door.receiver.tls_port, ct, client(authority, other)) is None
    assert door.ended("rejected_calling_ae")
    assert send(door.receiver.tls_port, ct, client(authority, pacs)) == 0
    entity = AE("PACS")
    entity.add_requested_context(CTImageStorage)
    assert not entity.associate("127.0.0.1", door.port, ae_title="DEID").is_established  # in the clear it shows none
    assert len(door.kept()) == 1


def test_without_an_authority_senders_need_no_certificate(
    open_door: Open, authority: Authority, ours: Pair, ct: pydicom.Dataset
) -> None:
    door = open_door(**settings_of(ours))
    assert send(door.receiver.tls_port, ct, client(authority)) == 0


def test_tls_alone_leaves_no_port_in_the_clear(
    open_door: Open, authority: Authority, ours: Pair, pacs: Pair, ct: pydicom.Dataset
) -> None:
    door = open_door(**settings_of(ours, authority.file, dicom_plain=False))
    assert door.port == 0
    assert door.receiver.alive
    assert send(door.receiver.tls_port, ct, client(authority, pacs)) == 0


def shown(port: int, authority: Authority) -> str:
    """Fingerprint of the certificate that the port shows."""
    with shaken(port, client(authority)) as secure:
        return fingerprint(secure.getpeercert(binary_form=True))


def shaken(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection after its handshake."""
    link = socket.create_connection(("127.0.0.1", port), timeout=10)
    try:
        return context.wrap_socket(link, server_hostname="127.0.0.1")
    except OSError:
        link.close()
        raise


def test_a_renewed_certificate_is_shown_without_a_restart(open_door: Open, authority: Authority, ours: Pair) -> None:
    door = open_door(**settings_of(ours))
    assert shown(door.receiver.tls_port, authority) == fingerprint(ours.der)
    renewed = authority.issue("gateway-2027", "127.0.0.1")
    renewed.key.replace(ours.key)
    with pytest.raises((ssl.SSLError, ConnectionError)):  # half of it is there: better nothing than the wrong one
        shown(door.receiver.tls_port, authority)
    renewed.certificate.replace(ours.certificate)
    assert shown(door.receiver.tls_port, authority) == fingerprint(ours.der)
    assert door.receiver.alive


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_is_spoken_has_forward_secrecy(
    open_door: Open, authority: Authority, ours: Pair, version: ssl.TLSVersion
) -> None:
    door = open_door(**settings_of(ours))
    context = client(authority)
    context.minimum_version = context.maximum_version = version
    with shaken(door.receiver.tls_port, context) as secure:
        cipher = secure.cipher()
    assert cipher is not None
    assert cipher[0].startswith(("ECDHE-", "TLS_"))
    weak = client(authority)
    weak.maximum_version = ssl.TLSVersion.TLSv1_2
    weak.set_ciphers("AES128-SHA:AES256-SHA:AES128-GCM-SHA256")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        shaken(door.receiver.tls_port, weak)


def test_a_stalled_or_trickling_handshake_is_let_go(open_door: Open, ours: Pair) -> None:
    door = open_door(**settings_of(ours, network_timeout_s=0.5))
    with socket.create_connection(("127.0.0.1", door.receiver.tls_port), timeout=10) as link:
        began = time.monotonic()
        link.sendall(b"\x16\x03\x01\x02\x00")  # a record of 512 bytes, of which one comes now and then
        with suppress(ConnectionError):
            while time.monotonic() < began + 10:
                link.sendall(b"\x01")
                time.sleep(0.1)
    assert time.monotonic() - began < 8
    assert door.ended("no_tls")


def test_noise_on_the_tls_port_ends_and_the_next_sender_is_served(
    open_door: Open, authority: Authority, ours: Pair, ct: pydicom.Dataset
) -> None:
    door = open_door(**settings_of(ours))
    noise = random.Random(5)
    for size in (1, 7, 100, 5000):
        with socket.create_connection(("127.0.0.1", door.receiver.tls_port), timeout=10) as link:
            link.sendall(b"\x16\x03\x01" + noise.randbytes(size))
    assert send(door.receiver.tls_port, ct, client(authority)) == 0


def test_a_stop_ends_an_open_association_and_says_nothing_in_the_clear(
    open_door: Open, authority: Authority, ours: Pair
) -> None:
    door = open_door(**settings_of(ours))
    entity = AE("PACS")
    entity.add_requested_context(CTImageStorage)
    association = entity.associate(
        "127.0.0.1", door.receiver.tls_port, ae_title="DEID", tls_args=(client(authority), "127.0.0.1")
    )
    assert association.is_established
    began = time.monotonic()
    door.receiver.stop()
    assert time.monotonic() - began < 10
    peers.wait_until(lambda: not association.is_alive(), seconds=20, what="it read what we sent")
    assert association.is_aborted  # it read our A-ABORT, so it came over TLS
    assert door.ended("stopped")


# -- settings -----------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_used_are_told_before_anything_listens(
    home: Home, open_door: Open, authority: Authority, ours: Pair, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("")
    other = authority.issue("other")
    for faulty in (
        settings_of(Pair(ours.certificate, tmp_path / "gone")),
        settings_of(Pair(ours.certificate, other.key)),
        settings_of(ours, tmp_path / "empty"),
    ):
        with pytest.raises(EnvironmentFault, match="TLS: "):
            open_door(**faulty)
    ours.key.chmod(0o640)
    open_door(**settings_of(ours))
    ours.key.chmod(0o644)
    with pytest.raises(EnvironmentFault, match="chmod 600"):
        open_door(**settings_of(ours))


@pytest.mark.parametrize(
    "wrong",
    [
        {"dicom_tls_port": 2762},
        {"dicom_tls_certificate": "a.pem", "dicom_tls_key": "a.key"},
        {"dicom_tls_port": 2762, "dicom_tls_certificate": "a.pem"},
        {"dicom_plain": False},
        {"allowed_peers": "PACS@host#" + "a" * 64},
        {"allowed_peers": "PACS@host#abc"},
    ],
)
def test_settings_that_do_not_fit_are_refused(home: Home, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        load_settings(home.root, **wrong)


def test_settings_that_fit_are_taken(settings: Callable[..., Settings], ours: Pair, authority: Authority) -> None:
    made = settings(**settings_of(ours, authority.file, allowed_peers=f"PACS@*#{'a' * 64}"))
    assert made.allowed_peers == (f"PACS@*#{'a' * 64}",)
