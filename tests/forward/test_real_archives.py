"""Orthanc and DCMTK's storescp as archives: what arrived is read back and is what was cleared."""

from __future__ import annotations

import hashlib
import io
import subprocess
from pathlib import Path

import pydicom
import pytest

from gateway.errors import Hold, StudyError
from gateway.forward import TransportOptions, forward, open_transport
from gateway.study import Receipt
from tests import peers
from tests.forward.consignments import SEAL, Consignment, consign, data_set_bytes, described

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("peers")]

# One of pydicom's files for each encoding, in the form that DCMTK writes: Orthanc parses and writes again what it gets.
CANONICAL = (
    "CT_small.dcm",  # Explicit VR Little Endian, private elements, data set trailing padding
    "MR_small_RLE.dcm",
    "ExplVR_BigEnd.dcm",
    "J2K_pixelrep_mismatch.dcm",  # JPEG 2000
    "SC_rgb_dcmtk_+eb+cr.dcm",  # JPEG baseline
    "SC_rgb_jpeg_gdcm.dcm",  # JPEG lossless
    "SC_rgb_small_odd.dcm",
    "examples_overlay.dcm",
    "chrX2.dcm",  # a multi-byte character set
)
# With sequences of undefined length, or padding of two spaces: the same elements, other bytes.
REWRITTEN = ("reportsi.dcm", "waveform_ecg.dcm", "liver_1frame.dcm")


def deliver(goods: Consignment, url: str) -> tuple[list[Receipt], StudyError | None]:
    receipts: list[Receipt] = []
    try:
        transport = open_transport(url, TransportOptions(timeout_s=20))
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


def hashes(files: list[bytes]) -> list[str]:
    return sorted(hashlib.sha256(data_set_bytes(file)).hexdigest() for file in files)


def test_orthanc_holds_the_data_sets_that_were_cleared(tmp_path: Path, pydicom_files: list[Path]) -> None:
    by_name = {path.name: path for path in pydicom_files}
    goods = consign([by_name[name] for name in CANONICAL + REWRITTEN])
    with peers.Orthanc(tmp_path) as orthanc:
        url = orthanc.dicom.url
        open_transport(url, TransportOptions(timeout_s=10)).probe()
        receipts, raised = deliver(goods, url)
        stored = orthanc.files_by_sop_uid()
        again, raised_again = deliver(goods, url)
        assert len(orthanc.instances()) == len(goods.files)
    assert [receipt.status for receipt in receipts + again] == [0] * 2 * len(goods.files)
    assert raised is None
    assert raised_again is None
    for one in goods.clearance.instances:
        source, archived = goods.files[one.name], stored[one.sop_instance_uid]
        if source.name in CANONICAL:
            assert hashes([archived]) == [one.sha256_dataset], source.name
        else:
            assert pydicom.dcmread(io.BytesIO(archived)) == pydicom.dcmread(source), source.name


def test_storescp_holds_every_pydicom_file_bit_for_bit(tmp_path: Path, pydicom_files: list[Path]) -> None:
    """Whatever the encoding: broken sequences, odd lengths, private classes are passed on as they are."""
    seen: set[str] = set()
    paths = []
    for path in pydicom_files:
        try:
            entry = described("0001", path)
        except (AttributeError, AssertionError):  # no SOP class, no syntax or no group length in its file meta
            continue
        usable = pydicom.uid.UID(entry.sop_class_uid).is_valid and entry.sop_class_uid != "1.2.840.10008.1.3.10"
        if usable and entry.sop_instance_uid not in seen:
            seen.add(entry.sop_instance_uid)
            paths.append(path)
    goods = consign(paths)
    with peers.storescp(tmp_path / "in", "+B", "+xa") as scp:
        receipts, _ = deliver(goods, scp.url)
        arrived = [path.read_bytes() for path in (tmp_path / "in").iterdir()]
    refused = {goods.files[receipt.name].name for receipt in receipts if receipt.kind == "failure"}
    assert len(receipts) == len(goods.files) > 100
    delivered = {receipt.name for receipt in receipts if receipt.kind != "failure"}
    assert hashes(arrived) == sorted(i.sha256_dataset for i in goods.clearance.instances if i.name in delivered)
    palettes = {"fall", "hotiron", "hotmetalblue", "pet", "pet20step", "spring", "summer", "winter"}  # not its classes
    assert refused == {"image_dfl.dcm"} | {f"{name}.dcm" for name in palettes}  # and an odd length (PS3.8 E.1)


def test_an_archive_that_wants_uncompressed_data_holds_the_rest(tmp_path: Path, pydicom_files: list[Path]) -> None:
    by_name = {path.name: path for path in pydicom_files}
    goods = consign([by_name["MR_small.dcm"], by_name["JPEG2000.dcm"]])
    with peers.storescp(tmp_path / "in", "+B", "+xe") as scp:
        receipts, raised = deliver(goods, scp.url)
    assert isinstance(raised, Hold)
    assert raised.reason == "archive_refuses_syntax"
    assert [receipt.kind for receipt in sorted(receipts, key=lambda receipt: receipt.name)] == ["success", "failure"]


def test_the_gateway_is_seen_under_its_title_and_implementation(tmp_path: Path, pydicom_files: list[Path]) -> None:
    goods = consign([path for path in pydicom_files if path.name == "MR_small.dcm"])
    with peers.storescp(tmp_path / "in", "+B", "-d") as scp:
        transport = open_transport(scp.url, TransportOptions(ae_title="OURGATEWAY", timeout_s=10))
        transport.send(goods.items, lambda receipt: None)
    said = (tmp_path / "in.storescp.log").read_text(errors="replace")
    assert "Their Implementation Class UID:    2.25.185284226870046379262905467233962271903" in said
    assert "Calling Application Name:    OURGATEWAY" in said


def test_echoscu_and_our_probe_agree(tmp_path: Path) -> None:
    with peers.storescp(tmp_path / "in") as scp:
        subprocess.run([peers.dcmtk("echoscu"), scp.host, str(scp.port)], check=True)
        open_transport(scp.url, TransportOptions(timeout_s=10)).probe()
