"""Cleared files in a folder: names, conflicts, full disks, half-written files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gateway.errors import EnvironmentFault, Hold, Retry
from gateway.forward import Transport, TransportOptions, open_transport, verified
from gateway.study import Receipt
from tests.forward.consignments import STUDY_UID, consign, consignment, instance


def transport(root: Path) -> Transport:
    return open_transport(f"folder:{root}", TransportOptions())


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_files_lie_whole_under_the_new_study_and_instance_uid(tmp_path: Path) -> None:
    goods = consignment(tmp_path / "work", 3)
    transport(tmp_path / "out").send(goods.items, lambda receipt: None)
    expected = {f"{STUDY_UID}/{i.sop_instance_uid}.dcm": goods.files[i.name] for i in goods.clearance.instances}
    assert files(tmp_path / "out") == {name: path.read_bytes() for name, path in expected.items()}


def test_a_relative_folder_is_relative_to_the_base_and_an_absolute_one_is_not(tmp_path: Path) -> None:
    goods = consignment(tmp_path / "work", 1)
    options = TransportOptions(base=tmp_path / "base")
    open_transport("folder:below/here", options).send(goods.items, lambda receipt: None)
    open_transport(f"folder:{tmp_path}/absolute", options).send(goods.items, lambda receipt: None)
    assert files(tmp_path / "base/below/here").keys() == files(tmp_path / "absolute").keys() != set()


def test_another_file_of_that_name_is_left_alone_and_the_others_are_delivered(tmp_path: Path) -> None:
    goods = consignment(tmp_path / "work", 3)
    taken = tmp_path / "out" / STUDY_UID / f"{goods.clearance.instances[1].sop_instance_uid}.dcm"
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"somebody else's")
    receipts: list[Receipt] = []
    with pytest.raises(Hold) as caught:
        transport(tmp_path / "out").send(goods.items, receipts.append)
    assert caught.value.reason == "folder_conflict"
    assert caught.value.at == "instance 0002"
    assert taken.read_bytes() == b"somebody else's"
    assert [(r.name, r.kind) for r in receipts] == [("0001", "success"), ("0002", "failure"), ("0003", "success")]


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, "archive_busy"), (errno.EDQUOT, "archive_busy"), (errno.EIO, "archive_unreachable")],
)
def test_a_folder_that_fails_leaves_no_part_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    goods = consignment(tmp_path / "work", 3)

    def fails(_handle: int) -> None:
        raise OSError(number, "text")

    monkeypatch.setattr(os, "fsync", fails)
    receipts: list[Receipt] = []
    with pytest.raises(Retry) as caught:
        transport(tmp_path).send(goods.items, receipts.append)
    assert caught.value.reason == reason
    assert [(r.name, r.kind) for r in receipts] == [("0001", "failure")]
    assert list(tmp_path.rglob("*.part")) == []
    monkeypatch.undo()
    transport(tmp_path).send(goods.items, receipts.append)
    assert [r.kind for r in receipts[1:]] == ["success"] * 3


def test_a_large_file_that_changes_while_it_is_copied_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified, "WHOLE_BYTES", 0)
    instance(tmp_path / "large.dcm", payload=bytes(3 << 20))
    goods = consign([tmp_path / "large.dcm"])
    opened = verified.open_verified

    def changed_after_the_first_hash(item: object) -> object:
        file = opened(item)  # type: ignore[arg-type]
        with open(tmp_path / "large.dcm", "r+b") as other:
            other.seek(2 << 20)
            other.write(b"other")
        return file

    monkeypatch.setattr("gateway.forward.folder.open_verified", changed_after_the_first_hash)
    with pytest.raises(Hold) as caught:
        transport(tmp_path / "out").send(goods.items, print)
    assert caught.value.reason == "clearance_broken"
    assert files(tmp_path / "out") == {}


@pytest.mark.parametrize("study_uid", ["../../x", "..", "", "/tmp/x", "1.2/../../.."])
def test_a_study_uid_that_is_none_does_not_become_a_folder(tmp_path: Path, study_uid: str) -> None:
    """Case 27, at the other end: what is cleared with such a UID is still not a path."""
    (tmp_path / "work").mkdir()
    instance(tmp_path / "work" / "one.dcm", study_uid=study_uid)
    with pytest.raises(Hold) as caught:
        transport(tmp_path / "a" / "out").send(consign([tmp_path / "work" / "one.dcm"]).items, lambda receipt: None)
    assert caught.value.reason == "output_invalid"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["one.dcm"]


def test_a_folder_that_cannot_be_written_fails_its_probe(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault):
        transport(tmp_path / "file").probe()
