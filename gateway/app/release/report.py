"""The report of one release for a data-protection file: what was done, what was measured on whom, and what was not.

It claims no anonymity. Every figure is the one that the gate decided by, as tables and ledger hold it; the three
headings isolation, linkage and inference are the criteria by which European authorities judge (WP 216; EDPB).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from gateway.app.document.blocks import Block, Bullets, Code, Document, Facts, Heading, Table, Words
from gateway.app.document.html import to_html
from gateway.app.document.pdf import to_pdf
from gateway.app.release import report_words as words
from gateway.app.release.dossier import Dossier, by_level, dossier_of
from gateway.app.release.report_figures import criteria, history
from gateway.app.release.report_strata import groups_told
from gateway.database import Database
from gateway.durable import make_folder, writing
from gateway.errors import REASONS
from gateway.policy.explain import explain_sections
from gateway.settings import Home, Settings


def write_report(home: Home, settings: Settings, database: Database, name: str, out: Path) -> tuple[Path, Path]:
    """Write OUT/NAME.html and OUT/NAME.pdf (0600, whole or not at all). Raises UsageError for an unknown release."""
    document = document_of(dossier_of(home, settings, database, name), time.time())
    make_folder(out)
    page, sheets = out / f"{name}.html", out / f"{name}.pdf"
    for path, data in ((page, to_html(document).encode()), (sheets, to_pdf(document))):
        with writing(path) as file:
            file.write(data)
    return page, sheets


def document_of(dossier: Dossier, now: float) -> Document:
    """The report as blocks. `now` is in UTC seconds."""
    release = dossier.release
    parts: tuple[Iterator[Block], ...] = (
        _summary(dossier, now),
        _cohort(dossier),
        criteria(dossier),
        groups_told(dossier),
        _removed(dossier),
        _unassessed(dossier),
        history(dossier),
        _attackers(dossier),
        _policy(dossier),
    )
    foot = f"{release.name}, policy digest {release.policy_digest[:16]}, written {_moment(now)}. No claim of anonymity."
    return Document(f"Release {release.name}: risk report", foot, tuple(block for part in parts for block in part))


def _summary(dossier: Dossier, now: float) -> Iterator[Block]:
    release = dossier.release
    yield Words(words.NO_CLAIM, "notice")
    yield Words(words.STATES.get(release.state, release.state))
    if release.reason:
        reason = REASONS.get(release.reason)
        says = f": {reason.says}" if reason is not None else ""
        where = f" ({release.at})" if release.at else ""
        yield Words(f"Reason: {release.reason}{says}{where}.")
    rows = [
        ("Release", release.name),
        ("State", release.state),
        ("Project", release.project),
        ("Destination", release.destination),
        ("Policy", release.policy),
        ("Policy digest", f"sha256 {release.policy_digest}"),
        (
            "Approved by",
            "; ".join(f"{by} ({role}), {day}: {why}" for by, role, day, why in dossier.approvals)
            or "no signature is on file",
        ),
        ("Opened", _moment(release.opened_at)),
        ("Closed", _moment(release.closed_at) if release.closed_at else "not yet"),
        *((words.EVENTS.get(one.event, one.event), _line(one)) for one in dossier.decided),
        ("Written", f"{_moment(now)} by deid-gateway {version('deid-gateway')}"),
    ]
    yield Facts(tuple(rows))


def _line(one: Any) -> str:
    by = f" by {one.actor}: {one.said}" if one.actor else ""
    return f"ledger line {one.line}, {_moment(one.time)}{by}"


def _cohort(dossier: Dossier) -> Iterator[Block]:
    content = dossier.content
    yield Heading("Cohort")
    yield Facts(
        (
            ("People", str(content.people)),
            ("Studies", str(content.studies)),
            (
                "Studies by state now",
                ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in sorted(content.states.items())) or "none",
            ),
            (
                "Instances",
                str(max((did.get("instances", 0) for did in content.stages.values()), default=0) + content.dropped),
            ),
            ("Instances left out by a stage", str(content.dropped)),
            ("Studies let go by a person after review", str(content.reviewed)),
            ("Times judged", str(dossier.release.looks)),
        )
    )
    looks = next((one.looks for one in reversed(dossier.decided) if one.looks), {})
    if looks:
        told = ", ".join(f"{words.SCOPES[scope]}: look {number}" for scope, number in sorted(looks.items()))
        yield Words(f"{words.LOOKS} In the last judgement: {told}.", "soft")


def _removed(dossier: Dossier) -> Iterator[Block]:
    yield Heading("What was removed or changed")
    yield Words(words.REMOVED)
    rows = []
    for stage, did in sorted(dossier.content.stages.items()):
        name, _, number = stage.partition("@")
        for what, count in sorted(did.items()):
            if what != "instances":
                rows.append((name.replace("_", " "), number, words.counted(name, what), str(count)))
        if set(did) <= {"instances"}:
            rows.append(
                (name.replace("_", " "), number, "nothing to change", f"in {did.get('instances', 0)} instances")
            )
    if rows:
        yield Table(
            "Over all instances of the release.", ("Stage", "Version", "What", "Count"), tuple(rows), (2, 0.8, 4.5, 1.2)
        )
    else:
        yield Words("Nothing is in this release.", "soft")
    yield Heading("Levels", 3)
    escalate = dossier.policy.escalate if dossier.policy is not None else None
    if escalate is None:
        yield Words(words.NO_LEVELS)
    else:
        levels = ", ".join(f"{level:g}" for level in escalate.levels)
        yield Words(
            f"{escalate.stage} has the levels {levels}, the weakest first; at most {escalate.max_attempts} are tried "
            "for a study, and the first that passes is kept."
        )
        made = tuple((level, str(count)) for level, count in by_level(dossier.policy, dossier.content).items())
        if made:
            yield Table("Cleared studies of the release by level.", ("Level", "Studies"), made, (1, 1))


def _unassessed(dossier: Dossier) -> Iterator[Block]:
    yield Heading("What was not assessed")
    yield Words(words.UNASSESSED)
    unjudged = dossier.content.unjudged
    if unjudged:
        rows = tuple(
            (modality, aspect.replace("_", " "), str(count), reason, approver)
            for (aspect, modality, reason, approver), count in sorted(
                unjudged.items(), key=lambda one: (one[0][1], one[0][0])
            )
        )
        columns = ("Modality", "Aspect", "Instances", "Because", "Answers for it")
        yield Table("Let through unjudged, because the policy says so.", columns, rows, (0.8, 1.6, 0.9, 3, 1.8))
    else:
        yield Words("Everything that these studies carry was judged by some check.")
    yield Bullets(words.LIMITS)


def _attackers(dossier: Dossier) -> Iterator[Block]:
    if not dossier.cards:
        return
    yield Heading("Attackers")
    yield Words(words.ATTACKERS)
    for name, card in dossier.cards:
        yield Heading(name, 3)
        if card is None:
            yield Words("This card is not in the gateway any more.", "notice")
            continue
        people = ", ".join(
            f"{one.people} people of {one.cohort}" + (" (synthetic)" if one.synthetic else "")
            for one in card.trained_on
        )
        yield Facts(
            (
                ("Algorithm", card.algorithm.replace("_", " ")),
                ("Modalities", ", ".join(card.modalities)),
                ("Weights", f"sha256 {card.weights.sha256}" if card.weights is not None else "none: it is not trained"),
                ("Trained on", people or "nobody"),
                ("Intended use", card.intended_use),
                ("Limits", card.limits),
            )
        )


def _policy(dossier: Dossier) -> Iterator[Block]:
    yield Heading("Policy")
    yield Words(
        f"sha256 {dossier.release.policy_digest}, over the policy below and the tables of PS3.15 that it relies on."
    )
    if dossier.policy is None:
        yield Words(
            "This version of the gateway cannot read the policy any more; its snapshot lies in HOME/policies.", "notice"
        )
        return
    for section, lines in explain_sections(dossier.policy).items():
        yield Heading(section.capitalize(), 3)
        yield Bullets(tuple(line.strip() for line in lines))
    yield Heading("As a file, every default written out", 3)
    yield Code(yaml.safe_dump(dossier.policy.as_file(), sort_keys=False, allow_unicode=True, width=100))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
