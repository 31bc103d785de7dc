"""Starter policies: whole, tested policies to begin from, in policies/starters. Their comments say what for."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.durable import writing
from gateway.errors import Fault, PolicyError, UsageError
from gateway.policy import Registry, load_policy
from gateway.policy.document import close_match
from gateway.policy.names import name_fault
from gateway.settings import SHIPPED_POLICIES

STARTERS = SHIPPED_POLICIES / "starters"
_NAME = re.compile(r"^name: .*$", re.MULTILINE)
_SCHEMA = "$schema=../schema.json"


def starters() -> dict[str, str]:
    """Name -> the first sentence of its comment."""
    return {path.stem: _purpose(path.read_text("utf-8")) for path in sorted(STARTERS.glob("*.yaml"))}


def _purpose(text: str) -> str:
    comment = " ".join(line[1:].strip() for line in text.splitlines()[2:] if line.startswith("#"))
    return comment.partition(". ")[0].strip().removesuffix(".") + "."


def begin(name: str, starter: str, folder: Path, registry: Registry) -> Path:
    """Write `folder`/NAME.yaml from a starter, under that name, its comments with it.

    Raises UsageError for an unknown starter, a name that is none or is taken; PolicyError where the folder has a policy
    of this name in another file.
    """
    known = starters()
    if starter not in known:
        hint = close_match(starter, known) or f"there is: {', '.join(known)}"
        raise UsageError(f"no starter {starter}; {hint}")
    says = name_fault("the name of a policy", name)
    if says or name in {"routes", "destinations"}:
        raise UsageError(says or f"{name}.yaml is a file of its own kind; take another name")
    target = folder / f"{name}.yaml"
    if target.exists():
        raise UsageError(f"{target} is there already; take another name")
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; copy the shipped policies there first, or set DEID_POLICIES")
    _require_free(name, folder)
    text = (STARTERS / f"{starter}.yaml").read_text("utf-8")
    named = _NAME.sub(f"name: {name}", text, count=1).replace(_SCHEMA, "$schema=schema.json", 1)
    with writing(target) as file:
        file.write(named.encode())
    target.chmod(0o644)  # a policy is read by people, and by the gateway's user
    load_policy(target, registry)
    return target


def _require_free(name: str, folder: Path) -> None:
    for path in sorted(folder.glob("*.yaml")):
        found = _NAME.search(path.read_text("utf-8", errors="replace"))
        if found is not None and found.group().removeprefix("name:").strip().strip("'\"") == name:
            raise PolicyError([Fault(str(path), 0, f"has a policy named {name} already", "take another name")])
