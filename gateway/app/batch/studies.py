"""What `scrub` works on and what it tells: studies found in the input, progress, and how each study ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gateway.app.batch.inputs import Input, path_text
from gateway.app.policy.registry import REGISTRY
from gateway.errors import UsageError
from gateway.policy import Policy, Registry, load_policy
from gateway.policy.document import close_match, read_document
from gateway.policy.folder import DESTINATIONS, ROUTES
from gateway.policy.names import name_fault
from gateway.pseudonyms import Keys
from gateway.study import State

NOT_DICOM = "not_dicom"
PLACE_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress bar shows: `phase` is examine or scrub, `done` of `total` files."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class StudyResult:
    """One study's end. `key` names it in the ledger and in HOME/held. `file` is the input file that a person would look
    at; for that person only, never logged or stored.
    """

    key: str
    file: Path
    instances: int
    state: State
    reason: str = ""
    at: str = ""
    sent: int = 0  # files in the target
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """A study of the input. `key` is the work of this run: these bytes under this policy into this folder; `places` are
    keyed hashes of where the files lie.
    """

    study: str
    key: str
    places: tuple[str, ...]
    inputs: tuple[Input, ...]

    def file_of(self, name: str) -> Path:
        """The file that a name of ours means, else the first one."""
        return next((entry.path for entry in self.inputs if entry.examined.name == name), self.inputs[0].path)


def by_study(inputs: Iterable[Input], keys: Keys, work_key: Callable[[Iterable[str]], str]) -> list[Batch]:
    """The studies among these files. One that tells no study stands alone."""
    groups: dict[str, list[Input]] = defaultdict(list)
    for entry in inputs:
        groups[entry.examined.study_key or keys.opaque("lone", path_text(entry.path))].append(entry)
    return [
        Batch(
            study,
            work_key(entry.contents for entry in group),
            tuple(sorted(keys.opaque("place", path_text(entry.path.resolve()))[:PLACE_CHARACTERS] for entry in group)),
            tuple(group),
        )
        for study, group in sorted(groups.items())
    ]


def find_policy(reference: str, folder: Callable[[], Path], registry: Registry = REGISTRY) -> Policy:
    """A policy by path, or in the policies folder by its name or its file's. Raises PolicyError or UsageError."""
    if Path(reference).is_file():
        return load_policy(Path(reference), registry)
    files = [path for path in sorted(folder().glob("*.yaml")) if path.name not in (ROUTES, DESTINATIONS)]
    names = {path: str(read_document(path).data.get("name", path.stem)) for path in files}
    found = [path for path in files if reference in (names[path], path.stem)]
    if len(found) > 1:
        raise UsageError(f"{reference} may be {' or '.join(map(str, found))}; name the file")
    if found:
        return load_policy(found[0], registry)
    known = sorted(set(names.values()))
    hint = close_match(reference, known) or f"a YAML file, or one of: {', '.join(known) or 'none'} ({folder()})"
    raise UsageError(f"no policy {reference}; {hint}")


def tables_beside(reference: str, folder: Path) -> Path:
    """Where the lookup and merge tables of a policy lie: in its own folder."""
    return Path(reference).absolute().parent if Path(reference).is_file() else folder


def require_project(name: str) -> str:
    """A project's name as routes.yaml would take it: another spelling means other pseudonyms. Raises UsageError."""
    fault = name_fault("the project", name)
    if fault:
        raise UsageError(fault)
    return name
