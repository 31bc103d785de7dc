"""Whether sanitised embeddings may leave: attacked by whoever holds originals and knows the method, level by level.

Each level is a look at the same people, so look k is given alpha · 6 / (π² k²) of the error (they sum to alpha).
Attackers are retrained on the sanitised form: the gallery goes through the erasure as well, and a discriminant head is
fitted on auxiliary people. The worst one decides. One that finds nobody on the originals is void: that is no evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.audit.comparison import WORKS_AT_P
from gateway.audit.embedding_attacks import Attacker, attackers
from gateway.audit.inputs import AuditInput
from gateway.audit.options import Options, Table, densities, measured, stream
from gateway.audit.sanitise import Sanitiser, fit
from gateway.errors import UsageError
from gateway.evidence import fixed_gallery, infer_within, linkability, score_pairs, score_same_scan
from gateway.policy.embedding_release import EmbeddingRelease, Level

ALPHA = 0.05
Tick = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Released:
    """`arrays`: sanitised embeddings by encoder, {} when no level passed. `level` counts from 0, -1 when none did."""

    arrays: dict[str, NDArray[np.float32]]
    level: int
    looks: int
    report: dict[str, Any]
    reasons: tuple[str, ...]


def release(
    data: AuditInput,
    auxiliary: AuditInput,
    policy: EmbeddingRelease,
    key: bytes,
    options: Options,
    tick: Tick,
    *,
    looks_before: int = 0,
) -> Released:
    """The first level that passes every limit. `key` draws the noise; `looks_before` is how often these people were
    looked at already. Raises UsageError when the two cohorts share people, or an attribute is not in both.
    """
    _check(data, auxiliary, policy)
    rows: Table = []
    probes: Table = []
    reasons: list[str] = _untouched(data, options)
    if data.people.count < policy.min_people:
        reasons.append(f"{data.people.count} people, and the policy wants {policy.min_people}")
    if reasons:
        return Released({}, -1, 0, _report(data, options, rows, probes, reasons), tuple(reasons))
    before = {encoder: _probed(data, encoder, None, policy, ALPHA, options) for encoder in data.embeddings}
    for index, level in enumerate(policy.levels):
        alpha = ALPHA * 6 / (pi**2 * (looks_before + index + 1) ** 2)
        arrays, here, failures = {}, [], []
        for encoder in data.embeddings:
            sanitiser = _fitted(auxiliary, encoder, policy, level)
            arrays[encoder] = sanitiser.released(data.embeddings[encoder], data.columns["scan"], key)
            label = {"level": index, **level.model_dump(), "encoder": encoder}
            against = list(attackers(data, auxiliary, encoder, sanitiser, arrays[encoder], key))
            for done, attacker in enumerate(against):
                tick(f"level {index}, {encoder}, {attacker[0]}", done, len(against))
                here.append({**label, **_attacked(data, attacker, policy, alpha, options)})
            after = _probed(data, encoder, arrays[encoder], policy, alpha, options)
            probes += [{**label, **row} for row in _rows_of(before[encoder], after, policy)]
        rows += here
        failures = [*_over(here, policy), *_inferred([row for row in probes if row["level"] == index])]
        if not failures:
            report = _report(data, options, rows, probes, [])
            return Released(arrays, index, index + 1, report, ())
        reasons = failures
    return Released({}, -1, len(policy.levels), _report(data, options, rows, probes, reasons), tuple(reasons))


def at_level(
    data: AuditInput, auxiliary: AuditInput, policy: EmbeddingRelease, key: bytes, level: int
) -> dict[str, NDArray[np.float32]]:
    """What was decided before, once more: the same arrays, and no further look at anybody."""
    _check(data, auxiliary, policy)
    return {
        encoder: _fitted(auxiliary, encoder, policy, policy.levels[level]).released(x, data.columns["scan"], key)
        for encoder, x in data.embeddings.items()
    }


def _check(data: AuditInput, auxiliary: AuditInput, policy: EmbeddingRelease) -> None:
    shared = set(data.columns["subject"]) & set(auxiliary.columns["subject"])
    if shared:
        raise UsageError(f"{len(shared)} people are auxiliary and released; whoever fits the method is not released")
    if auxiliary.people.count < 2:
        raise UsageError("the method and its attacker are fitted on auxiliary people; there is one of them")
    for name in (*policy.erase, *policy.limits.attribute_inference):
        for part, words in ((data, "the released people"), (auxiliary, "the auxiliary people")):
            if name not in part.columns:
                raise UsageError(f"the policy names {name}, and {words} have no such column")
    for encoder, array in data.embeddings.items():
        if encoder not in auxiliary.embeddings or auxiliary.embeddings[encoder].shape[1] != array.shape[1]:
            raise UsageError(f"the auxiliary people have no embeddings of {encoder} of that size")


def _untouched(data: AuditInput, o: Options) -> list[str]:
    """Why the originals say nothing, [] when attackers work on them."""
    void = []
    for encoder, x in data.embeddings.items():
        try:
            pairs = score_pairs(x, data.people, "cosine")
            if measured(pairs, o, encoder, "untouched").p > WORKS_AT_P:
                void.append(f"{encoder} links nobody on the originals: its silence proves nothing")
        except ValueError as error:
            void.append(f"{encoder}: {error}")
    return void


def _fitted(auxiliary: AuditInput, encoder: str, policy: EmbeddingRelease, level: Level) -> Sanitiser:
    concepts = [auxiliary.columns[name] for name in policy.erase]
    try:
        return fit(
            auxiliary.embeddings[encoder],
            auxiliary.people.subject,
            concepts,
            identity_directions=level.identity_directions,
            noise=level.noise,
        )
    except ValueError as error:
        raise UsageError(f"{encoder}: {error}") from None


def _attacked(
    data: AuditInput, attacker: Attacker, policy: EmbeddingRelease, alpha: float, o: Options
) -> dict[str, Any]:
    view, metric, attack, probes, gallery = attacker
    people = data.people
    row: dict[str, Any] = {"view": view, "metric": metric, "attack": attack, "alpha": alpha}
    draw = stream(o, view, metric, attack, f"{alpha:.6f}")
    try:
        if attack == "same_scan":
            pairs = score_same_scan(probes, gallery, people, metric)
        else:
            pairs = score_pairs(probes, people, metric, gallery=gallery)
        linked = linkability(
            pairs, draw, omega=o.omega, replicates=o.replicates, permutations=o.permutations, alpha=alpha
        )
        found = fixed_gallery(
            probes,
            people,
            metric,
            draw,
            gallery=gallery,
            size=policy.limits.rank1.gallery,
            draws=o.draws,
            same_scan=attack == "same_scan",
            alpha=alpha,
        )
    except ValueError as error:
        return {**row, "no_evidence": str(error)}
    return {**row, "d_sys": asdict(linked), "fixed_gallery": asdict(found), "densities": densities(pairs)}


def _probed(
    data: AuditInput, encoder: str, released: NDArray[Any] | None, policy: EmbeddingRelease, alpha: float, o: Options
) -> dict[str, dict[str, Any]]:
    """How well each attribute, and each column with a limit, is read from what is released, or from the originals
    (None)."""
    found: dict[str, dict[str, Any]] = {}
    x = data.embeddings[encoder] if released is None else released
    for name in dict.fromkeys((*data.attributes, *policy.limits.attribute_inference)):
        seed = int(stream(o, encoder, name, "probe").integers(1 << 31))
        times = {"replicates": o.replicates, "permutations": o.permutations, "trees": o.trees}
        try:
            found[name] = asdict(infer_within(x, data.people.subject, data.columns[name], seed, alpha=alpha, **times))
        except ValueError as error:
            found[name] = {"no_evidence": str(error)}
    return found


def _rows_of(before: dict[str, Any], after: dict[str, Any], policy: EmbeddingRelease) -> Iterator[dict[str, Any]]:
    """Attributes with a limit must not be readable; the others say what is left to use."""
    for name, was in before.items():
        row = {"attribute": name, "limit": policy.limits.attribute_inference.get(name)}
        lacking = was.get("no_evidence") or after[name].get("no_evidence")
        yield {**row, "no_evidence": lacking} if lacking else {**row, "before": was, "after": after[name]}


def _over(rows: Table, policy: EmbeddingRelease) -> Iterator[str]:
    """What breaks a limit of linkage, the worst attacker of each kind only."""
    lacking = dict.fromkeys(
        f"{row['attack'].replace('_', ' ')}: no evidence ({row['no_evidence']})" for row in rows if "no_evidence" in row
    )
    if lacking or not rows:
        yield from lacking or ("no attack was made: no evidence",)
        return
    limits: tuple[tuple[str, float, str, str], ...] = (
        ("linkability", policy.limits.linkability.max_excess_upper, "d_sys", "excess_upper"),
        ("rank1", policy.limits.rank1.max_upper, "fixed_gallery", "upper"),
    )
    for name, limit, table, bound in limits:
        worst = max(rows, key=lambda row: float(row[table][bound]))
        if worst[table][bound] > limit:
            who = f"{worst['encoder']}, {worst['view']}, {worst['metric']}, {worst['attack'].replace('_', ' ')}"
            yield f"{name}: {worst[table][bound]:.3f} over the limit {limit:g} ({who})"


def _inferred(rows: Table) -> Iterator[str]:
    for row in rows:
        if row["limit"] is None:
            continue
        if "no_evidence" in row:
            yield f"{row['attribute']}: no evidence ({row['no_evidence']})"
        elif row["after"]["upper"] > row["limit"]:
            yield f"{row['attribute']}: {row['after']['upper']:.3f} over the limit {row['limit']:g} ({row['encoder']})"


def _report(data: AuditInput, o: Options, rows: Table, probes: Table, reasons: Sequence[str]) -> dict[str, Any]:
    return {
        "kind": "embedding release",
        "synthetic": o.synthetic,
        "scans": len(data.people.subject),
        "people": data.people.count,
        "options": asdict(o),
        "passed": not reasons,
        "reasons": list(reasons),
        "tables": {"attacks": rows, "probes": probes},
    }
