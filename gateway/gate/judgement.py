"""From originals and candidates to a judgement, and to the only thing that lets bytes leave: a sealed `Clearance`.

A study is cleared exactly when its encoding is true, every check of the policy passes, and every aspect that it carries
is judged by a check or accepted under `gate.not_assessed`. A recorded human review may clear what a check held, but not
a file that is not what it claims to be. Nothing else makes a clearance (DESIGN.md invariant 2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import Hold
from gateway.gate.aspects import account_for, count_aspects
from gateway.gate.attackers import Folders, folders_of
from gateway.gate.bytescan import scan_file, scanning_once
from gateway.gate.checks import CHECKS, StudyCheck
from gateway.gate.encoding import META_SYNTAX, SOP_CLASS, SOP_INSTANCE, judge_encoding
from gateway.gate.reading import Pair, judging, signatures
from gateway.policy import Policy
from gateway.study import Clearance, ClearedInstance, NotAssessed, Outcome, Verdict

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the gate says of one job. `reason` and `at` are "" exactly when `clearance` is there.

    `not_assessed` holds what a person accepted unjudged, and what nobody did: then reason and approver are "".
    `stronger_may_help` is true when nothing stands against the study but what a stronger level of a stage can change.
    """

    verdicts: tuple[Verdict, ...]
    not_assessed: tuple[NotAssessed, ...]
    reason: str
    at: str
    clearance: Clearance | None
    stronger_may_help: bool = False


@scanning_once()
def judge(
    pairs: Sequence[Pair],
    *,
    policy: Policy,
    job_key: str,
    destination: str,
    seal_key: bytes,
    folders: Folders | None = None,
    look: int = 1,
) -> Judgement:
    """Judge one job: all its originals and all that would be sent for them. `folders` is where cards lie, `look` counts
    how often the study was made and judged, this time included.

    What a release check of the policy judges over people is not left open here: the job waits for it.

    Raises Hold: "no_instances" for no pairs, "gate_failed" when something could not be read or judged, or when a file
    changed meanwhile. Never raises anything else for what is in the files.
    """
    before = _begin(pairs)
    checks = _checks(policy)
    cards = folders if folders is not None else folders_of()
    verdicts = (judge_encoding(pairs), *(_judged(check, pairs, policy, cards, look) for check in checks))
    judged = _aspects_judged(checks, policy)
    accepted, left_open = account_for(count_aspects(pairs), judged, policy.gate)
    failed = next((verdict for verdict in verdicts if verdict.outcome is not Outcome.PASS), None)
    if failed is not None:
        at = f"{failed.findings[0].instance} {failed.findings[0].where}" if failed.findings else failed.check
        helps = not left_open and all(_eased(verdict, policy) for verdict in verdicts)
        return Judgement(verdicts, (*accepted, *left_open), failed.reason, at, None, helps)
    if left_open:
        at = f"{left_open[0].aspect} of {left_open[0].instances} instances"
        return Judgement(verdicts, (*accepted, *left_open), "not_assessed", at, None)
    clearance = Clearance(
        job_key=job_key,
        policy_digest=policy.digest,
        destination=destination,
        issuer="gate",
        verdicts=_summary(verdicts),
        not_assessed=accepted,
        instances=tuple(map(describe, pairs)),
    ).sealed(seal_key)
    _end(pairs, before)
    return Judgement(verdicts, accepted, "", "", clearance)


