"""What is written down, for the review page: policies by digest, what differs between them, releases, who did what."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.app.document.blocks import LESS, WIDTH, Bar, Dot, Label, Line, drawn, top_of
from gateway.app.document.blocks import Chart as Bars
from gateway.app.document.html import to_html
from gateway.app.document.pdf import to_pdf
from gateway.app.parts import Parts
from gateway.app.person.vault import open_records
from gateway.app.preview.values import legible
from gateway.app.release.dossier import EARLIER, by_level, dossier_of
from gateway.app.release.report import document_of
from gateway.app.release.report_figures import history
from gateway.app.release.report_strata import row_of, worst_of
from gateway.app.review import history as review_history
from gateway.app.review.wishes import page_actor
from gateway.database import ReleaseRow
from gateway.errors import REASONS, Hold, UsageError
from gateway.policy import Policy
from gateway.policy.difference import differences
from gateway.policy.explain import explain_sections
from gateway.review.desk import Person, VaultRecord
from gateway.review.records import (
    Changed,
    Chart,
    Event,
    Figure,
    Nearest,
    PolicyText,
    PolicyVersion,
    ReleaseDetail,
    ReleaseView,
    Sought,
)

MOST_DRAWN = 3.0  # times a limit


class Records:
    """Reads one gateway."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def policies(self) -> list[PolicyText]:
        current = self._parts.policies.current.policies
        return [PolicyText(name, policy.digest, explain_sections(policy)) for name, policy in sorted(current.items())]

    def versions(self) -> list[PolicyVersion]:
        """Every policy that a study ever began under, newest first, by the snapshots in the home."""
        current = {policy.digest for policy in self._parts.policies.current.policies.values()}
        found = []
        for path in self._parts.home.policy_snapshots.glob("*.json"):
            try:
                name = self._parts.policies.of(path.stem).name
            except Hold:  # this build reads it differently, or it was changed: no study goes on under it
                name = ""
            found.append(PolicyVersion(name, path.stem, path.stat().st_mtime, in_force=path.stem in current))
        return sorted(found, key=lambda version: -version.since)

    def difference(self, old: str, new: str) -> list[Changed]:
        """Raises UsageError for a digest that is not known, Hold for a policy that cannot be read any more."""
        found = differences(self._policy(old), self._policy(new))
        return [
            Changed(one.section, one.gone, one.come, tuple((key.key, key.old, key.new) for key in one.keys))
            for one in found
        ]

    def _policy(self, digest: str) -> Policy:
        for policy in self._parts.policies.current.policies.values():
            if policy.digest == digest:
                return policy
        if digest not in {path.stem for path in self._parts.home.policy_snapshots.glob("*.json")}:
            raise UsageError("no study here ever began under a policy with that digest")
        return self._parts.policies.of(digest)

    def releases(self) -> list[ReleaseView]:
        """Newest first."""
        return [self._release(row) for row in reversed(self._parts.database.releases_in())]

    def _release(self, row: ReleaseRow) -> ReleaseView:
        members = self._parts.database.members(row.serial)
        reason = REASONS.get(row.reason)
        return ReleaseView(
            name=row.name,
            state=row.state,
            policy=row.policy,
            policy_digest=row.policy_digest,
            project=row.project,
            destination=row.destination,
            people=len({member.person for member in members}),
            studies=len(members),
            opened=row.opened_at,
            closed=row.closed_at,
            reason=row.reason,
            says=reason.says if reason else "",
            at=row.at,
            figures=tuple(map(_figure, row.figures)),
        )

    def release(self, name: str) -> ReleaseDetail | None:
        """With what its report says of it: charts over releases, and which figure comes nearest to its limit."""
        if self._parts.database.release_named(name) is None:
            return None
        p = self._parts
        dossier = dossier_of(p.home, p.settings, p.database, name)
        view, content = self._release(dossier.release), dossier.content
        charts = tuple(_drawing(block) for block in history(dossier) if isinstance(block, Bars))
        unjudged = [
            (modality, aspect, count, reason, approver)
            for (aspect, modality, reason, approver), count in content.unjudged.items()
        ]
        return ReleaseDetail(
            view,
            dossier.release.looks,
            charts,
            tuple(sorted(_nearest(view.figures), key=lambda one: -one.share)),
            tuple(sorted(content.of_stage().items())),
            tuple(sorted((check, count) for check, count in content.findings.items() if count)),
            tuple(sorted(unjudged)),
            tuple(by_level(dossier.policy, content).items()),
            tuple(map(row_of, worst_of(dossier.strata))),
        )

    def worst_over_time(self) -> list[Chart]:
        """Shares of limits: 1 is the limit, whatever the check. A group of nobody is drawn at the top."""
        found: dict[str, list[Bar]] = {}
        for view in map(self._release, self._parts.database.releases_in()):
            worst = view.worst
            if worst is not None and worst.of_limit is not None:
                estimate = replace(worst, upper=worst.estimate).of_limit
                upper = min(worst.of_limit, MOST_DRAWN)
                bar = Bar(view.name, upper if estimate is None else min(estimate, MOST_DRAWN), upper, 1.0)
                found.setdefault(view.policy, []).append(bar)
        charts = []
        for policy, bars in sorted(found.items()):
            last = tuple(bars[-EARLIER:])
            top = top_of([value for bar in last for value in (bar.upper, bar.limit)])
            charts.append(_drawing(Bars(f"{policy}: shares of limits", last, top, LESS)))
        return charts

    def report(self, name: str, kind: str) -> bytes | None:
        p = self._parts
        if p.database.release_named(name) is None:
            return None
        document = document_of(dossier_of(p.home, p.settings, p.database, name), time.time())
        return to_pdf(document) if kind == "pdf" else to_html(document).encode()

    def open_vault(self, person: Person, pseudonym: str, reason: str) -> list[VaultRecord]:
        """As the role that the person signed in with. Raises UsageError for one that the policy does not name."""
        p = self._parts
        opened = open_records(
            p.home, p.settings, [pseudonym], role=person.role, actor=page_actor(person.name), reason=reason
        )
        return [
            VaultRecord(
                project=one.identity.project,
                pseudonym=one.identity.pseudonym,
                patient_ids=tuple(" of ".join(filter(None, map(legible, pair))) for pair in one.identity.patient_ids),
                study_instance_uid=legible(one.identity.study_instance_uid),
                accession_numbers=tuple(map(legible, one.identity.accession_numbers)),
                until=float(one.head.until),
            )
            for one in opened
        ]

    def audit(self, sought: Sought, limit: int) -> list[Event]:
        keys = self._keys_of(sought.pseudonym) if sought.pseudonym else None
        return review_history.of_people(self._parts.home.ledger, limit, keys, sought)

    def _keys_of(self, pseudonym: str) -> frozenset[str]:
        """Jobs of everybody who left under a pseudonym. What was typed is hashed, and kept nowhere."""
        database, keys = self._parts.database, self._parts.keys
        return frozenset(
            work
            for project in database.projects()
            for work in database.work_under(project, keys.opaque("issued", project, pseudonym.casefold()))
        )


def _drawing(bars: Bars) -> Chart:
    height, shapes = drawn(bars)
    lines, dots, words = (tuple(one for one in shapes if isinstance(one, kind)) for kind in (Line, Dot, Label))
    return Chart(bars.title, bars.sense, WIDTH, height, lines, dots, words)


def _nearest(figures: Sequence[Figure]) -> list[Nearest]:
    """Of figures that are evidence."""
    return [Nearest(figure, share) for figure in figures if (share := figure.of_limit) is not None]


def _figure(figure: Mapping[str, Any]) -> Figure:
    return Figure(
        check=figure["check"],
        card=figure["card"],
        attack=figure["attack"],
        view=figure["view"],
        scope=figure["scope"],
        note=figure["note"],
        estimate=figure["estimate"],
        upper=figure["upper"],
        limit=figure["limit"],
        people=figure["people"],
    )
