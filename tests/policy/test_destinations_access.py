"""What may stand beside the URL of a destination."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.policy import Access
from gateway.policy.destinations import Store, resolve_destinations
from gateway.policy.document import Document, parse_document
from gateway.policy.hours import Hours, Span
from gateway.policy.sources import Source, resolve_sources
from gateway.tls import TlsFiles

HERE = Path("/policies")


def resolved(text: str) -> tuple[object, list[str]]:
    document = Document("destinations.yaml")
    parse_document(document, text.encode())
    found = resolve_destinations(document, HERE)
    return found.get("a"), [fault.says for fault in document.faults]


def test_files_are_relative_to_the_folder_and_nothing_secret_is_in_there() -> None:
    found, faults = resolved(
        "a: {url: 'dicom-tls://A@10.0.0.8:2762', ca_file: tls/ca.pem, certificate_file: /x/g.pem, key_file: g.key,"
        " server_name: archive.example}"
    )
    assert faults == []
    tls = TlsFiles(HERE / "tls/ca.pem", Path("/x/g.pem"), HERE / "g.key")
    assert found.access == Access(tls=tls, server_name="archive.example")  # type: ignore[attr-defined]
    found, faults = resolved("a: {url: 'https://archive.example:8443/dicom-web/', user: gate, password_file: pw}")
    assert faults == []
    assert found.url == "https://archive.example:8443/dicom-web"  # type: ignore[attr-defined]
    assert found.access == Access(user="gate", password_file=HERE / "pw")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{url: 'https://h/x', password: secret}", "password does not belong here"),
        ("{url: 'https://h/x', token: secret}", "token does not belong here"),
        ("{url: 'dicom://A@h:1', ca_file: x}", "ca_file does not belong here"),
        ("{url: 'folder:x', token_file: x}", "token_file does not belong here"),
        ("{url: 'dicom-tls://A@h:1', certificate_file: x}", "certificate_file and key_file go together"),
        ("{url: 'https://h', user: x}", "user and password_file go together"),
        ("{url: 'https://h', user: 'a:b', password_file: x}", "a user has no colon"),
        ("{url: 'https://h', user: x, password_file: x, token_file: x}", "a token or a user, not both"),
        ("{url: 'https://h', token_file: 7}", "token_file needs text"),
        ("{token_file: x}", "a needs text, or url:"),
        ("'https://u:p@h/x'", "a URL holds no user and no password"),
        ("'http://archive.example/x'", "http:// is for this machine only"),
        ("'https://h:0/x'", "the port must be"),
        ("'https://h/x?y=1'", "the path holds other signs"),
        ("'https:///x'", "the host must be"),
        ("'ftp://h/x'", "unknown kind of destination"),
        ("'s3://Bucket'", "a bucket has 3 to 63"),
        ("'s3://b'", "a bucket has 3 to 63"),
        ("'s3://bucket/../x'", "a bucket has 3 to 63"),
        ("{url: 's3://bucket', secret_key: secret}", "secret_key does not belong here"),
        ("{url: 's3://bucket', access_key_id: A}", "access_key_id and secret_key_file go together"),
        ("{url: 's3://bucket', endpoint: s3.example}", "endpoint is no URL"),
        ("{url: 's3://bucket', endpoint: 'https://s3.example/bucket'}", "endpoint is no URL"),
        ("{url: 's3://bucket', endpoint: 'http://s3.example'}", "http:// is for this machine only"),
        ("{url: 's3://bucket', region: 'EU west'}", "region has small letters"),
        ("{url: 's3://bucket', encryption: rot13}", "encryption is AES256 or aws:kms"),
        ("{url: 's3://bucket', encryption: AES256, kms_key_id: k}", "kms_key_id goes with"),
        ("{url: 'https://h/x', endpoint: 'https://s3.example'}", "endpoint does not belong here"),
        ("{url: 'dicom://A@h:1', hours: never}", "hours are spans of a day"),
        ("{url: 'dicom://A@h:1', hours: []}", "hours is empty"),
        ("{url: 'dicom://A@h:1', zone: Europe/Berlin}", "zone without hours"),
    ],
)
def test_what_does_not_fit_is_a_fault_that_quotes_no_secret(entry: str, says: str) -> None:
    found, faults = resolved(f"a: {entry}")
    assert found is None
    (fault,) = faults
    assert says in fault
    assert "secret" not in fault.replace("secret_key", "")


def test_a_bucket_says_where_it_is_and_who_we_are_there() -> None:
    found, faults = resolved(
        "a: {url: 's3://research/ct/', endpoint: 'https://s3.example:9000/', region: eu-central-1, access_key_id: GATE,"
        " secret_key_file: s3.secret, encryption: 'aws:kms', kms_key_id: alias/research, ca_file: ca.pem}"
    )
    assert faults == []
    assert found.url == "s3://research/ct"  # type: ignore[attr-defined]
    store = Store("https://s3.example:9000", "eu-central-1", "aws:kms", "alias/research")
    tls = TlsFiles(ca_file=HERE / "ca.pem")
    assert found.access == Access(tls, user="GATE", password_file=HERE / "s3.secret", store=store)  # type: ignore[attr-defined]
    assert Store(region="eu-central-1").url == "https://s3.eu-central-1.amazonaws.com"


def test_hours_stand_beside_any_url() -> None:
    found, faults = resolved("a: {url: 'folder:x', hours: ['Sat-Sun 00:00-24:00'], zone: Europe/Berlin}")
    assert faults == []
    hours = Hours((Span(frozenset({5, 6}), 0, 1440),), "Europe/Berlin")
    assert found.hours == hours  # type: ignore[attr-defined]


def sources(text: str) -> tuple[dict[str, Source], list[str]]:
    document = Document("destinations.yaml")
    parse_document(document, text.encode())
    found = resolve_sources(document, HERE)
    return found, [fault.says for fault in document.faults]


def test_sources_are_no_destinations() -> None:
    text = (
        "a: folder:x\nsources:\n  pacs: {url: 'dicom://PACS@10.0.0.7:104', move_to: BULK, studies_per_hour: 120,"
        " associations: 2, hours: '20:00-06:00'}\n"
        "  plain: {url: 'dicom-tls://P@h:2762', ca_file: ca.pem, retrieve: get}"
    )
    document = Document("destinations.yaml")
    parse_document(document, text.encode())
    assert list(resolve_destinations(document, HERE)) == ["a"]
    found, faults = sources(text)
    assert (faults, document.faults) == ([], [])
    pacs = found["pacs"]
    assert (pacs.retrieve, pacs.move_to, pacs.studies_per_hour, pacs.associations) == ("move", "BULK", 120, 2)
    assert pacs.hours == Hours((Span(frozenset(range(7)), 1200, 360),))
    assert found["plain"].access == Access(TlsFiles(ca_file=HERE / "ca.pem"))
    assert (found["plain"].retrieve, found["plain"].studies_per_hour, found["plain"].associations) == ("get", 60, 1)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("x", "a source needs url:"),
        ("{url: 'https://h/x'}", "asked by DICOM"),
        ("{url: 'dicom://A@h:1', password: secret}", "password does not belong here"),
        ("{url: 'dicom://A@h:1', ca_file: x}", "ca_file does not belong here"),
        ("{url: 'dicom://A@h:1', retrieve: take}", "retrieve is move or get"),
        ("{url: 'dicom://A@h:1', retrieve: get, move_to: B}", "goes with retrieve: move"),
        ("{url: 'dicom://A@h:1', move_to: SEVENTEENLETTERSX}", "an AE title has"),
        ("{url: 'dicom://A@h:1', studies_per_hour: 0}", "studies_per_hour is a number"),
        ("{url: 'dicom://A@h:1', associations: true}", "associations is a number"),
        ("{url: 'dicom://A@h:1', associations: 17}", "associations is a number"),
        ("{url: 'dicom://A@h:1', hours: x}", "hours are spans"),
    ],
)
def test_what_a_source_cannot_have_is_a_fault(entry: str, says: str) -> None:
    found, faults = sources(f"sources: {{pacs: {entry}}}")
    assert found == {}
    (fault,) = faults
    assert says in fault
    assert "secret" not in fault
