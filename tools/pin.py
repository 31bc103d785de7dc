"""Write constraints.txt: every package that any extra needs, at the version that pip resolves today.

    make pin

Resolves only (pip's dry run); installs nothing. Look at the difference, run `make test`, commit both.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Every dependency of deid-gateway and of its extras, pinned; what `make setup` and the Dockerfile install with.
# Made by `make pin`, which runs
#     python -m pip install --dry-run --ignore-installed --report - '.[audit,bench,cluster,dev,dp,fuzz,learn]'
# pyproject.toml has the ranges that a change here must stay in.
"""


def resolved() -> dict[str, str]:
    """Name → version of all that pip would install for us, without us."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--disable-pip-version-check", "--report", "-", f"{ROOT}[audit,bench,cluster,dev,dp,fuzz,learn]"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)
    found = {entry["metadata"]["name"]: entry["metadata"]["version"] for entry in report["install"]}
    # PEP 503 names; without the local part, so that "2.13.0+cpu" pins every build of 2.13.0.
    return {re.sub(r"[-_.]+", "-", name).lower(): version.partition("+")[0] for name, version in found.items()}


def main() -> None:
    pins = resolved()
    del pins["deid-gateway"]
    pins.pop("pip", None)  # pip-audit needs it; the one that installs is there already
    pins["opencv-python-headless"] = pins["opencv-python"]  # what takes its place, see the Makefile
    lines = sorted(f"{name}=={version}\n" for name, version in pins.items())
    (ROOT / "constraints.txt").write_text(HEAD + "".join(lines), encoding="utf-8")
    print(f"constraints.txt: {len(pins)} packages")


if __name__ == "__main__":
    main()
