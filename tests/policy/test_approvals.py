"""A signed statement means one thing, and only its signer could have made it. Oracle: openssl and RFC 8032."""

from __future__ import annotations

import dataclasses
import json
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import EnvironmentFault, UsageError
from gateway.policy.approvals import (
    Signed,
    Statement,
    key_id,
    new_private,
    public_text,
    read_line,
    read_private,
    read_public,
    sign,
)

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = PRIVATE.public_key()
SAID = Statement(
    "approve", "ct", "ab" * 32, "privacy-officer", "jane", key_id(PUBLIC), "reviewed", "2026-11-30T10:00:00+00:00"
)


def no_passphrase() -> bytes:
    raise AssertionError("nothing to ask for")


def test_the_bytes_that_are_signed_are_these() -> None:
    """A change of form makes every approval that exists void: it needs another FORMAT, on purpose."""
    assert SAID.encoded() == (
        b'{"act":"approve","by":"jane","date":"2026-11-30T10:00:00+00:00","digest":"' + b"ab" * 32 + b'",'
        b'"format":"deid-gateway policy approval 1","key":"' + SAID.key.encode() + b'","policy":"ct",'
        b'"reason":"reviewed","role":"privacy-officer"}'
    )


@given(st.sampled_from([one.name for one in dataclasses.fields(Statement)]), st.text(max_size=20))
def test_one_changed_word_breaks_the_signature(name: str, value: str) -> None:
    signed = sign(SAID, PRIVATE)
    assert signed.is_by(PUBLIC)
    changed = Signed(dataclasses.replace(SAID, **{name: value}), signed.signature)
    assert changed.is_by(PUBLIC) is (getattr(SAID, name) == value)
    assert not signed.is_by(Ed25519PrivateKey.generate().public_key())


def test_a_line_is_read_back_and_anything_else_is_none() -> None:
    line = sign(SAID, PRIVATE).to_line()
    assert read_line(line) == sign(SAID, PRIVATE)
    body = json.loads(line)
    for broken in (
        b"",
        b"[]",
        b"null",
        b"\xff",
        line[:-5],
        json.dumps({**body, "statement": {**body["statement"], "format": "another 2"}}).encode(),
        json.dumps({**body, "statement": {**body["statement"], "more": "x"}}).encode(),
        json.dumps({**body, "statement": {**body["statement"], "role": 7}}).encode(),
        json.dumps({**body, "signature": "!"}).encode(),
        json.dumps({**body, "signature": None}).encode(),
        b"[" * 15000,
    ):
        assert read_line(broken) is None
    short = Signed(SAID, b"short")
    assert not short.is_by(PUBLIC)


def test_a_statement_is_not_signed_with_another_key_than_it_names() -> None:
    with pytest.raises(ValueError, match="another key"):
        sign(SAID, Ed25519PrivateKey.generate())


def test_openssl_agrees(tmp_path: Path) -> None:
    """The key file is plain PKCS 8, and `openssl pkeyutl` verifies our signature over our bytes."""
    private = new_private(tmp_path / "k.pem", None)
    said = dataclasses.replace(SAID, key=key_id(private.public_key()))
    (tmp_path / "said").write_bytes(said.encoded())
    (tmp_path / "sig").write_bytes(sign(said, private).signature)
    subprocess.run(["openssl", "pkey", "-in", "k.pem", "-pubout", "-out", "p.pem"], cwd=tmp_path, check=True)
    verify = ["pkeyutl", "-verify", "-pubin", "-inkey", "p.pem", "-rawin", "-in", "said", "-sigfile", "sig"]
    assert subprocess.run(["openssl", *verify], cwd=tmp_path, check=False, capture_output=True).returncode == 0
    public = read_public((tmp_path / "p.pem").read_text())
    assert public_text(public) == public_text(private.public_key())
    assert public_text(read_public(public_text(public))) == public_text(public)
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "o.pem"], cwd=tmp_path, check=True)
    (tmp_path / "o.pem").chmod(0o600)
    assert isinstance(read_private(tmp_path / "o.pem", no_passphrase), Ed25519PrivateKey)


def test_private_keys_are_closed_encrypted_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "k.pem"
    made = new_private(path, b"correct horse battery")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"ENCRYPTED" in path.read_bytes()
    again = read_private(path, lambda: b"correct horse battery")
    assert public_text(again.public_key()) == public_text(made.public_key())
    for wrong in (b"correct horse batterx", b""):
        with pytest.raises(UsageError, match="does not open"):
            read_private(path, lambda given=wrong: given)  # type: ignore[misc]
    with pytest.raises(UsageError, match="never overwritten"):
        new_private(path, None)
    with pytest.raises(UsageError, match="12 characters"):
        new_private(tmp_path / "short.pem", b"short")
    path.chmod(0o640)
    with pytest.raises(EnvironmentFault, match="open to others"):
        read_private(path, no_passphrase)


def test_other_keys_are_refused(tmp_path: Path) -> None:
    subprocess.run(["openssl", "genpkey", "-algorithm", "x25519", "-out", "x.pem"], cwd=tmp_path, check=True)
    subprocess.run(["openssl", "pkey", "-in", "x.pem", "-pubout", "-out", "xp.pem"], cwd=tmp_path, check=True)
    (tmp_path / "x.pem").chmod(0o600)
    (tmp_path / "no.pem").touch(0o600)
    for name in ("x.pem", "no.pem", "absent.pem"):
        with pytest.raises(EnvironmentFault):
            read_private(tmp_path / name, no_passphrase)
    for text in ((tmp_path / "xp.pem").read_text(), "", "AAAA", "é", "-----BEGIN PUBLIC KEY-----"):
        with pytest.raises(UsageError):
            read_public(text)
