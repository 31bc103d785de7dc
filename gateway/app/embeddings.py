"""`embeddings release`: from two files of embeddings to one that may leave, or to reasons why not.

What was decided about the same input under the same policy is decided: a second run makes the same file without another
look. Looks at the same people under other policies count on, whatever their number, because each is a chance to pass.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gateway.audit import AuditInput, Options, read_inputs, write_report
from gateway.audit.embedding_release import at_level, release
from gateway.durable import make_folder, writing
from gateway.errors import UsageError
from gateway.ledger import Ledger
from gateway.policy.embedding_release import EmbeddingRelease, load_embedding_release
from gateway.pseudonyms import Keys, derive, master_key
from gateway.settings import Home, Settings

SENT, HELD = "embeddings_released", "embeddings_held"
EMBEDDINGS, METADATA = "embeddings.npz", "embeddings.csv"


@dataclass(frozen=True, slots=True)
class Ended:
    """`reasons` is empty exactly when the release was written. `page`: the report, None when nothing was measured."""

    people: int
    level: int
    reasons: tuple[str, ...]
    page: Path | None


@dataclass(frozen=True, slots=True)
class Sources:
    """The released people, the people that the method is fitted on, and the metadata of both."""

    embeddings: Path
    auxiliary: Path
    metadata: Path


def release_embeddings(
    home: Home,
    settings: Settings,
    sources: Sources,
    policy_file: Path,
    out: Path,
    tick: Callable[[str, int, int], None],
    options: Options,
) -> Ended:
    """Decide and write. The seed of `options` follows from input and key. Raises PolicyError, UsageError or
    EnvironmentFault.
    """
    policy = load_embedding_release(policy_file)
    data, auxiliary = (read_inputs(path, sources.metadata) for path in (sources.embeddings, sources.auxiliary))
    absent = [name for name in policy.export if name not in data.columns]
    if absent:
        raise UsageError(f"the policy exports {', '.join(absent)}, and {sources.metadata} has no such column")
    keys = Keys(master_key(home, settings))
    ledger = Ledger(home.ledger, keys.ledger)
    people = keys.opaque("embedding-people", *sorted(set(data.columns["subject"])))
    content = keys.opaque("embedding-release", _digest(data), _digest(auxiliary), policy.digest)
    noise = derive(keys.master, "embedding-noise", content)
    earlier = [line for line in ledger.lines() if line["event"] in (SENT, HELD) and line["people"] == people]
    same = next((line for line in earlier if line["content"] == content), None)
    if same is not None:
        return _again(same, data, auxiliary, policy, keys, noise, out)
    options = replace(options, seed=int(keys.opaque("embedding-audit", content)[:8], 16))
    looks = sum(line["looks"] for line in earlier)
    found = release(data, auxiliary, policy, noise, options, tick, looks_before=looks)
    _, page = write_report(found.report, out)
    ledger.append(
        HELD if found.reasons else SENT,
        f"embeddings/{content}",
        people=people,
        content=content,
        policy=policy.name,
        policy_digest=policy.digest,
        level=found.level,
        looks=found.looks,
        reasons=list(found.reasons),
        scans=len(data.columns["scan"]),
        subjects=data.people.count,
    )
    if not found.reasons:
        _write(found.arrays, data, policy, keys, out)
    return Ended(data.people.count, found.level, found.reasons, page)


def _again(
    line: dict[str, Any],
    data: AuditInput,
    auxiliary: AuditInput,
    policy: EmbeddingRelease,
    keys: Keys,
    noise: bytes,
    out: Path,
) -> Ended:
    if line["event"] == SENT:
        _write(at_level(data, auxiliary, policy, noise, line["level"]), data, policy, keys, out)
    return Ended(data.people.count, line["level"], tuple(line["reasons"]), None)


def _write(arrays: dict[str, Any], data: AuditInput, policy: EmbeddingRelease, keys: Keys, out: Path) -> None:
    """Names become keyed ones, and rows stand in their order: the order of the input would be a name as well."""
    make_folder(out)
    scans = [keys.opaque("embedding-scan", policy.name, scan) for scan in data.columns["scan"]]
    people = [keys.opaque("embedding-subject", policy.name, subject) for subject in data.columns["subject"]]
    order = sorted(range(len(scans)), key=scans.__getitem__)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["scan", "subject", *policy.export])
    writer.writerows([scans[i], people[i], *(data.columns[name][i] for name in policy.export)] for i in order)
    with writing(out / METADATA) as file:
        file.write(table.getvalue().encode())
    with writing(out / EMBEDDINGS) as file:
        np.savez(file, scan=np.array([scans[i] for i in order]), **{name: x[order] for name, x in arrays.items()})


def _digest(data: AuditInput) -> str:
    """sha256 over everything that the decision follows from."""
    digest = hashlib.sha256()
    for name, column in sorted(data.columns.items()):
        digest.update(repr((name, column)).encode())
    for name, array in sorted(data.embeddings.items()):
        digest.update(repr((name, array.shape)).encode() + np.ascontiguousarray(array, np.float32).tobytes())
    return digest.hexdigest()
