"""S3: what each answer of a store means, that nothing is replaced, and that the signature is the one AWS publishes."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.app.routing.echo import echo
from gateway.errors import Hold, Retry, StudyError
from gateway.forward import TransportOptions, forward, open_transport
from gateway.forward.s3_signing import EMPTY_SHA256, Credentials, signed_headers
from gateway.forward.web_request import ask, open_pool
from gateway.policy import Access, Destination
from gateway.policy.destinations import Store
from gateway.settings import Settings
from gateway.study import Receipt
from gateway.tls import TlsFiles
from tests.certificates import Authority
from tests.forward.consignments import SEAL, STUDY_UID, Consignment, consign, consignment
from tests.forward.s3_stores import BUCKET, s3_store


@pytest.fixture
def goods(tmp_path: Path) -> Consignment:
    return consignment(tmp_path / "work", 3)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret word")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


def deliver(
    goods: Consignment, access: Access, url: str = f"s3://{BUCKET}/ct", timeout_s: float = 5.0
) -> tuple[list[Receipt], StudyError | None]:
    receipts: list[Receipt] = []
    transport = open_transport(url, TransportOptions(timeout_s=timeout_s, access=access))
    try:
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


def kinds(receipts: list[Receipt]) -> list[str]:
    return [one.kind for one in receipts]


def key_of(goods: Consignment, name: str = "0002", prefix: str = "/ct") -> str:
    (uid,) = [one.sop_instance_uid for one in goods.clearance.instances if one.name == name]
    return f"/{BUCKET}{prefix}/{STUDY_UID}/{uid}.dcm"


EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "signature"),
    [  # the examples of "Authenticating Requests: Using the Authorization Header", Amazon S3 API Reference
        (
            "GET",
            "/test.txt",
            {"Range": "bytes=0-9"},
            b"",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test$file.text",
            {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
    ],
)
def test_requests_are_signed_as_aws_publishes(
    method: str, path: str, headers: dict[str, str], body: bytes, signature: str
) -> None:
    signed = signed_headers(
        method,
        f"https://examplebucket.s3.amazonaws.com{path}",
        headers,
        sha256=hashlib.sha256(body).hexdigest(),
        credentials=EXAMPLE,
        region="us-east-1",
        now=datetime(2013, 5, 24, tzinfo=UTC),
    )
    assert signed["Authorization"].endswith(f"Signature={signature}")


@pytest.mark.parametrize("token", ["", "a token of a session"])
def test_requests_are_signed_as_botocore_does(token: str) -> None:
    from botocore import auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Theirs

    now, url = datetime.now(UTC).replace(microsecond=0), "https://s3.example:9000/research/ct/1.2/3.dcm"
    headers = {"If-None-Match": "*", "Content-Type": "application/dicom", "x-amz-checksum-mode": "ENABLED"}
    ours = signed_headers(
        "PUT",
        url,
        headers,
        sha256="0" * 64,
        credentials=Credentials("KEY", "secret", token),
        region="eu-central-1",
        now=now,
    )
    request = AWSRequest(
        "PUT", url, headers={**headers, "X-Amz-Content-SHA256": "0" * 64, "X-Amz-Date": ours["x-amz-date"]}
    )
    if token:
        request.headers["X-Amz-Security-Token"] = token
    request.context["timestamp"] = ours["x-amz-date"]
    signer = auth.S3SigV4Auth(Theirs("KEY", "secret", token or None), "s3", "eu-central-1")
    canonical = signer.canonical_request(request)
    assert signer.signature(signer.string_to_sign(request, canonical), request) == ours["Authorization"][-64:]


PUT_ANSWERS = {  # of the second of three -> its receipt, what is raised, and how many were offered
    "slow down": ((503, b"<Error><Code>SlowDown</Code></Error>"), Retry, "archive_busy", 3),
    "internal": ((500, b""), Retry, "archive_busy", 3),
    "somebody else writes it": (
        (409, b"<Error><Code>ConditionalRequestConflict</Code></Error>"),
        Retry,
        "archive_busy",
        3,
    ),
    "other bytes arrived": ((400, b"<Error><Code>BadDigest</Code></Error>"), Retry, "archive_aborted", 3),
    "not known": ((403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"), Retry, "archive_rejects_us", 3),
    "no such bucket": ((404, b"<Error><Code>NoSuchBucket</Code></Error>"), Retry, "archive_rejects_us", 3),
    "elsewhere": ((307, b""), Retry, "archive_rejects_us", 3),
    "too large": ((400, b"<Error><Code>EntityTooLarge</Code></Error>"), Hold, "archive_refuses", 3),
    "no conditions there": ((501, b"<Error><Code>NotImplemented</Code></Error>"), Hold, "archive_refuses", 3),
    "cut": ("cut", Retry, "archive_aborted", 2),
}


@pytest.mark.parametrize("name", PUT_ANSWERS)
def test_what_an_answer_means(goods: Consignment, name: str) -> None:
    answer, kind, reason, offered = PUT_ANSWERS[name]
    with s3_store(lambda number: answer if number == 1 else None) as there:
        receipts, error = deliver(goods, there.access())
        assert kinds(receipts) == ["success", "failure", "success"][:offered]
        assert isinstance(error, kind)
        assert error.reason == reason
        assert key_of(goods) not in there.objects
        receipts, error = deliver(goods, there.access())  # the rest is taken up where it broke
        assert error is None
        assert kinds(receipts) == ["success"] * 3
        assert there.stored() == goods.sent_hashes
        assert len(there.puts) == offered + (1 if offered == 3 else 2)


def test_the_word_of_the_store_is_told_and_nothing_else_of_it(goods: Consignment) -> None:
    with s3_store(lambda _: (403, b"<Error><Code>AccessDenied</Code><Message>ask jane</Message></Error>")) as there:
        _, error = deliver(goods, there.access())
    assert error is not None
    assert "(HTTP 403 AccessDenied)" in error.at
    assert "jane" not in str(error)


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("conditions", [True, False])
def test_what_is_there_with_other_bytes_stays_and_holds(goods: Consignment, checksums: bool, conditions: bool) -> None:
    with s3_store(checksums=checksums, conditions=conditions) as there:
        there.objects[key_of(goods)] = other = goods.files["0001"].read_bytes()
        receipts, error = deliver(goods, there.access())
        assert there.objects[key_of(goods)] == other
    assert kinds(receipts) == ["success", "failure", "success"]
    assert isinstance(error, Hold)
    assert error.reason == "object_conflict"


def test_what_appears_between_look_and_write_is_not_replaced(goods: Consignment) -> None:
    other, objects = goods.files["0001"].read_bytes(), dict[int, dict[str, bytes]]()

    def meanwhile(number: int) -> None:
        if number == 1:
            objects[0][key_of(goods)] = other

    with s3_store(meanwhile) as there:
        objects[0] = there.objects
        receipts, error = deliver(goods, there.access())
        assert there.objects[key_of(goods)] == other
    assert kinds(receipts) == ["success", "failure", "success"]
    assert isinstance(error, Hold)
    assert error.reason == "object_conflict"


@pytest.mark.parametrize("checksums", [True, False])
def test_a_store_that_keeps_other_bytes_than_it_took_is_found_out(goods: Consignment, checksums: bool) -> None:
    with s3_store(checksums=checksums, spoils=True) as there:
        receipts, error = deliver(goods, there.access())
    assert kinds(receipts) == ["failure"] * 3
    assert isinstance(error, Hold)


def test_without_the_right_to_list_it_is_written_all_the_same(goods: Consignment) -> None:
    with s3_store(looks=403) as there:
        receipts, error = deliver(goods, there.access())
        assert error is None
        assert kinds(receipts) == ["success"] * 3
        with pytest.raises(Retry, match="archive_rejects_us"):
            open_transport(f"s3://{BUCKET}", TransportOptions(access=there.access())).probe()


def test_a_store_that_is_unwell_is_left_alone_after_the_first(goods: Consignment) -> None:
    with s3_store(looks=503) as there:
        receipts, error = deliver(goods, there.access())
        assert isinstance(error, Retry)
        assert error.reason == "archive_busy"
        assert (kinds(receipts), there.puts) == (["failure"], [])
        with pytest.raises(Retry, match="archive_busy"):
            open_transport(f"s3://{BUCKET}", TransportOptions(access=there.access())).probe()


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize(
    ("encrypts", "kind", "raised"), [(True, "success", None), (False, "failure", "archive_refuses")]
)
def test_encryption_that_was_asked_for_must_have_happened(
    goods: Consignment, encrypts: bool, kind: str, raised: str | None, checksums: bool
) -> None:
    with s3_store(encrypts=encrypts, checksums=checksums) as there:
        access = there.access(encryption="aws:kms", kms_key_id="alias/research")
        for _ in range(2):  # the second time it is there
            receipts, error = deliver(goods, access)
            assert kinds(receipts) == [kind] * 3
            assert (error and error.reason) == raised
        puts = [headers for method, _, headers in there.asked if method == "PUT"]
    assert len(puts) == 3
    assert puts[0]["x-amz-server-side-encryption"] == "aws:kms"
    assert puts[0]["x-amz-server-side-encryption-aws-kms-key-id"] == "alias/research"


def test_a_large_file_is_streamed_as_it_was_cleared(tmp_path: Path) -> None:
    goods = consignment(tmp_path / "large", 1, payload=bytes(range(256)) * 40_000)  # above what is kept in memory
    with s3_store(checksums=False) as there:
        assert deliver(goods, there.access())[1] is None
        assert there.stored() == goods.sent_hashes


def test_the_key_of_the_destination_goes_before_that_of_the_environment(tmp_path: Path, goods: Consignment) -> None:
    secret = tmp_path / "secret"
    secret.write_text("first\n")
    secret.chmod(0o600)
    with s3_store() as there:
        named = replace(there.access(region="eu-central-1"), user="NAMED", password_file=secret)
        assert deliver(goods, named)[1] is None
        assert deliver(goods, there.access(region="eu-central-1"))[1] is None
        shown = {headers["Authorization"].split("/")[0] for _, _, headers in there.asked}
        assert shown == {"AWS4-HMAC-SHA256 Credential=NAMED", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE"}
        assert all("/eu-central-1/s3/" in headers["Authorization"] for _, _, headers in there.asked)
        secret.chmod(0o644)
        _, error = deliver(goods, named)
    assert isinstance(error, Retry)
    assert error.reason == "archive_access"
    assert "first" not in str(error)


def test_without_a_key_nothing_is_asked(goods: Consignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with s3_store() as there:
        receipts, error = deliver(goods, there.access())
        assert (receipts, there.asked) == ([], [])
    assert isinstance(error, Retry)
    assert error.reason == "archive_access"


def test_a_silent_store_is_not_waited_for_longer_than_said(goods: Consignment) -> None:
    wait = threading.Event()
    with s3_store(lambda _: (wait.wait(20), (500, b""))[1]) as there:
        receipts, error = deliver(goods, there.access(), timeout_s=0.3)
        wait.set()
    assert isinstance(error, Retry)
    assert kinds(receipts) == ["failure"]


def test_over_tls_the_store_must_be_who_we_believe(tmp_path: Path, goods: Consignment) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs", "another authority")
    pair = ours.issue("store", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with s3_store(tls=context) as there:
        _, error = deliver(goods, replace(there.access(), tls=TlsFiles(ca_file=theirs.file)))
        assert isinstance(error, Retry)
        assert error.reason == "archive_untrusted"
        assert there.asked == []
        assert deliver(goods, replace(there.access(), tls=TlsFiles(ca_file=ours.file)))[1] is None
        assert there.stored() == goods.sent_hashes


def test_moto_holds_byte_for_byte_what_was_cleared(tmp_path: Path, goods: Consignment) -> None:
    from moto import server as moto

    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        access = Access(store=Store(endpoint=f"http://{host}:{port}", encryption="AES256"))
        with open_pool("http:", TransportOptions()) as pool:
            made = signed_headers(
                "PUT",
                f"{access.store.url}/{BUCKET}",
                {},
                sha256=EMPTY_SHA256,
                credentials=EXAMPLE,
                region="us-east-1",
                now=datetime.now(UTC),
            )
            assert ask(pool, "PUT", f"{access.store.url}/{BUCKET}", made).status == 200
            open_transport(f"s3://{BUCKET}", TransportOptions(access=access)).probe()
            for _ in range(2):
                receipts, error = deliver(goods, access)
                assert error is None
                assert kinds(receipts) == ["success"] * 3
            for name, path in goods.files.items():
                got: list[bytes] = []
                assert ask(pool, "GET", access.store.url + key_of(goods, name), made, sink=got.append).status == 200
                assert b"".join(got) == path.read_bytes()
        other = goods.files["0001"].read_bytes()
        goods.files["0001"].write_bytes(other[:-1] + b"!")
        changed = consign(list(goods.files.values()))
        _, error = deliver(changed, access)
        assert isinstance(error, Hold)
        assert error.reason == "object_conflict"
        with pytest.raises(Retry, match="archive_rejects_us"):
            open_transport("s3://no-such-bucket", TransportOptions(access=access)).probe()
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("looks", "state", "says"),
    [
        (0, "answers", "the bucket answered"),
        (403, "rejected", "access_key_id and the bucket"),
        (503, "busy", "not well"),
    ],
)
def test_route_echo_tells_how_a_bucket_is(settings: Callable[..., Settings], looks: int, state: str, says: str) -> None:
    with s3_store(looks=looks) as there:
        (answer,) = echo([Destination("bucket", f"s3://{BUCKET}", there.access())], settings(), timeout_s=5)
        assert there.puts == []
    assert (answer.state, says in answer.says) == (state, True)
