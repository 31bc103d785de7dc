"""Which files `scrub` takes, which it tells and leaves alone, and which folders it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrubbing import slice_of, write_study

from gateway.app.batch.inputs import Input, find_inputs, look_at
from gateway.app.batch.journal import work_key
from gateway.app.batch.studies import by_study, require_project
from gateway.app.intake import Examined
from gateway.errors import UsageError
from gateway.pseudonyms import Keys
from gateway.settings import Home

MASTER = bytes(range(32))


def test_files_are_found_to_the_bottom_in_one_order_and_links_are_counted_not_followed(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for name in ("b/2.dcm", "a/1.dcm", "a/c/d/e/3", "z.txt"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(b"x")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.dcm").write_bytes(b"x")
    (source / "link.dcm").symlink_to(elsewhere / "secret.dcm")
    (source / "folder").symlink_to(elsewhere)
    (source / "dangling").symlink_to("nowhere")
    (source / "loop").symlink_to(source)
    os.mkfifo(source / "pipe")
    found = find_inputs(source, tmp_path / "dst", tmp_path / "home")
    assert [str(path.relative_to(source)) for path in found.files] == ["a/1.dcm", "a/c/d/e/3", "b/2.dcm", "z.txt"]
    assert found.not_followed == 5
    assert found.unreadable == ()


def test_a_source_that_is_named_by_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "1.dcm").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert find_inputs(tmp_path / "link", tmp_path / "dst", tmp_path / "home").files == (tmp_path / "link" / "1.dcm",)


def test_a_single_file_and_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x")
    assert find_inputs(tmp_path / "one", tmp_path / "dst", tmp_path / "home").files == (tmp_path / "one",)
    (tmp_path / "src").mkdir()
    assert find_inputs(tmp_path / "src", tmp_path / "dst", tmp_path / "home").files == ()


@pytest.mark.parametrize(
    ("source", "target", "home"),
    [
        ("src", "src", "home"),
        ("src", "src/out", "home"),
        ("src", "link/out", "home"),
        ("src/in", "src", "home"),
        ("src/f.dcm", "src/f.dcm", "home"),
        ("src", "dst", "src/home"),
        ("src", "home", "home"),
        ("src", "home/out", "home"),
        ("src", "dst", "dst/home"),
        ("none", "dst", "home"),
    ],
)
def test_folders_that_contain_each_other_are_refused(tmp_path: Path, source: str, target: str, home: str) -> None:
    (tmp_path / "src" / "in").mkdir(parents=True)
    (tmp_path / "src" / "f.dcm").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "src")
    with pytest.raises(UsageError):
        find_inputs(tmp_path / source, tmp_path / target, tmp_path / home)


def test_neighbours_with_a_common_beginning_are_not_inside_each_other(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    find_inputs(tmp_path / "src", tmp_path / "src2", tmp_path / "src3")


def test_every_byte_of_a_file_counts_also_those_before_the_data_set(tmp_path: Path) -> None:
    (path,) = write_study(tmp_path, 1, 1)
    first = look_at(path, "file 1", MASTER)
    data = path.read_bytes()
    path.write_bytes(b"\1" + data[1:])
    second = look_at(path, "file 1", MASTER)
    assert first.examined == second.examined
    assert first.contents != second.contents
    assert first.examined.fault == ""


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"hello world", b"%PDF-1.7 " * 100, bytes(range(256)) * 10, b"\x89PNG\r\n" + b"\0" * 200]
)
def test_what_is_not_dicom_at_all_is_a_stranger(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    assert look_at(tmp_path / "f", "file 1", MASTER).stranger


@pytest.mark.parametrize("size", [132, 140, 200, 400, 600])
def test_a_torn_dicom_file_is_no_stranger_but_a_fault(tmp_path: Path, size: int) -> None:
    (path,) = write_study(tmp_path, 1, 1)
    path.write_bytes(path.read_bytes()[:size])
    found = look_at(path, "file 1", MASTER)
    assert not found.stranger
    assert found.examined.fault == "unreadable_object"


@pytest.mark.parametrize("name", ["CT_small.dcm", "image_dfl.dcm", "rtplan.dcm", "test-SR.dcm", "DICOMDIR"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=6), cut=st.integers(0, 60000))
def test_whatever_is_in_a_file_something_is_said_of_it(
    tmp_path: Path, pydicom_files: list[Path], name: str, changes: list[tuple[int, int]], cut: int
) -> None:
    """pydicom raises struct.error, zlib.error and OSError too for bytes that are not what they claim to be."""
    data = bytearray(next(path for path in pydicom_files if path.name == name).read_bytes())
    for at, value in changes:
        data[at % len(data)] = value
    (tmp_path / "f").write_bytes(data[: max(1, cut)])
    found = look_at(tmp_path / "f", "file 1", MASTER)
    assert found.examined.fault in {"", "unreadable_object", "missing_patient_id", "dicomdir"}
    assert found.contents


def test_a_file_that_cannot_be_read_is_a_fault_and_no_exception(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.dcm", tmp_path):
        found = look_at(path, "file 1", MASTER)
        assert (found.examined.fault, found.stranger, found.contents) == ("file_unreadable", False, "")


def test_a_dicomdir_is_known_by_its_file_meta(tmp_path: Path) -> None:
    """PS3.3 Annex F: the data set of a DICOMDIR has no SOP Class UID, only its file meta says (PS3.10 7.1)."""
    ds = slice_of(1, "1.2.3")
    del ds.SOPClassUID
    del ds.SOPInstanceUID
    del ds.StudyInstanceUID
    ds.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.1.3.10"
    ds.save_as(tmp_path / "DICOMDIR", enforce_file_format=True)
    assert look_at(tmp_path / "DICOMDIR", "file 1", MASTER).examined.fault == "dicomdir"


def test_files_come_together_by_study_and_what_tells_none_stands_alone(home: Home, keys: Keys) -> None:
    def entry(path: str, study: str, contents: str) -> Input:
        return Input(Path(path), Examined(path, "", study_key=study), contents)

    inputs = [
        entry("a", "s1", "1"),
        entry("b", "s2", "2"),
        entry("c", "s1", "3"),
        entry("d", "", "4"),
        entry("e", "", "4"),
    ]
    target = Path("/dst")
    batches = by_study(inputs, keys, lambda contents: work_key(keys, contents, "policy", "demo", target))
    assert sorted(tuple(str(i.path) for i in batch.inputs) for batch in batches) == [("a", "c"), ("b",), ("d",), ("e",)]


def test_a_piece_of_work_is_named_by_contents_policy_project_and_target(keys: Keys) -> None:
    def key(
        contents: tuple[str, ...] = ("1", "2"), policy: str = "p", project: str = "demo", target: str = "/dst"
    ) -> str:
        return work_key(keys, contents, policy, project, Path(target))

    assert key() == key(("2", "1")) == key(target="/x/../dst")
    others = {key(("1",)), key(("1", "2", "2")), key(policy="q"), key(project="x"), key(target="/other")}
    assert len(others | {key()}) == 6


def test_file_names_of_any_bytes_have_a_key(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / os.fsdecode(b"\xe9t\xe9.dcm")
    entry = Input(path, Examined("file 1", "", fault="unreadable_object"), "contents")
    (batch,) = by_study([entry], keys, lambda contents: work_key(keys, contents, "p", "demo", tmp_path))
    assert batch.file_of("file 1") == path


@pytest.mark.parametrize("name", ["", "Demo", "a b", "-x", "../x", "x" * 64])
def test_a_project_is_named_as_in_routes(name: str) -> None:
    with pytest.raises(UsageError, match="the project"):
        require_project(name)
    assert require_project("lung-2026.a") == "lung-2026.a"
