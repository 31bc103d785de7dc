"""What is sent is what lies on disk, under our own names, and the database knows it before the sender does."""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path

import pytest
from pydicom import dcmread
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset
from pydicom.filereader import read_file_meta_info
from pydicom.uid import (
    CTImageStorage,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
)
from pynetdicom import AE
from pynetdicom.sop_class import Verification

from gateway.receive.contexts import STORAGE_CLASSES, TRANSFER_SYNTAXES
from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME
from tests.receive.raw_peer import CT, ECHO, RawPeer, dataset, element, p_data, pdv, store_command, uid


def data_set_of(path: Path) -> bytes:
    """The bytes after group 0002."""
    with open(path, "rb") as file:
        meta_length = read_file_meta_info(path).FileMetaInformationGroupLength
        file.seek(132 + 12 + meta_length)
        return file.read()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_echo_is_answered_with_success(door):
    with door.peer() as peer:
        peer.associate([(ECHO, [ImplicitVRLittleEndian])])
        peer.send(p_data(pdv(1, store_command("", sop_class=ECHO, field=0x0030, data_set=False), command=True)))
        answer = peer.response()
        assert (answer[0x0100], answer[0x0120], answer[0x0900]) == (0x8030, 1, 0x0000)
        peer.release()


def test_pynetdicom_as_sender_gets_success_for_echo_and_store(door):
    sender = AE("PACS")
    sender.add_requested_context(Verification)
    sender.add_requested_context(CTImageStorage, ExplicitVRLittleEndian)
    association = sender.associate("127.0.0.1", door.port, ae_title="DEID")
    assert association.is_established
    assert association.send_c_echo().Status == 0x0000
    assert association.send_c_store(get_testdata_file("CT_small.dcm")).Status == 0x0000
    association.release()
    assert len(door.kept()) == 1


def test_every_dicom_file_of_pydicom_arrives_with_its_data_set_unchanged(door, pydicom_files):
    """cases.md 76: every transfer syntax, compressed or odd, is stored as sent."""
    sent = []
    for path in pydicom_files:
        meta = read_file_meta_info(path)
        needed = ("MediaStorageSOPClassUID", "MediaStorageSOPInstanceUID", "TransferSyntaxUID")
        if all(getattr(meta, name, "") for name in (*needed, "FileMetaInformationGroupLength")):
            sop_class, sop, syntax = (str(getattr(meta, name)) for name in needed)
            if sop_class in STORAGE_CLASSES and syntax in TRANSFER_SYNTAXES:
                sent.append((sop_class, sop, syntax, data_set_of(path)))
    contexts = sorted({(sop_class, syntax) for sop_class, _, syntax, _ in sent})
    assert len(sent) > 100
    assert len(contexts) <= 128
    with door.peer() as peer:
        peer.associate([(sop_class, [syntax]) for sop_class, syntax in contexts])
        for sop_class, sop, syntax, data in sent:
            context_id = 2 * contexts.index((sop_class, syntax)) + 1
            assert peer.store(data, sop=sop, context_id=context_id, sop_class=sop_class) == 0x0000
        peer.release()
    kept = door.kept()
    assert [sha256(data_set_of(path)) for path in kept] == [sha256(data) for *_, data in sent]
    for path, (sop_class, sop, syntax, _) in zip(kept, sent, strict=True):
        meta = read_file_meta_info(path)
        assert (meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID) == (sop_class, sop)
        assert meta.TransferSyntaxUID == syntax


def test_the_file_meta_is_ours_and_names_both_ae_titles(door):
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset("1.2.3.4"), sop="1.2.3.4") == 0x0000
    content = door.kept()[0].read_bytes()
    assert content[:132] == b"\0" * 128 + b"DICM"
    meta = read_file_meta_info(door.kept()[0])
    assert meta.ImplementationClassUID == IMPLEMENTATION_CLASS_UID
    assert meta.ImplementationVersionName == IMPLEMENTATION_VERSION_NAME
    assert (meta.SourceApplicationEntityTitle, meta.ReceivingApplicationEntityTitle) == ("PACS", "DEID")
    assert bytes(meta.FileMetaInformationVersion) == b"\0\1"
    assert content[132 + 12 + meta.FileMetaInformationGroupLength :] == dataset("1.2.3.4")


