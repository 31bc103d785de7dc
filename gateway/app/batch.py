"""What `scrub` works on and what it tells: input files, studies found in them, and how each ended."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gateway.app.intake import Examined
from gateway.app.registry import REGISTRY
from gateway.errors import UsageError
from gateway.policy import Policy, load_policy
from gateway.settings import Settings
from gateway.study import State

NOT_DICOM = "not_dicom"


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress bar shows: `phase` is examine or scrub, `done` of `total` files."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class StudyResult:
    """One study's end. `first` is the input file that a person would look at; for the terminal only, never logged."""

    key: str
    first: Path
    instances: int
    state: State
    reason: str = ""
    at: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """A study of the input: where its files are and what intake says of them."""

    key: str
    paths: tuple[Path, ...]
    examined: tuple[Examined, ...]


def find_policy(reference: str, settings: Settings) -> Policy:
    """A policy by path, or by its name in the policies folder. Raises PolicyError or UsageError."""
    for path in (Path(reference), settings.policies / f"{reference}.yaml"):
        if path.is_file():
            return load_policy(path, REGISTRY)
    names = sorted(p.stem for p in settings.policies.glob("*.yaml") if p.stem not in {"routes", "destinations"})
    raise UsageError(f"no policy {reference}; a YAML file, or one of: {', '.join(names)}")


def input_files(source: Path, target: Path) -> list[Path]:
    """Regular files below `source`, sorted; links are not followed. Raises UsageError for overlapping folders."""
    if not source.exists():
        raise UsageError(f"{source} does not exist")
    inside, outside = target.resolve(), source.resolve()
    if inside == outside or inside.is_relative_to(outside) or (outside.is_dir() and outside.is_relative_to(inside)):
        raise UsageError("the target folder and the source folder must not contain each other")
    if source.is_file():
        return [source]
    return sorted(
        Path(folder) / name
        for folder, _, names in os.walk(source)
        for name in names
        if (Path(folder) / name).is_file() and not (Path(folder) / name).is_symlink()
    )
