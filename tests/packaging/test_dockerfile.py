"""The image: what the Dockerfile promises, read from its instructions; there is no Docker engine here to build it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gateway.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
SECRET = re.compile(r"(key|token|secret|passw|credential)", re.IGNORECASE)


def instructions() -> list[tuple[str, str]]:
    """(INSTRUCTION, rest) in order; comments gone, continued lines joined."""
    text = "\n".join(line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", text)
    found = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(word.upper(), rest.strip()) for word, rest in found]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, FROM first."""
    split: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            split.append([])
        if split:
            split[-1].append((word, rest))
    return split


def of_last_stage(word: str) -> list[str]:
    return [rest for found, rest in stages()[-1] if found == word]


def environment() -> dict[str, str]:
    pairs = [pair.partition("=") for line in of_last_stage("ENV") for pair in shlex.split(line)]
    return {name: value for name, _, value in pairs}


def test_hadolint_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run(
        [linter, "--format", "json", "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (json.loads(ran.stdout), ran.returncode) == ([], 0)


def test_it_builds_in_one_stage_and_runs_in_another() -> None:
    assert len(stages()) == 2
    assert " AS build" in stages()[0][0][1]
    assert any(rest.startswith("--from=build ") for rest in of_last_stage("COPY"))
    assert not any("pip" in rest for rest in of_last_stage("RUN"))


def test_every_base_is_named_with_its_version() -> None:
    arguments = dict(rest.split("=", 1) for word, rest in instructions() if word == "ARG")
    for stage in stages():
        image = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], stage[0][1].split()[0])
        name, _, tag = image.partition(":")
        assert name == "python"
        assert re.fullmatch(r"3\.11\.\d+-slim-bookworm", tag)


def test_the_last_word_on_the_user_is_a_number_that_is_not_roots() -> None:
    user = of_last_stage("USER")
    assert len(user) == 1
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user[0])
    after = stages()[-1][[word for word, _ in stages()[-1]].index("USER") :]
    assert {word for word, _ in after} <= {"USER", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def test_nothing_is_fetched_and_no_folder_is_swept_in_whole() -> None:
    assert not [rest for word, rest in instructions() if word == "ADD"]
    copied = [rest.split() for word, rest in instructions() if word == "COPY"]
    assert not [words for words in copied if "." in words[:-1]]
    assert not [rest for word, rest in instructions() if word == "RUN" and re.search(r"\b(curl|wget|git)\b", rest)]


def test_no_secret_is_in_an_argument_a_variable_or_a_copied_file() -> None:
    for word, rest in instructions():
        if word in ("ARG", "ENV", "COPY", "LABEL"):
            assert not SECRET.search(rest), rest
        if word == "RUN":
            assert "deid-gateway init" not in rest  # a key made at build time would be everybody's key


def test_what_the_build_copies_is_let_through_and_nothing_else() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }
    assert copied == let_in
    for private in ("home", ".env", ".git", "master.key"):
        assert not any(fnmatch(private, rule) for rule in let_in)


def test_every_package_of_the_project_is_copied() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = [rest.split()[0] for word, rest in stages()[0] if word == "COPY"]
    for pattern in wanted:
        present = [path.name for path in ROOT.glob(pattern) if any(path.rglob("*.py")) or any(path.rglob("*.yaml"))]
        assert set(present) - {path.name for path in ROOT.glob("*.egg-info")} <= set(copied)


def test_the_pinned_versions_are_those_installed() -> None:
    (install,) = [rest for word, rest in stages()[0] if word == "RUN" and "pip install" in rest]
    assert "--constraint constraints.txt" in install
    assert "'.[cluster,learn]'" in install


@pytest.mark.parametrize(
    ("torch", "installed"),
    [
        ("cpu", ["--index-url https://download.pytorch.org/whl/cpu torch", ".[cluster,learn]"]),
        ("cuda", [".[cluster,learn]"]),
    ],
)
def test_torch_comes_with_cuda_when_asked_and_for_cpus_else(tmp_path: Path, torch: str, installed: list[str]) -> None:
    ran, calls = build_with(tmp_path, torch)
    assert ran.returncode == 0, ran.stderr
    installs = [call for call in calls if call.startswith("install") and "opencv" not in call]
    assert len(installs) == len(installed)
    for call, end in zip(installs, installed, strict=True):
        assert call.endswith(end)
        assert "--constraint constraints.txt" in call
    assert dict(rest.split("=", 1) for word, rest in stages()[0] if word == "ARG") == {"TORCH": "cpu"}


def test_another_torch_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    ran, calls = build_with(tmp_path, "rocm")
    assert (ran.returncode, calls) == (2, [])
    assert "TORCH is cpu or cuda" in ran.stderr


def build_with(folder: Path, torch: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The build's own shell line, with a pip that writes down what it is asked for."""
    (line,) = [rest for word, rest in stages()[0] if word == "RUN" and "pip install" in rest]
    asked, pip = folder / "asked", folder / "pip"
    asked.touch()
    pip.write_text(f'#!/bin/sh\necho "$*" >> {asked}\n')
    pip.chmod(0o755)
    command = ["/bin/sh", "-c", line.replace("/opt/deid/bin/pip", str(pip))]
    ran = subprocess.run(command, env={"TORCH": torch}, capture_output=True, text=True, check=False)
    return ran, asked.read_text().splitlines()


def test_it_listens_on_every_address_and_writes_to_the_volume_only() -> None:
    env = environment()
    assert {name for name in env if name.startswith("DEID_")} <= {
        *(f"DEID_{name.upper()}" for name in Settings.model_fields),
        "DEID_HOME",
    }
    assert (env["DEID_DICOM_HOST"], env["DEID_HTTP_HOST"]) == ("0.0.0.0", "0.0.0.0")
    assert json.loads(of_last_stage("VOLUME")[0]) == [env["DEID_HOME"]] == ["/var/lib/deid"]
    assert of_last_stage("EXPOSE") == [f"{env['DEID_DICOM_PORT']} {env['DEID_HTTP_PORT']}"]
    assert env["PYTHONDONTWRITEBYTECODE"] == "1"
    assert "DEID_ALLOWED_PEERS" not in env  # deny by default stays
    assert env["HOME"] == "/tmp"


def test_the_command_is_ours() -> None:
    assert json.loads(of_last_stage("ENTRYPOINT")[0]) == ["deid-gateway"]
    assert json.loads(of_last_stage("CMD")[0]) == ["serve"]
    labels = " ".join(of_last_stage("LABEL"))
    assert 'org.opencontainers.image.licenses="Apache-2.0"' in labels


class Answer(BaseHTTPRequestHandler):
    status = 200
    asked: str

    def do_GET(self) -> None:
        type(self).asked = self.path
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def health() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def check_health(port: int) -> int:
    (check,) = of_last_stage("HEALTHCHECK")
    command = json.loads(check[check.index("CMD ") + 4 :])
    assert command[0] == "python"
    env = {"DEID_HTTP_PORT": str(port), "http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
    return subprocess.run([sys.executable, *command[1:]], env=env, capture_output=True, check=False).returncode


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_the_health_check_says_what_healthz_says(
    health: HTTPServer, monkeypatch: pytest.MonkeyPatch, status: int, code: int
) -> None:
    monkeypatch.setattr(Answer, "status", status)
    assert check_health(health.server_address[1]) == code
    assert Answer.asked == "/healthz"


def test_the_health_check_fails_when_nobody_answers() -> None:
    assert check_health(1) == 1
