"""`route echo` says what is wrong with a destination, and whose mistake it is."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from pynetdicom import AE, evt

from gateway.settings import SHIPPED_POLICIES
from tests.certificates import Authority
from tests.forward.archives import archive as secure_archive
from tests.forward.web_archives import web_archive


@contextmanager
def archive(*, called: bool = False, calling: tuple[str, ...] = (), status: int = 0x0000) -> Iterator[int]:
    ae = AE(ae_title="ARCHIVE")
    ae.add_supported_context("1.2.840.10008.1.1")
    ae.require_called_aet = called
    ae.require_calling_aet = list(calling)
    server = ae.start_server(("127.0.0.1", 0), block=False, evt_handlers=[(evt.EVT_C_ECHO, lambda _event: status)])
    assert server is not None
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


@contextmanager
def listener(answer: Callable[[socket.socket], None] | None) -> Iterator[int]:
    """A port that takes connections and says what `answer` does, or nothing."""
    door = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def take() -> None:
        while True:
            try:
                link, _ = door.accept()
            except OSError:
                return
            held.append(link)
            if answer is not None:
                answer(link)
                link.close()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield door.getsockname()[1]
    finally:
        door.shutdown(socket.SHUT_RDWR)
        door.close()
        for link in held:
            link.close()
        thread.join(5)


def asked(command: Command, folder: Path, url: str | dict[str, str], *more: object) -> tuple[int, dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    (folder / "destinations.yaml").write_text(json.dumps({"there": url}))
    ran = command("route", "echo", "--policies", folder, "--json", "--timeout", 1, *more)
    (answer,) = ran.json
    return ran.code, answer


def test_an_archive_that_answers(command: Command, tmp_path: Path) -> None:
    with archive(called=True, calling=("DEID",)) as port:
        code, answer = asked(command, tmp_path / "p", f"dicom://ARCHIVE@127.0.0.1:{port}")
    assert (code, answer["ok"], answer["state"]) == (0, True, "answers")
    assert "DEID" in answer["says"]


@pytest.mark.parametrize(
    ("options", "title", "state", "words"),
    [
        ({"called": True}, "ELSE", "wrong-ae", "it is not called ELSE: correct the AE title in destinations.yaml"),
        ({"calling": ("NOBODY",)}, "ARCHIVE", "unknown-ae", "it does not know DEID: register our AE title"),
        ({"status": 0x0122}, "ARCHIVE", "rejected", "0122"),
    ],
)
def test_an_archive_that_rejects_us_says_whose_mistake_it_is(
    command: Command, tmp_path: Path, options: dict[str, Any], title: str, state: str, words: str
) -> None:
    with archive(**options) as port:
        code, answer = asked(command, tmp_path / "p", f"dicom://{title}@127.0.0.1:{port}")
    assert (code, answer["state"]) == (3, state)
    assert words in answer["says"]


def test_a_port_that_is_closed_silent_or_speaks_something_else(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    assert asked(command, tmp_path / "p", f"dicom://A@127.0.0.1:{port}")[1]["state"] == "refused"
    with listener(None) as port:
        code, answer = asked(command, tmp_path / "p", f"dicom://A@127.0.0.1:{port}")
        assert (code, answer["state"]) == (3, "silent")
        assert answer["seconds"] < 5
    with listener(lambda link: link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        assert asked(command, tmp_path / "p", f"dicom://A@127.0.0.1:{port}")[1]["state"] == "lost"
    unknown = asked(command, tmp_path / "p", "dicom://A@no-such-host.invalid:104")[1]
    assert (unknown["state"], "no-such-host.invalid" in unknown["says"]) == ("unreachable", True)


def test_folders_are_looked_at_and_not_made(command: Command, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert asked(command, tmp_path / "p", f"folder:{tmp_path / 'there'}")[1]["state"] == "writable"
    code, answer = asked(command, tmp_path / "p", f"folder:{tmp_path / 'not/yet'}")
    assert (code, answer["state"], (tmp_path / "not").exists()) == (0, "writable", False)
    (tmp_path / "file").write_text("")
    for path in ("file", "file/below"):
        code, answer = asked(command, tmp_path / "p", f"folder:{tmp_path / path}")
        assert (code, answer["state"]) == (3, "not-writable")


def test_one_may_be_named_and_an_unknown_name_is_refused(command: Command, tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    shutil.copytree(SHIPPED_POLICIES, policies, ignore=shutil.ignore_patterns("__pycache__"))
    (policies / "routes.yaml").write_text("routes: nonsense\n")  # somebody is just editing it
    ran = command("route", "echo", "local-folder", "--policies", policies, "--json")
    assert [answer["destination"] for answer in ran.json] == ["local-folder"]
    ran = command("route", "echo", "local-foldr", "--policies", policies)
    assert (ran.code, "did you mean local-folder?" in ran.err) == (2, True)
    (policies / "destinations.yaml").write_text("a: ftp://x\n")
    assert command("route", "echo", "--policies", policies).code == 2


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [(200, "answers", "DICOMweb"), (401, "rejected", "token_file"), (404, "rejected", "path"), (503, "busy", "503")],
)
def test_a_web_archive_says_whether_it_lets_us_in(
    command: Command, tmp_path: Path, status: int, state: str, words: str
) -> None:
    with web_archive(probe_status=status) as there:
        code, answer = asked(command, tmp_path / "p", there.url)
    assert (code, answer["state"]) == (0 if status == 200 else 3, state)
    assert words in answer["says"]
    assert there.requests == []


def test_an_archive_over_tls_answers_or_is_not_believed(command: Command, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    pair = authority.issue("archive", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with secure_archive([], tls=context) as there:
        url = f"dicom-tls://ARCHIVE@127.0.0.1:{there.port}"
        code, answer = asked(command, tmp_path / "p", {"url": url, "ca_file": str(authority.file)})
        assert (code, answer["state"]) == (0, "answers")
        code, answer = asked(command, tmp_path / "p", url)
        assert (code, answer["state"]) == (3, "untrusted")
        assert "certificate" in answer["says"]
        code, answer = asked(command, tmp_path / "p", {"url": url, "ca_file": "gone.pem"})
        assert (code, answer["state"]) == (3, "no-access")
        assert "gone.pem" in answer["says"]


def test_nothing_listens_where_a_web_archive_should(command: Command, tmp_path: Path) -> None:
    code, answer = asked(command, tmp_path / "p", "https://127.0.0.1:9/dicom-web")
    assert (code, answer["state"]) == (3, "unreachable")
