"""The bill of materials of what runs: gateway with the extras of the image, and nothing that only tests need.

    make sbom        # writes build/sbom.cdx.json (CycloneDX 1.6)

Versions and licences are those installed here, which constraints.txt pins; the image adds Debian's packages to them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "sbom.cdx.json"
EXTRAS = ("cluster", "learn")  # those of the Dockerfile
STANDS_IN = {"opencv-python": "opencv-python-headless"}  # Makefile and Dockerfile put it there: no desktop libraries


def closure(requirements: list[str]) -> set[str]:
    """Canonical names of these requirements and of all that they need, as installed here."""
    found: set[str] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        name = canonicalize_name(STANDS_IN.get(name, name))
        if name in found:
            continue
        found.add(name)
        for text in distribution(name).requires or []:
            needed = Requirement(text)
            extras = requirement.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                todo.append(needed)
    return found


def runtime() -> set[str]:
    """Names of all packages that the image holds for us."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for extra in EXTRAS for text in project["optional-dependencies"][extra]]
    return closure([*project["dependencies"], *extras])


def bill() -> dict[str, Any]:
    """CycloneDX, of the runtime alone. Raises RuntimeError when a part of it is not installed."""
    command = [Path(sys.executable).with_name("cyclonedx-py"), "environment", "--no-validate", "--output-reproducible"]
    command += ["--pyproject", ROOT / "pyproject.toml", sys.executable]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    whole: dict[str, Any] = json.loads(ran.stdout)
    names = runtime()
    whole["components"] = [one for one in whole["components"] if canonicalize_name(one["name"]) in names]
    refs = {one["bom-ref"] for one in whole["components"]} | {whole["metadata"]["component"]["bom-ref"]}
    whole["dependencies"] = [
        {**one, "dependsOn": [ref for ref in one["dependsOn"] if ref in refs]} if "dependsOn" in one else one
        for one in whole["dependencies"]
        if one["ref"] in refs
    ]
    missing = names - {canonicalize_name(one["name"]) for one in whole["components"]}
    if missing:
        raise RuntimeError(f"not installed here: {', '.join(sorted(missing))}; run make setup-dev")
    return whole


def main() -> None:
    whole = bill()
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(whole))
    if fault is not None:
        sys.exit(f"what was written does not keep to CycloneDX: {fault}")
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(whole['components'])} packages")


if __name__ == "__main__":
    main()