def test_files_are_readable_by_us_only(door):
    with door.peer() as peer:
        peer.associate()
        peer.store(dataset())
    path = door.kept()[0]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "syntax", [ImplicitVRLittleEndian, ExplicitVRLittleEndian, ExplicitVRBigEndian, DeflatedExplicitVRLittleEndian]
)
def test_the_row_names_study_instance_and_expected_count_by_keyed_hash(door, syntax, tmp_path):
    image = Dataset()
    image.SOPClassUID, image.SOPInstanceUID, image.StudyInstanceUID = CTImageStorage, "1.2.3.77", "1.2.88"
    image.NumberOfStudyRelatedInstances = 12
    image.save_as(tmp_path / "x", implicit_vr=syntax.is_implicit_VR, little_endian=syntax.is_little_endian)
    encoded = (tmp_path / "x").read_bytes()
    if syntax.is_deflated:
        deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        encoded = deflater.compress(encoded) + deflater.flush()
        encoded += b"\0" * (len(encoded) % 2)
    with door.peer() as peer:
        peer.associate([(CT, [syntax])])
        assert peer.store(encoded, sop="1.2.3.77") == 0x0000
    key = door.study_key("1.2.88")
    (row,) = door.database.instances_of(key)
    assert row.sop_key == door.keys.opaque("sop", "1.2.3.77")
    assert row.size_bytes == door.spool.path(key, row.name).stat().st_size
    study = door.database.study(key, 1)
    assert study is not None
    assert study.expected == 12


def test_an_instance_sent_twice_is_kept_twice_for_intake_to_judge(door):
    """cases.md 39: never overwrite."""
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset()) == 0x0000
        assert peer.store(dataset(more=element(0x0028, 0x0010, b"\1\0"))) == 0x0000
    assert len(door.kept()) == len(door.database.instances_of(door.study_key("1.2"))) == 2


def test_when_command_and_data_set_disagree_the_data_set_names_the_study(door):
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset("1.2.3.999"), sop="1.2.3.111") == 0x0000
    (row,) = door.database.instances_of(door.study_key("1.2"))
    assert row.sop_key == door.keys.opaque("sop", "1.2.3.999")
    kept = dcmread(door.kept()[0])
    assert (kept.file_meta.MediaStorageSOPInstanceUID, kept.SOPInstanceUID) == ("1.2.3.111", "1.2.3.999")


@pytest.mark.parametrize("content", [b"", b"not DICOM at all", element(8, 0x18, uid("1.2.3")), b"\0" * 400])
def test_what_cannot_be_read_is_kept_alone_under_a_key_of_its_own(door, content):
    with door.peer() as peer:
        peer.associate()
        assert peer.store(content) == 0x0000
        assert peer.store(content) == 0x0000
    first, second = door.kept()
    assert first.parent != second.parent
    (row,) = door.database.instances_of(first.parent.name)
    assert first.read_bytes().endswith(content)
    assert row.name == first.name


@pytest.mark.parametrize(
    "hostile", ["../../x", "/etc/passwd", "..", "1.2/../..", "a\\b", "1.2.\x1b[31m", "~root", "\xe9"]
)
def test_no_uid_of_a_peer_becomes_a_path(door, hostile, tmp_path):
    """cases.md 27."""
    before = {path for path in tmp_path.rglob("*") if "spool" not in path.parts}
    data = element(8, 0x18, hostile.encode("latin-1")) + element(0x20, 0xD, hostile.encode("latin-1"))
    with door.peer() as peer:
        peer.associate()
        command = store_command("").replace(element(0, 0x0110, b"\1\0"), element(0, 0x0110, b"\1\0"))
        command += element(0, 0x1000, hostile.encode("latin-1"))
        peer.send(p_data(pdv(1, command, command=True), pdv(1, data)))
        assert peer.status() == 0x0000
    (path,) = door.kept()
    assert path.parent.parent == door.spool.root
    assert all(character in "0123456789abcdef" for character in path.stem + path.parent.name)
    after = {path for path in tmp_path.rglob("*") if "spool" not in path.parts}
    assert {path.name.split("-")[0] for path in after - before} <= {"database.sqlite"}


