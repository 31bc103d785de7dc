"""A judgement scans each file once, says the same as one that scans them for every check, and forgets them."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from gate_cases import SEAL, encode, files, identified_ct, plain_scrub, policy

from gateway.gate import Pair, judge
from gateway.gate import bytescan as module
from gateway.gate.bytescan import DEFLATED, scan_file, scanning_once
from gateway.study import Outcome

JOB = {"job_key": "job-1", "destination": "research", "seal_key": SEAL}


def a_study(folder: Path, count: int = 3) -> list[Pair]:
    """The last candidate of it says the patient's name."""
    pairs = []
    for number in range(count):
        ds = identified_ct()
        ds.SOPInstanceUID += str(number)
        clean = plain_scrub(ds)
        if number == count - 1:
            clean.ImageComments = "Zzsynth"
        pairs.append(files(folder, encode(ds), encode(clean), f"{number:04d}"))
    return pairs


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what was scanned from now on."""
    found: list[int] = []
    real = module.scan_bytes

    def noted(file: module.Buffer, *, original: bool = False) -> module.Scan:
        found.append(len(file))
        return real(file, original=original)

    monkeypatch.setattr(module, "scan_bytes", noted)
    return found


def test_each_file_is_scanned_once_and_nothing_is_kept_afterwards(tmp_path: Path, scans: list[int]) -> None:
    pairs = a_study(tmp_path)
    judge(pairs, policy=policy(), **JOB)
    assert len(scans) == 2 * len(pairs)
    scan_file(pairs[0].original, original=True)
    assert len(scans) == 2 * len(pairs) + 1


@pytest.mark.parametrize("room", [0, 4000, 1 << 30])
def test_the_judgement_is_the_same_whatever_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", room)
    judgement = judge(a_study(tmp_path), policy=policy(), **JOB)
    (found,) = (verdict for verdict in judgement.verdicts if verdict.outcome is Outcome.HOLD)
    assert (found.check, judgement.reason, judgement.clearance) == ("residual_identifiers", "residual_identifier", None)
    assert {(one.instance, one.where) for one in found.findings} == {("0002", "(0020,4000)")}


def test_what_there_is_no_room_for_is_scanned_for_each_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scans: list[int]
) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    judge(pairs := a_study(tmp_path), policy=policy(), **JOB)
    assert len(scans) > 4 * len(pairs)


def test_a_file_that_changed_is_scanned_again(tmp_path: Path) -> None:
    (pair,) = a_study(tmp_path, 1)
    with scanning_once():
        first = scan_file(pair.candidate)
        assert scan_file(pair.candidate) is first
        as_original = scan_file(pair.candidate, original=True)
        assert as_original is not first
        stat = pair.candidate.stat()
        changed = pair.candidate.read_bytes().replace(b"Zzsynth", b"Zzsynht")
        pair.candidate.write_bytes(changed)
        os.utime(pair.candidate, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert scan_file(pair.candidate).file == changed


def test_what_was_inflated_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.dcm"
    path.write_bytes(encode(plain_scrub(identified_ct()), DEFLATED))
    with scanning_once():
        first = scan_file(path)
        assert first.leaves
        assert scan_file(path) is not first


def test_what_was_inflated_and_cannot_be_read_is_not_kept(tmp_path: Path) -> None:
    """No element was whole, so that only the tail holds what may be a gigabyte."""
    whole = scan_file(good := _written(tmp_path / "a.dcm", encode(plain_scrub(identified_ct()), DEFLATED)))
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    unfolds = deflate.compress(b"\xff" * (1 << 20)) + deflate.flush()
    path = _written(tmp_path / "b.dcm", good.read_bytes()[: whole.dataset_start] + unfolds)
    with scanning_once():
        first = scan_file(path)
        assert (first.leaves, first.tail and first.tail.size) == ([], 1 << 20)
        assert scan_file(path) is not first


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
