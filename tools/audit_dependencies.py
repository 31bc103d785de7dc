"""Known vulnerabilities in what constraints.txt pins, by pip-audit.

    make audit-dependencies

Exit code 1 when there is one. Where the advisories cannot be reached, wholly or for some packages, that is said, and is
no failure: nothing was found because nothing was asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 600


def verdict(report: str) -> tuple[int, list[str]]:
    """Exit code and what to say of pip-audit's JSON; a report that is none means that nobody was reached."""
    try:
        entries: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 0, ["NOT AUDITED: the advisories cannot be reached from here; run it again where they can"]
    said, skipped, found = [], 0, 0
    for entry in entries:
        skipped += "skip_reason" in entry
        for flaw in entry.get("vulns", []):
            found += 1
            fixed = ", ".join(flaw["fix_versions"]) or "no version yet"
            said.append(f"{entry['name']} {entry['version']}: {flaw['id']}, mended in {fixed}")
    if skipped:
        said.append(f"NOT AUDITED: {skipped} of {len(entries)} packages, of which no advisories could be had")
    said.append(f"{found} known vulnerabilities in {len(entries) - skipped} packages")
    return int(found > 0), said


def main() -> int:
    command = [Path(sys.executable).with_name("pip-audit"), "--requirement", ROOT / "constraints.txt", "--no-deps"]
    command += ["--disable-pip", "--progress-spinner", "off", "--format", "json"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        report = ran.stdout
    except subprocess.TimeoutExpired:
        report = ""
    code, said = verdict(report)
    print("\n".join(said))
    return code


if __name__ == "__main__":
    sys.exit(main())
