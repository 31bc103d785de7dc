"""The README's account of a shipped policy is what the command says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.cli import run

README = Path(__file__).resolve().parents[2] / "README.md"
SAYS = re.compile(
    r"^`deid-gateway (policy explain [^`]+)` says of the shipped policy:\n\n((?:    .*\n)+)", re.MULTILINE
)
CONTINUED = "\n      "


def shown() -> tuple[list[str], list[str]]:
    """The command in the README, and its sentences there: lines that are indented further go on from the one before."""
    match = SAYS.search(README.read_text("utf-8"))
    assert match is not None, "the README does not show what policy explain says"
    text = match[2].replace(CONTINUED, " ")
    return match[1].split(), [line.strip() for line in text.splitlines()]


def test_the_readme_shows_what_policy_explain_says(capsys: pytest.CaptureFixture[str]) -> None:
    """`…` is a digest within a sentence, or sentences that are left out. When this fails, the README is old."""
    command, sentences = shown()
    assert run(command) == 0
    said = [line.strip() for line in capsys.readouterr().out.splitlines()]
    pattern = "".join(
        "(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in sentences
    )
    whole = "\n".join(said) + "\n"
    assert re.fullmatch(pattern, whole), f"the README should say:\n{whole}"


def test_the_readme_shows_most_of_the_sentences_about_the_header() -> None:
    _, sentences = shown()
    assert sum(line != "…" for line in sentences) >= 8
    assert sentences.count("…") <= 2


def test_every_policy_command_is_in_the_readme() -> None:
    from gateway.cli.policy import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    text = README.read_text("utf-8")
    assert [name for name in names if f"deid-gateway policy {name}" not in text] == []
