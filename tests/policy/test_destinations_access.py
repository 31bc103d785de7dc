"""What may stand beside the URL of a destination."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.policy import Access
from gateway.policy.destinations import resolve_destinations
from gateway.policy.document import Document, parse_document
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
    ],
)
def test_what_does_not_fit_is_a_fault_that_quotes_no_secret(entry: str, says: str) -> None:
    found, faults = resolved(f"a: {entry}")
    assert found is None
    (fault,) = faults
    assert says in fault
    assert "secret" not in fault