@scanning_once()
def clear_by_review(
    pairs: Sequence[Pair],
    *,
    policy: Policy,
    job_key: str,
    destination: str,
    seal_key: bytes,
    reviewer: str,
    verdicts: Sequence[Verdict],
) -> Clearance:
    """Clear what a person looked at. `verdicts` are those of the gate; they go into the clearance as they were.

    Aspects that nobody accepted before are recorded as accepted by the reviewer. Raises Hold: "no_instances",
    "output_invalid" when a file is not what it claims to be, "gate_failed" when one cannot be read; ValueError without
    a reviewer.
    """
    if not reviewer.strip():
        raise ValueError("a review has a reviewer")
    before = _begin(pairs)
    encoding = judge_encoding(pairs)
    if encoding.outcome is not Outcome.PASS:
        raise Hold("output_invalid", at=f"{encoding.findings[0].instance} {encoding.findings[0].where}")
    judged = _aspects_judged(_checks(policy), policy)
    accepted, left_open = account_for(count_aspects(pairs), judged, policy.gate)
    issuer = f"review:{reviewer.strip()}"
    seen = tuple(NotAssessed(one.aspect, one.modality, one.instances, "seen in review", issuer) for one in left_open)
    clearance = Clearance(
        job_key=job_key,
        policy_digest=policy.digest,
        destination=destination,
        issuer=issuer,
        verdicts=_summary(verdicts or (encoding,)),
        not_assessed=(*accepted, *seen),
        instances=tuple(map(describe, pairs)),
    ).sealed(seal_key)
    _end(pairs, before)
    return clearance


def describe(pair: Pair) -> ClearedInstance:
    """Hashes of one candidate and what it is negotiated by. Reads in pieces of 1 MiB."""
    with judging(pair.name):
        scan = scan_file(pair.candidate)
        whole, dataset = hashlib.sha256(), hashlib.sha256()
        size = len(scan.file)
        for at in range(0, size, CHUNK_BYTES):
            whole.update(scan.file[at : at + CHUNK_BYTES])
        for at in range(scan.dataset_start, size, CHUNK_BYTES):
            dataset.update(scan.file[at : at + CHUNK_BYTES])
        return ClearedInstance(
            name=pair.name,
            sop_class_uid=scan.text(SOP_CLASS),
            sop_instance_uid=scan.text(SOP_INSTANCE),
            transfer_syntax_uid=scan.text(META_SYNTAX),
            sha256_dataset=dataset.hexdigest(),
            sha256_file=whole.hexdigest(),
            size_bytes=size,
        )


def _begin(pairs: Sequence[Pair]) -> tuple[tuple[int, ...], ...]:
    if not pairs:
        raise Hold("no_instances")
    names = [pair.name for pair in pairs]
    candidates = {pair.candidate for pair in pairs}
    if len(set(names)) != len(pairs) or len(candidates) != len(pairs):
        raise Hold("gate_failed", at="instances do not pair up with files")
    with judging("files"):
        return signatures(pairs)


def _end(pairs: Sequence[Pair], before: tuple[tuple[int, ...], ...]) -> None:
    with judging("files"):
        after = signatures(pairs)
    if before != after:
        raise Hold("gate_failed", at="a file changed while it was judged")


def _checks(policy: Policy) -> tuple[StudyCheck, ...]:
    """The policy's checks in its order. Raises Hold("gate_failed") for one that this build does not have."""
    for name, check in policy.gate.study.items():
        if name not in CHECKS or not isinstance(check, CHECKS[name]):
            raise Hold("gate_failed", at="a check of the policy is not in this build")
    return tuple(policy.gate.study.values())


def _judged(check: StudyCheck, pairs: Sequence[Pair], policy: Policy, folders: Folders, look: int) -> Verdict:
    by_cards = getattr(check, "judge_by_cards", None)
    verdict: Verdict = by_cards(pairs, policy, folders, look) if by_cards is not None else check.judge(pairs, policy)
    return verdict


def _eased(verdict: Verdict, policy: Policy) -> bool:
    """It passed, or failed for what it measures (not for want of evidence) and a stronger level can change that."""
    if verdict.outcome is Outcome.PASS:
        return True
    check = policy.gate.study.get(verdict.check)
    return getattr(check, "LEVELS_HELP", False) and verdict.reason == verdict.check


def _aspects_judged(checks: Sequence[StudyCheck], policy: Policy) -> frozenset[str]:
    """By a check of the study, or of the release that it waits for."""
    return frozenset[str]().union(*(check.judges for check in (*checks, *policy.gate.release.values())))


def _summary(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    return tuple(f"{verdict.check}={verdict.outcome}" for verdict in verdicts)
