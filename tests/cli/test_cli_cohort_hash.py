"""`cohort-hash`: Patient IDs in, the keyed hashes of an `in_cohort` file out."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest
from commands import Command, as_process

from gateway.policy.cohorts import load_cohort
from gateway.pseudonyms import derive
from gateway.settings import Home


def expected(home: Home, patient_id: str) -> str:
    """By RFC 2104 over the key that is derived for cohorts, in our own words."""
    key = derive(bytes.fromhex(home.master_key.read_text().strip()), "cohort")
    return hmac.new(key, patient_id.encode(), hashlib.sha256).hexdigest()


def test_each_line_becomes_a_hash_that_a_cohort_file_may_hold(command: Command, home: Home, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_bytes(b"\xef\xbb\xbfLEAK0001\r\n\n  LEAK0002 \nM\xc3\xbcller 3\n")
    ran = command("cohort-hash", ids, "--home", home.root)
    assert (ran.code, ran.err) == (0, "")
    header, *rows = ran.out.splitlines()
    assert header == "hash,from,to"
    assert rows == [f"{expected(home, one)},," for one in ("LEAK0001", "LEAK0002", "Müller 3")]
    (tmp_path / "cohort.csv").write_text(ran.out)
    assert set(load_cohort(tmp_path / "cohort.csv")) == {row.split(",")[0] for row in rows}


def test_stdin_is_read_when_no_file_is_named(home: Home) -> None:
    ran = as_process("cohort-hash", "--home", home.root, stdin=b"LEAK0001\n")
    assert ran.out == f"hash,from,to\n{expected(home, 'LEAK0001')},,\n"


@pytest.mark.parametrize("data", [b"ok\nM\xfcller\n", b"\xff\xfeL\x00E\x00"])
def test_a_list_in_another_encoding_is_refused_with_its_line_and_without_its_text(
    command: Command, home: Home, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "ids.txt").write_bytes(data)
    ran = command("cohort-hash", tmp_path / "ids.txt", "--home", home.root)
    assert (ran.code, ran.out) == (2, "")
    assert f"ids.txt:{2 if data.startswith(b'ok') else 1}: not UTF-8" in ran.err
    assert "ller" not in ran.err


def test_a_list_that_is_not_there_or_is_a_folder_is_told(command: Command, home: Home, tmp_path: Path) -> None:
    ran = command("cohort-hash", tmp_path / "none.txt", "--home", home.root)
    assert ran.code == 3
    assert "none.txt: No such file" in ran.err
    assert command("cohort-hash", tmp_path, "--home", home.root).code == 3