def test_bytes_and_seconds_are_counted(door):
    with door.peer() as peer:
        peer.associate()
        peer.store(dataset())
        assert door.value("deid_open_associations") == 1
        peer.release()
        assert peer.closed()
    assert door.value("deid_instances_received_total", result="success") == 1
    assert door.value("deid_received_bytes_total") == len(dataset())
    assert door.value("deid_store_seconds_count") == 1
    door.receiver.stop()
    assert door.value("deid_open_associations") == 0
    assert door.associations("released") == 1


class TestFragments:
    """PS3.8 9.3.5 and Annex E: how a message may be cut into PDVs and PDUs is the sender's choice."""

    def test_command_and_data_set_in_one_pdu(self, door):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, store_command(), command=True), pdv(1, dataset())))
            assert peer.status() == 0x0000

    def test_one_byte_fragments(self, door):
        command, data = store_command(), dataset()
        pieces = [pdv(1, command[i : i + 1], command=True, last=i + 1 == len(command)) for i in range(len(command))]
        pieces += [pdv(1, data[i : i + 1], last=i + 1 == len(data)) for i in range(len(data))]
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(*pieces[:100]) + b"".join(p_data(piece) for piece in pieces[100:]))
            assert peer.status() == 0x0000
        assert door.kept()[0].read_bytes().endswith(data)

    def test_an_empty_last_fragment_ends_the_data_set(self, door):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, store_command(), command=True)))
            peer.send(p_data(pdv(1, dataset(), last=False)) + p_data(pdv(1, b"")))
            assert peer.status() == 0x0000

    def test_two_requests_sent_without_waiting_are_answered_in_order(self, door):
        with door.peer() as peer:
            peer.associate()
            for number in (7, 8):
                peer.send(p_data(pdv(1, store_command(message_id=number), command=True), pdv(1, dataset())))
            assert [peer.response()[0x0120] for _ in range(2)] == [7, 8]

    def test_echo_and_cancel_between_stores(self, door):
        cancel = element(0, 0x0100, b"\xff\x0f") + element(0, 0x0120, b"\1\0") + element(0, 0x0800, b"\1\1")
        with door.peer() as peer:
            peer.associate([(CT, [ImplicitVRLittleEndian]), (ECHO, [ImplicitVRLittleEndian])])
            assert peer.store(dataset()) == 0x0000
            peer.send(p_data(pdv(1, cancel, command=True)))
            peer.send(p_data(pdv(3, store_command("", sop_class=ECHO, field=0x30, data_set=False), command=True)))
            assert peer.response()[0x0100] == 0x8030
            assert peer.store(dataset()) == 0x0000

    def test_an_answer_fits_the_longest_pdu_that_the_peer_takes(self, door):
        with door.peer() as peer:
            peer.associate(longest=64)
            peer.send(p_data(pdv(1, store_command(), command=True), pdv(1, dataset())))
            command, last = b"", False
            while not last:
                kind, data = peer.answer()
                assert kind == 4
                assert len(data) - 6 <= 64
                last = bool(data[11] & 2)
                command += data[12:]
            assert command[:12] == element(0, 0, struct.pack("<I", len(command) - 12))


class TestRequestsThatAreRefused:
    """PS3.7 Annex C and PS3.4 B.2.3: each with its own status, and the association goes on."""

    @pytest.mark.parametrize(
        ("command", "status"),
        [
            (store_command(sop_class="1.2.840.10008.5.1.4.1.1.4"), 0x0122),  # MR under a CT context
            (store_command(""), 0x0117),
            (store_command("1." * 32 + "1"), 0x0117),  # 65 characters
            (store_command(field=0x0020), 0x0211),  # C-FIND
            (store_command(field=0x0130), 0x0211),  # N-ACTION
        ],
    )
    def test_the_data_set_is_dropped_and_the_next_object_is_taken(self, door, command, status):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, command, command=True), pdv(1, dataset())))
            assert peer.status() == status
            assert peer.store(dataset()) == 0x0000
        assert len(door.kept()) == 1

    def test_a_store_without_data_set_is_not_understood(self, door):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, store_command(data_set=False), command=True)))
            assert peer.status() == 0xC000

    def test_a_store_under_the_verification_context_is_not_supported(self, door):
        with door.peer() as peer:
            peer.associate([(ECHO, [ImplicitVRLittleEndian])])
            peer.send(p_data(pdv(1, store_command(sop_class=ECHO), command=True), pdv(1, dataset())))
            assert peer.status() == 0x0122


