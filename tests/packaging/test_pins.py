"""constraints.txt pins all that pyproject.toml asks for, within its ranges; every licence is one we may ship with."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.sbom import closure

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = "deid-gateway"

PERMISSIVE = re.compile(r"\b(Apache|MIT|BSD|ISC|PSF|Python Software Foundation|MPL[- ]2\.0)", re.IGNORECASE)
# LGPL: used as a library, unmodified, replaceable by the user; only with the extra [cluster].
LGPL = {"psycopg", "psycopg-binary"}


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


def requirements(texts: list[str]) -> Iterator[Requirement]:
    for requirement in map(Requirement, texts):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def test_every_range_holds_its_pin() -> None:
    wanted = [
        *PROJECT["dependencies"],
        *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
    ]
    for requirement in requirements(wanted):
        pin = pins().get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement.name} is not pinned; run make pin"
        assert requirement.specifier.contains(pin, prereleases=True), f"{requirement} does not allow {pin}"


def test_everything_that_ours_need_is_pinned_too() -> None:
    extras = [text for name in ("cluster", "dev", "learn", "bench") for text in PROJECT["optional-dependencies"][name]]
    names = [str(requirement) for requirement in requirements([*PROJECT["dependencies"], *extras])]
    assert closure([re.sub(r";.*", "", name) for name in names]) - set(pins()) == set()


def test_a_pin_is_one_exact_version_and_the_list_is_sorted() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(lines)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)


def licence(name: str) -> str:
    metadata = distribution(name).metadata
    classifiers = [text for text in metadata.get_all("Classifier") or [] if text.startswith("License ::")]
    # The field `License` may hold a whole licence text; its first line names it.
    plain = (metadata.get("License") or "").strip().splitlines()[:1]
    return "; ".join([metadata.get("License-Expression") or "", *classifiers, *plain])


def runtime() -> list[str]:
    try:
        wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cluster"]]
        return sorted(closure([str(requirement) for requirement in requirements(wanted)]))
    except PackageNotFoundError as missing:
        pytest.fail(f"{missing} is not installed")


@pytest.mark.parametrize("name", runtime())
def test_the_licence_of_every_runtime_dependency_is_permissive_or_noted(name: str) -> None:
    text = licence(name)
    if name in LGPL:
        assert "Lesser General Public License" in text or "LGPL" in text
    else:
        assert PERMISSIVE.search(text), f"{name}: {text or 'no licence in its metadata'}"
        assert not re.search(r"\bA?GPL|Affero", text)


def test_the_licence_file_is_the_one_that_is_declared() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]


def test_make_help_lists_every_command() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^  make ([a-z-]+)", listed, flags=re.MULTILINE))
    phony = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1].split())  # type: ignore[index]
    assert names == phony
    assert {"demo", "test", "serve", "lint", "bench", "setup"} <= names
