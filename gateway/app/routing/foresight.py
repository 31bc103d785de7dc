"""What can be said of a job before it runs: SOP classes that the header does not clean, and what no check would judge.

Stages and checks are not run. Only what surely stays is counted: private elements, overlays, icons and documents that
the header replaces may be gone when the gate looks, and are left out here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.errors import Hold, StudyError
from gateway.gate.aspects import DOCUMENT, MODALITY, account_for, aspects_of
from gateway.gate.bytescan import scan_file
from gateway.gate.reading import judging
from gateway.gate.walk import Leaf, tag_path
from gateway.header.admission import admit_class
from gateway.policy import HeaderPolicy, Policy
from gateway.policy.routes import Target

_SAMPLES = frozenset({0x7FE00008, 0x7FE00009, 0x7FE00010})

Counted = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Foreseen:
    """One job that the rule would make. `reason` is "" or why the header, or the gate's reader, would hold it.

    `holds`: (aspect, modality, instances) that no check judges and nobody accepted; `accepted`: those that somebody
    did. `judged_by` are checks, `stages` what runs before them: their word is not known here.
    """

    target: Target
    url: str
    reason: str = ""
    holds: Counted = ()
    accepted: Counted = ()
    judged_by: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    waits_for_people: int = 0


def foresee(target: Target, url: str, policy: Policy, files: Sequence[Path], sop_classes: Iterable[str]) -> Foreseen:
    """What a policy would do with a study of these files; without files, with its SOP classes as far as known."""
    checks = {**policy.gate.study, **policy.gate.release}
    judged = frozenset[str]().union(*(check.judges for check in checks.values()))
    job = Foreseen(
        target,
        url,
        judged_by=tuple(checks),
        stages=tuple(name for name, _ in policy.pixels),
        waits_for_people=policy.release.min_subjects if policy.release is not None else 0,
    )
    try:
        for sop_class in sorted(sop_classes):
            admit_class(sop_class, policy.header)
        counts = _count(files, policy.header)
    except StudyError as error:
        return replace(job, reason=error.reason)
    accepted, left_open = (
        tuple((one.aspect, one.modality, one.instances) for one in some)
        for some in account_for(counts, judged, policy.gate)
    )
    return replace(job, holds=left_open, accepted=accepted)


def _count(files: Sequence[Path], header: HeaderPolicy) -> Counter[tuple[str, str]]:
    """How many files will carry each (aspect, modality). Raises Hold("gate_failed")."""
    counts: Counter[tuple[str, str]] = Counter()
    for number, path in enumerate(files, 1):
        name = f"file {number}"
        with judging(name):
            scan = scan_file(path, original=True)
            if scan.malformed and not scan.ends_before_tail:
                raise Hold("gate_failed", at=name)
            found = aspects_of(replace(scan, leaves=[leaf for leaf in scan.leaves if _stays(leaf)]))
            if header.encapsulated == "replace":
                found -= {DOCUMENT}
            counts.update((aspect, scan.text(MODALITY)) for aspect in found)
    return counts


def _stays(leaf: Leaf) -> bool:
    group = leaf.tag >> 16
    is_icon = leaf.tag in _SAMPLES and not leaf.path.startswith(tag_path(leaf.tag))
    return not (group & 1 or 0x6000 <= group <= 0x60FF or is_icon)
