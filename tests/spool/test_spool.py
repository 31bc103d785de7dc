"""A file of ours is whole and on disk, or not there: at every point where writing can fail."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway import durable as module
from gateway.durable import make_folder, writing
from gateway.spool import Spool

OLD, NEW = b"old contents", b"new contents, longer than the old ones"


class PowerCut(BaseException):
    """Not an Exception: nothing but a clean-up may see it."""


class Interrupted:
    """Counts calls of the functions that touch the disk and fails before or after the n-th."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, at: int, after: bool) -> None:
        self.calls: list[str] = []
        self.at, self.after = at, after
        for name in ("fchmod", "fsync", "replace", "open"):
            monkeypatch.setattr(module.os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            self.calls.append(name)
            mine = len(self.calls) == self.at
            if mine and not self.after:
                raise PowerCut
            result = real(*args, **kwargs)
            if mine:
                raise PowerCut
            return result

        return call


STEPS = ["fchmod", "fsync", "replace", "open", "fsync"]  # what one `writing` does to the disk, in order


def test_writing_syncs_the_file_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Interrupted(monkeypatch, at=0, after=False)
    with writing(tmp_path / "file") as file:
        file.write(NEW)
    assert seen.calls == STEPS


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, len(STEPS) + 1))
@pytest.mark.parametrize("old", [None, OLD])
def test_a_write_that_fails_anywhere_leaves_the_old_file_or_the_whole_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes | None, at: int, after: bool
) -> None:
    target = tmp_path / "file"
    if old is not None:
        target.write_bytes(old)
    with monkeypatch.context() as patch:
        Interrupted(patch, at=at, after=after)
        with pytest.raises(PowerCut), writing(target) as file:
            file.write(NEW)
    renamed = (at, after) >= (3, True)
    assert (target.read_bytes() if target.exists() else None) == (NEW if renamed else old)
    assert [path.name for path in tmp_path.iterdir()] == ([target.name] if target.exists() else [])


def test_a_writer_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def half() -> None:
        with writing(tmp_path / "file") as file:
            file.write(NEW[:5])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    with writing(tmp_path / "file") as file:
        file.write(NEW)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_writers_of_one_target_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "file"

    def write(number: int) -> None:
        with writing(target) as file:
            for _ in range(50):
                file.write(b"%03d" % number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    contents = target.read_bytes()
    assert contents == contents[:3] * 50
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def receive(spool: Spool, study_key: str, contents: bytes) -> str:
    part = spool.new_part()
    part.write_bytes(contents)
    return spool.keep(part, study_key)


def test_an_object_is_kept_under_a_name_of_ours_in_a_private_folder(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    name = receive(spool, "abc", NEW)
    assert spool.path("abc", name).read_bytes() == NEW
    assert name.endswith(".dcm")
    assert len(name) == 32 + 4
    assert int(name[:32], 16) >= 0
    assert stat.S_IMODE((spool.root / "abc").stat().st_mode) == 0o700
    assert list(spool.incoming.iterdir()) == []


def test_many_receivers_lose_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda n: receive(spool, f"study{n % 3}", b"%d" % n), range(120)))
    assert len(set(names)) == 120
    assert [spool.path(f"study{n % 3}", name).read_bytes() for n, name in enumerate(names)] == [
        b"%d" % n for n in range(120)
    ]


def test_a_sweep_removes_what_no_row_names_and_nothing_else(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    kept = receive(spool, "study", b"kept")
    receive(spool, "study", b"renamed, but its row was never written")
    receive(spool, "other", b"a study without a row")
    spool.new_part().write_bytes(b"half an obj")
    assert spool.sweep(frozenset({("study", kept)})) == 3
    assert [path.relative_to(spool.root) for path in spool.root.rglob("*.*")] == [Path("study") / kept]
    assert spool.sweep(frozenset({("study", kept)})) == 0


def test_a_sweep_of_a_spool_that_was_never_used_does_nothing(tmp_path: Path) -> None:
    assert Spool(tmp_path / "none").sweep(frozenset()) == 0


def test_discarding_a_study_leaves_its_neighbours(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    receive(spool, "gone", OLD)
    name = receive(spool, "stays", NEW)
    spool.discard("gone")
    assert sorted(path.name for path in spool.root.iterdir()) == ["incoming", "stays"]
    assert spool.path("stays", name).exists()
    with pytest.raises(FileNotFoundError):
        spool.discard("gone")


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert make_folder(tmp_path) == tmp_path
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_free_space_is_that_of_the_spools_file_system(tmp_path: Path) -> None:
    assert 0 < Spool(tmp_path).free_bytes() <= os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_a_look_at_all_files_bears_what_is_moved_and_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path / "spool")
    part, gone = spool.new_part(), spool.new_part()
    for path in (part, gone):
        path.write_bytes(b"x")
    whole = spool.keep(part, "s1")
    (spool.root / "s2").mkdir()
    look = os.scandir

    def look_while_others_work(folder: Path) -> Iterator[os.DirEntry[str]]:
        if Path(folder) == spool.root / "s2":
            Path(folder).rmdir()
        entries = look(folder)
        if Path(folder) == spool.incoming:
            gone.unlink()
        return entries

    monkeypatch.setattr(os, "scandir", look_while_others_work)
    assert set(spool.files()) == {spool.path("s1", whole)}
