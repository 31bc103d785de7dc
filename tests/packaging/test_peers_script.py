"""tools/install_peers.sh where nothing can be installed: it says so; only CI fails."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "install_peers.sh"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with what the script itself calls, no apt-get, and no dcmtk."""
    for name in ("ls", "tail", "rm", "mktemp"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    return tmp_path


def run(machine: Path, *, user: int, ci: str) -> subprocess.CompletedProcess[str]:
    (machine / "id").write_text(f"#!/bin/sh\necho {user}\n")
    (machine / "id").chmod(0o755)
    env = {"PATH": str(machine), "CI": ci}
    return subprocess.run(["/bin/sh", SCRIPT], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("user", "why"), [(1000, "not root"), (0, "no apt-get here")])
def test_a_missing_peer_is_named_with_why_it_was_not_installed(machine: Path, user: int, why: str) -> None:
    ran = run(machine, user=user, ci="")
    assert ran.returncode == 0
    assert "peers missing: dcmtk" in ran.stderr
    assert f"({why})" in ran.stderr
    assert "will be skipped" in ran.stderr


@pytest.mark.parametrize("user", [0, 1000])
def test_in_ci_a_missing_peer_is_a_failure(machine: Path, user: int) -> None:
    ran = run(machine, user=user, ci="true")
    assert ran.returncode == 1
    assert "peers missing: dcmtk" in ran.stderr
    assert "will be skipped" not in ran.stderr