class TestContexts:
    """What is accepted in negotiation."""

    def test_every_transfer_syntax_is_accepted(self, door):
        # By number, so that this list is not the code's: PS3.6 Table A-1, retired ones too.
        numbers = [
            *("1.2", "1.2.1", "1.2.1.98", "1.2.1.99", "1.2.2", "1.2.5", "1.2.8.1"),
            *(f"1.2.4.{n}" for n in (*range(50, 67), 70, 80, 81, *range(90, 96), *range(100, 109))),
            *(f"1.2.4.{n}" for n in (110, 111, 112, 201, 202, 203, 204, 205)),
            *(f"1.2.4.{n}.1" for n in range(100, 107)),
        ]
        contexts = [(CT, [f"1.2.840.10008.{number}"]) for number in numbers]
        with door.peer() as peer:
            accepted = peer.associate(contexts)
            assert [item.result_reason for item in accepted.presentation_context] == [0] * len(contexts)
            assert [[item.transfer_syntax] for item in accepted.presentation_context] == [s for _, s in contexts]

    def test_every_storage_class_is_accepted_in_associations_of_128_contexts(self, door):
        everything = sorted(STORAGE_CLASSES)
        assert len(everything) > 180
        for start in (0, 128):
            with door.peer() as peer:
                accepted = peer.associate([(c, [ExplicitVRLittleEndian]) for c in everything[start : start + 128]])
                assert {item.result_reason for item in accepted.presentation_context} == {0}
                assert accepted.presentation_context[-1].presentation_context_id in (255, 2 * len(everything[128:]) - 1)

    def test_of_several_syntaxes_the_senders_first_is_taken(self, door):
        with door.peer() as peer:
            accepted = peer.associate([(CT, ["1.2.3.4", JPEG2000Lossless, ImplicitVRLittleEndian])])
            assert accepted.presentation_context[0].transfer_syntax == JPEG2000Lossless

    def test_unknown_classes_and_syntaxes_are_refused_each_with_its_reason(self, door):
        with door.peer() as peer:
            accepted = peer.associate(
                [
                    ("1.2.840.10008.5.1.4.1.2.2.1", [ImplicitVRLittleEndian]),  # Study Root FIND
                    ("1.2.840.10008.1.3.10", [ImplicitVRLittleEndian]),  # DICOMDIR
                    ("1.3.6.1.4.1.9999.1", [ImplicitVRLittleEndian]),
                    (CT, ["1.2.3.4"]),
                    (CT, [ImplicitVRLittleEndian]),
                ]
            )
            assert [item.result_reason for item in accepted.presentation_context] == [3, 3, 3, 4, 0]
            peer.send(p_data(pdv(1, store_command(), command=True)))
            assert peer.abort_reason() == (2, 6)

    def test_private_classes_are_accepted_when_listed(self, open_door):
        door = open_door(private_sop_classes="1.3.6.1.4.1.9999.1")
        with door.peer() as peer:
            accepted = peer.associate([("1.3.6.1.4.1.9999.1", [ImplicitVRLittleEndian])])
            assert accepted.presentation_context[0].result_reason == 0

    def test_our_pdu_limit_and_implementation_are_announced(self, open_door):
        with RawPeer(open_door(max_pdu_bytes=65536).port) as peer:
            user = {type(item).__name__: item for item in peer.associate().user_information.user_data}
            assert user["MaximumLengthSubItem"].maximum_length_received == 65536
            assert user["ImplementationClassUIDSubItem"].implementation_class_uid == IMPLEMENTATION_CLASS_UID
