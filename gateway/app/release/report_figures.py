"""The figures of a release's report: tables under the three criteria, and charts over the releases of its policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.app.document.blocks import LESS, MORE, Bar, Block, Chart, Heading, Table, Words, top_of
from gateway.app.release import report_words as words
from gateway.app.release.dossier import Dossier
from gateway.app.release.gauges import worst_by_card
from gateway.gate.release_sample import spent
from gateway.gate.release_views import VIEWS, in_view
from gateway.review.records import Figure


def criteria(dossier: Dossier) -> Iterator[Block]:
    """Isolation, linkage, inference: each with its figures, or why there is none."""
    figures = dossier.release.figures
    for title, says, checks in words.CRITERIA:
        yield Heading(title)
        yield Words(says)
        chosen = [figure for figure in figures if figure["check"] in checks]
        if chosen:
            yield _table(dossier, chosen)
        else:
            yield Words(words.not_measured(checks, judged=bool(figures), policy=dossier.policy), "notice")
        yield from _filters(dossier, title)


def _table(dossier: Dossier, figures: Sequence[Mapping[str, Any]]) -> Table:
    looks = next((one.looks for one in reversed(dossier.decided) if one.looks), {})
    rows = []
    for one in figures:
        attack = words.ATTACKS.get(one["attack"], one["attack"])
        by = ", ".join(part for part in (one["card"], one.get("metric", ""), attack) if part) or "kept attributes"
        figure = Figure(**{name: one[name] for name in Figure.__dataclass_fields__})
        rows.append(
            (
                _named(dossier, one["check"]),
                by,
                in_view(words.SCOPES[one["scope"]], one["view"]),
                _number(one["estimate"]),
                _number(one["upper"]),
                _number(one["limit"]),
                _alpha(dossier, one, looks),
                str(one["people"]),
                words.NOTES.get(figure.verdict, figure.verdict),
            )
        )
    columns = ("Check", "Attacker", "Over", "Estimate", "Bound", "Limit", "Alpha", "People", "Says")
    return Table(words.TABLE, columns, tuple(rows), (1.5, 2.2, 1.2, 1, 0.8, 0.7, 0.8, 0.8, 1.4))


def _named(dossier: Dossier, check: str) -> str:
    if check != "attribute_inference" or dossier.policy is None:
        return check.replace("_", " ")
    return f"inference of {getattr(dossier.policy.gate.release.get(check), 'attribute', 'an attribute')}"


def _alpha(dossier: Dossier, figure: Mapping[str, Any], looks: Mapping[str, int]) -> str:
    """What this look spent of the error that the check allows (over all looks together)."""
    check = dossier.policy.gate.release.get(figure["check"]) if dossier.policy is not None else None
    confidence, look = getattr(check, "confidence", None), looks.get(figure["scope"])
    return "–" if confidence is None or look is None else f"{spent(1 - confidence, look):.4f}"


def _filters(dossier: Dossier, title: str) -> Iterator[Block]:
    """Checks of every single study that belong under a criterion."""
    rows = []
    for check, looked in sorted(dossier.content.assessed.items()):
        if words.STUDY_CHECKS.get(check, "Isolation") == title.partition(" ")[0]:
            seen = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in sorted(looked.items()))
            rows.append((check.replace("_", " "), seen or "–", str(dossier.content.findings.get(check, 0))))
    if rows:
        yield Table(words.FILTERS, ("Check of every study", "Looked at", "Residuals found"), tuple(rows), (2, 4, 1))


def history(dossier: Dossier) -> Iterator[Block]:
    """Each check, card and view over the releases of the policy, the figure that decided."""
    order = [check for _, _, checks in words.CRITERIA for check in checks]
    found: dict[tuple[str, str, str], list[Bar]] = {}
    for row in dossier.history:
        for key, figure in worst_by_card(row.figures).items():
            if figure["estimate"] is not None and key[0] in order:
                bar = Bar(row.name, float(figure["estimate"]), float(figure["upper"]), float(figure["limit"]))
                found.setdefault(key, []).append(bar)
    if not found:
        return
    yield Heading("Scores over releases")
    yield Words(words.HISTORY, "soft")
    for (check, card, view), bars in sorted(found.items(), key=lambda one: _place(one[0], order)):
        sense = MORE if check == "record_isolation" else LESS
        top = top_of([value for bar in bars for value in (bar.upper, bar.limit)])
        by = f" by {card}" if card else ""
        yield Chart(in_view(f"{_named(dossier, check)}{by}", view), tuple(bars), top, sense)


def _place(key: tuple[str, str, str], order: Sequence[str]) -> tuple[int, str, int]:
    check, card, view = key
    return order.index(check), card, VIEWS.index(view)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")
